// A promise costs a request as much as its headers do. Where nothing has to be waited for, nothing is.

/** Goes on with a value: at once where it is there, else when it is. */
export function after<T, R>(
  value: T | PromiseLike<T>,
  goOn: (value: T) => R | PromiseLike<R>,
): R | PromiseLike<R> {
  return isPending(value) ? value.then(goOn) : goOn(value)
}

/**
 * Goes on with what `attempt` gives, or hands to `fail` what it throws or rejects with. What is thrown by going
 * on is not its concern.
 */
export function settle<T>(
  attempt: () => T | PromiseLike<T>,
  goOn: (value: T) => void,
  fail: (error: Error) => void,
): void {
  let value: T | PromiseLike<T>
  try {
    value = attempt()
  } catch (reason) {
    fail(asError(reason))
    return
  }
  if (isPending(value)) value.then(goOn, (reason) => fail(asError(reason)))
  else goOn(value)
}

/** The same as a promise, for frameworks that wait for one: what it is rejected with is an error. */
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
 * What was thrown, as frameworks take it for an error: to their callbacks nothing, and words like `route`, mean
 * to go on, and must not lead around the limit; and Koa never answers a request for which nothing was thrown.
 */
export function asError(reason: unknown): Error {
  return typeof reason === 'object' && reason !== null
    ? (reason as Error)
    : new Error(`thrown: ${String(reason)}`, { cause: reason })
}
