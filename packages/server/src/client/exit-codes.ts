/** What commands that ask a service end with, besides 0. */
export const EXIT = {
  /** It has failed: the store gave no answer, for instance. */
  failure: 1,
  /** The command, or what it asks for, is wrong. */
  usage: 2,
  /** The request was denied. */
  denied: 3,
  /** The service cannot be reached. */
  unreachable: 4,
  /** The service does not let this caller. */
  refused: 5,
} as const

/** What a service has answered, or that it has not. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly exitCode: number

  constructor(exitCode: number, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}
