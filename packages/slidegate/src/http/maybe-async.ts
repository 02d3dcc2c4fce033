// Helpers that create a promise only if a value isn't available yet, because promises are slow to create.

/** Calls `next` with a value: immediately, or once its promise resolves. */
export function after<T, R>(
  value: T | PromiseLike<T>,
  next: (value: T) => R | PromiseLike<R>,
): R | PromiseLike<R> {
  return isPending(value) ? value.then(next) : next(value)
}

/** Calls `attempt` and returns a promise, which rejects only with `Error` objects. */
export async function promised<T>(attempt: () => T | PromiseLike<T>): Promise<T> {
  try {
    return await attempt()
  } catch (reason) {
    throw asError(reason)
  }
}

export function isPending<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && typeof (value as PromiseLike<T>).then === 'function'
}

/**
 * Converts any thrown value to an `Error`. Express treats an undefined error, and strings such as `'route'`, as
 * "continue", which would bypass the limit. Koa never responds to a request that threw `undefined`.
 */
export function asError(reason: unknown): Error {
  return typeof reason === 'object' && reason !== null
    ? (reason as Error)
    : new Error(`thrown: ${String(reason)}`, { cause: reason })
}
