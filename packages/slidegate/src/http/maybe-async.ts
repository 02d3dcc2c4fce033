// Continues without a promise if there is nothing to wait for: one costs a request as much as its headers do.

/** Goes on with a value: now if it is there, else when it is. */
export function after<T, R>(
  value: T | PromiseLike<T>,
  goOn: (value: T) => R | PromiseLike<R>,
): R | PromiseLike<R> {
  return isPending(value) ? value.then(goOn) : goOn(value)
}

/**
 * Calls `attempt`, and passes its value to `goOn`, or what it throws or rejects with to `fail`. All get the same `args`, so
 * that callers need no closures. Errors of `goOn` itself are thrown to the caller.
 */
export function settle<T, Args extends readonly unknown[]>(
  attempt: (...args: Args) => T | PromiseLike<T>,
  args: Args,
  goOn: (value: T, args: Args) => void,
  fail: (error: Error, args: Args) => void,
): void {
  let value: T | PromiseLike<T>
  try {
    value = attempt(...args)
  } catch (reason) {
    fail(asError(reason), args)
    return
  }
  if (!isPending(value)) goOn(value, args)
  else
    value.then(
      (known) => goOn(known, args),
      (reason) => fail(asError(reason), args),
    )
}

/** The same as a promise, for frameworks that await one: it rejects with errors only. */
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
 * Makes an error of anything that was thrown. Callbacks of frameworks take nothing, and words like `route`, for "go on", which
 * would lead around the limit; and Koa never answers a request for which nothing was thrown.
 */
export function asError(reason: unknown): Error {
  return typeof reason === 'object' && reason !== null
    ? (reason as Error)
    : new Error(`thrown: ${String(reason)}`, { cause: reason })
}
