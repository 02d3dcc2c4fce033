import { checkOptions, invalidOption, type Names, show } from '../errors.ts'
import { checkClock } from '../stores/instant.ts'
import type { Store } from '../stores/store.ts'

/** What every wrapper is given; `invalid_option` where it is not that. */
export function checkWrapped<Options extends { readonly clock?: unknown }>(
  store: Store,
  options: Options,
  what: string,
  names: Names<Options>,
): void {
  if (typeof store !== 'object' || typeof store?.apply !== 'function') {
    throw invalidOption(`${what} wraps ${show(store)}; it must be a store, such as redisStore(client)`, store)
  }
  checkOptions(options, what, names)
  checkClock(options.clock)
}

/** `invalid_option` unless it is an integer in this range. */
export function checkInteger(name: string, value: unknown, least: number, most: number): void {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
    throw invalidOption(`${name} is ${show(value)}; it must be an integer from ${least} to ${most}`, value)
  }
}
