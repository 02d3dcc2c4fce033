// Checks the options of store wrappers.

import { checkOptions, invalidOption, type Names, show } from '../errors.ts'
import { checkClock } from '../stores/instant.ts'
import type { Store } from '../stores/store.ts'

/** Checks the arguments of any wrapper. @throws {SlidegateError} `invalid_option` */
export function checkWrapped<Options extends { readonly clock?: unknown }>(
  store: Store,
  options: Options,
  what: string,
  names: Names<Options>,
): void {
  if (!isStore(store)) {
    throw invalidOption(`${what} wraps ${show(store)}; it must be a store, such as redisStore(client)`, store)
  }
  checkOptions(options, what, names)
  checkClock(options.clock)
}

export function isStore(store: Store): boolean {
  return typeof store === 'object' && typeof store?.apply === 'function'
}

/** @throws {SlidegateError} `invalid_option` */
export function checkTimeout(timeoutMs: number): void {
  checkInteger('timeoutMs', timeoutMs, 1, 2 ** 31 - 1)
}

/** @throws {SlidegateError} `invalid_option` if it isn't an integer in this range */
export function checkInteger(name: string, value: unknown, least: number, most: number): void {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
    throw invalidOption(`${name} is ${show(value)}; it must be an integer from ${least} to ${most}`, value)
  }
}
