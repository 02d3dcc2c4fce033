// An error that is sent to the caller.

/** An error for the caller, such as an invalid request or a missing permission. Includes the HTTP status. */
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
