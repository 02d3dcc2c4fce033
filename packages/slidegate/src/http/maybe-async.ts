// Continues without a promise if there is nothing to wait for: a promise costs a request as much as its headers do.

/** Passes a value on: now if it is there, else when it is. */
export function after<T, R>(
  value: T | PromiseLike<T>,
  goOn: (value: T) => R | PromiseLike<R>,
): R | PromiseLike<R> {
  return isPending(value) ? value.then(goOn) : goOn(value)
}

/** Calls `attempt`, for frameworks that await a promise. It rejects with errors only. */
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
 * Returns an error for anything that was thrown. Express takes an undefined error, and words like `route`, for "go on", which
 * would bypass the limit. Koa never answers a request for which `undefined` was thrown.
 */
export function asError(reason: unknown): Error {
  return typeof reason === 'object' && reason !== null
    ? (reason as Error)
    : new Error(`thrown: ${String(reason)}`, { cause: reason })
}
