// Usage errors, and error messages without a stack.

/** A usage error: exit code 2. All other errors exit with 1. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Returns an error's message, without its stack. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // If several addresses refuse a connection, Node's error has no message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  return error.message
}
