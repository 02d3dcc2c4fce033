// Mistakes in how a program was called, and error messages without a stack.

/** A mistake in how the program was called: exit code 2. Every other error is a failure at run time: 1. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** What went wrong, without a stack. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // Node reports a refused connection to several addresses as an error without a message of its own.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  return error.message
}
