// An error that is sent to the caller.

/** An error for the caller, with its HTTP status. Examples: a mistake, a missing permission. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  /** 400 to 599. */
  readonly status: number
  /** Machine-readable code, such as `unknown_limiter`. */
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}
