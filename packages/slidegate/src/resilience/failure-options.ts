import { checkOptions, invalidOption, show } from '../errors.ts'
import type { Announcer, Logger } from '../events.ts'
import type { OnStoreError } from './answers.ts'
import type { BreakerOptions } from './breaker.ts'
import type { LocalStore } from './local-share.ts'
import { checkInteger } from './options.ts'

const POLICIES: readonly unknown[] = ['throw', 'deny', 'allow', 'local'] satisfies OnStoreError[]

export interface FailureOptions {
  readonly timeoutMs?: number
  readonly onStoreError?: OnStoreError
  readonly instances?: number
  readonly breaker?: BreakerOptions
  readonly logger?: Logger | false
}

/** What a limiter does when its store fails. */
export interface FailurePolicy {
  readonly onStoreError: OnStoreError
  /** Milliseconds after which the store is given up. */
  readonly timeoutMs: number
  readonly breaker: Required<BreakerOptions>
  /** Processes that share the limits, with `local`. */
  readonly instances: number
  readonly createLocalStore: () => LocalStore
  readonly announcer: Announcer
}

/** What a limiter does when its store fails: checked and completed. */
export function checkFailureOptions(
  options: FailureOptions,
): Omit<FailurePolicy, 'announcer' | 'createLocalStore'> & { readonly logger: Logger | undefined } {
  const { timeoutMs = 50, onStoreError = 'throw', instances = 1, breaker = {}, logger = console } = options
  checkInteger('timeoutMs', timeoutMs, 1, 2 ** 31 - 1)
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
  return {
    timeoutMs,
    onStoreError,
    instances,
    breaker: checkBreaker(breaker),
    logger: logger === false ? undefined : logger,
  }
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
