// An error that is the answer to a caller.

/** What a caller has done wrong, or may not do: an answer, with the HTTP status that says it. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  /** 400 to 599. */
  readonly status: number
  /** What kind of error it is, for programs: `unknown_limiter` and the like. */
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}
