// The options of the failure policy and of wrappers around stores, checked.

import { checkOptions, invalidOption, type Names, show } from '../errors.ts'
import type { Logger } from '../events.ts'
import { isClusterWorker, warn } from '../runtime/platform.ts'
import { checkClock } from '../stores/instant.ts'
import { memoryStore } from '../stores/memory/memory.ts'
import type { Store } from '../stores/store.ts'
import type { BreakerOptions } from './breaker.ts'
import type { OnStoreError } from './fallback.ts'

/** See `CommonOptions` of limiters. */
export interface FailureOptions {
  readonly store?: Store
  readonly timeoutMs?: number
  readonly onStoreError?: OnStoreError
  readonly instances?: number
  readonly breaker?: BreakerOptions
  readonly logger?: Logger | false
}

/** The same, checked and completed. */
export interface FailurePolicy extends Required<FailureOptions> {
  readonly breaker: Required<BreakerOptions>
}

const POLICIES: readonly unknown[] = ['throw', 'deny', 'allow', 'local'] satisfies OnStoreError[]

/** @throws {SlidegateError} `invalid_option` */
export function checkFailureOptions(options: FailureOptions): FailurePolicy {
  const { store = memoryStore(), timeoutMs = 50, onStoreError = 'throw', breaker = {} } = options
  const { instances = 1, logger = console } = options
  if (!isStore(store)) {
    throw invalidOption(`the store is ${show(store)}; use memoryStore() or redisStore(client)`, store)
  }
  checkTimeout(timeoutMs)
  if (!POLICIES.includes(onStoreError)) {
    throw invalidOption(
      `onStoreError is ${show(onStoreError)}; it must be 'throw', 'deny', 'allow' or 'local'`,
      onStoreError,
    )
  }
  checkInteger('instances', instances, 1, 2 ** 20)
  if (logger !== false && typeof logger?.warn !== 'function') {
    throw invalidOption(`the logger is ${show(logger)}; it must have a method warn, or be false`, logger)
  }
  if (store.applySync === undefined) warnOfInstances(options)
  return { store, timeoutMs, onStoreError, instances, breaker: checkBreaker(breaker), logger }
}

function checkBreaker(options: BreakerOptions): Required<BreakerOptions> {
  checkOptions(options, 'breaker', { failureRate: true, minRequests: true, maxPauseMs: true })
  const { failureRate = 0.5, minRequests = 5, maxPauseMs = 500 } = options
  if (typeof failureRate !== 'number' || !(failureRate > 0 && failureRate <= 1)) {
    throw invalidOption(`failureRate is ${show(failureRate)}; it must be above 0 and at most 1`, failureRate)
  }
  checkInteger('minRequests', minRequests, 1, 2 ** 20)
  checkInteger('maxPauseMs', maxPauseMs, 10, 60_000)
  return { failureRate, minRequests, maxPauseMs }
}

let isWarned = false

/** Warns once. Only workers of `node:cluster` can detect that there are others. */
function warnOfInstances({ onStoreError, instances }: FailureOptions): void {
  if (isWarned || onStoreError !== 'local' || instances !== undefined || !isClusterWorker()) return
  isWarned = true
  warn(
    "onStoreError is 'local' without instances: in an outage each process admits the whole limit. " +
      'Set instances to their number. See docs/failures.md.',
    'SLIDEGATE_LOCAL_INSTANCES',
  )
}

/** Checks what every wrapper takes. @throws {SlidegateError} `invalid_option` */
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

function isStore(store: Store): boolean {
  return typeof store === 'object' && typeof store?.apply === 'function'
}

/** @throws {SlidegateError} `invalid_option` */
export function checkTimeout(timeoutMs: number): void {
  checkInteger('timeoutMs', timeoutMs, 1, 2 ** 31 - 1)
}

/** @throws {SlidegateError} `invalid_option` unless it is an integer in this range */
export function checkInteger(name: string, value: unknown, least: number, most: number): void {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
    throw invalidOption(`${name} is ${show(value)}; it must be an integer from ${least} to ${most}`, value)
  }
}
