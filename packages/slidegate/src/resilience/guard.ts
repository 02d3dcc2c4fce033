// Guards a limiter's store, so that every failure becomes a defined answer. Checks the options of guards and wrappers.

import {
  checkInteger,
  checkOptions,
  checkThat,
  checkTimeout,
  invalidOption,
  type Names,
  StoreUnavailableError,
  show,
} from '../errors.ts'
import { Announcer, type Logger } from '../events.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import type { Op, Outcome } from '../ops/table.ts'
import { checkClock } from '../runtime/clock.ts'
import { PassingCall } from '../stores/call.ts'
import { memoryStore } from '../stores/memory/memory.ts'
import type { BreakerOptions, Call, FailureSettings, OnStoreError, Store } from '../stores/store.ts'
import { Fallback } from './fallback.ts'

/** See `CommonOptions` in limiter.ts. */
export interface FailureOptions extends Partial<Omit<FailureSettings, 'breaker'>> {
  readonly store?: Store
  readonly breaker?: BreakerOptions
  readonly logger?: Logger | false
}

/** A guarded store, and the object that reports its failures. `close` stops timers, but doesn't close the store. */
export interface Guarded {
  readonly store: Store
  readonly announcer: Announcer
}

/**
 * Guards a store with its failure policy. A store in this process needs none.
 *
 * @param sets the limiter's limits by dimension, except limits that a function returns
 */
export function guardStore(name: string, options: FailureOptions, sets: readonly LimitSet[] = []): Guarded {
  const { store = memoryStore(), logger = console } = options
  checkStore(store, 'the store is', 'use memoryStore() or redisStore(client)')
  const settings = { ...checkSettings(options), limiter: name, sets }
  if (logger !== false && typeof logger?.warn !== 'function') {
    throw invalidOption(`the logger is ${show(logger)}; it must have a warn method, or be false`, logger)
  }
  const announcer = new Announcer(name, logger || undefined)
  if (store.failurePolicy !== undefined) {
    return { store: store.failurePolicy(store, settings, announcer), announcer }
  }
  if (store.applySync === undefined) {
    throw invalidOption('the store has no failurePolicy; add the one that slidegate exports', store)
  }
  const fallback = new Fallback(settings, announcer.counts)
  return { store: guardLocal(store as LocalStore, fallback, announcer), announcer }
}

const POLICIES: readonly unknown[] = ['throw', 'deny', 'allow', 'local'] satisfies OnStoreError[]

function checkSettings(options: FailureOptions): Omit<FailureSettings, 'limiter' | 'sets'> {
  const { timeoutMs = 50, onStoreError = 'throw', breaker = {}, instances, warnings = true } = options
  checkTimeout(timeoutMs)
  const isPolicy = POLICIES.includes(onStoreError)
  checkThat(isPolicy, 'onStoreError', onStoreError, "'throw', 'deny', 'allow' or 'local'")
  if (instances !== undefined) checkInteger('instances', instances, 1, 2 ** 20)
  return { timeoutMs, onStoreError, instances, warnings, breaker: checkBreaker(breaker) }
}

function checkBreaker(options: BreakerOptions): Required<BreakerOptions> {
  checkOptions(options, 'breaker', { failureRate: true, minRequests: true, maxBackoffMs: true })
  const { failureRate = 0.5, minRequests = 5, maxBackoffMs = 500 } = options
  const isRate = typeof failureRate === 'number' && failureRate > 0 && failureRate <= 1
  checkThat(isRate, 'failureRate', failureRate, 'above 0 and at most 1')
  checkInteger('minRequests', minRequests, 1, 2 ** 20)
  checkInteger('maxBackoffMs', maxBackoffMs, 10, 60_000)
  return { failureRate, minRequests, maxBackoffMs }
}

type LocalStore = Store & Required<Pick<Store, 'applySync'>>

/** Has no deadline and no breaker, because the store answers synchronously. */
function guardLocal(store: LocalStore, fallback: Fallback, announcer: Announcer): LocalStore {
  const answer: Answer = (ops, error) => {
    if (!(error instanceof StoreUnavailableError)) throw error
    const named = announcer.named(error)
    announcer.storeFailed(named)
    const answers = fallback.answer(ops, performance.now(), 0, false)
    if (answers === undefined) throw named
    return answers
  }
  return {
    apply(ops, call) {
      if (fallback.settles(ops[0]!, call)) return
      // Doesn't use `applySync`, whose answer is only valid until the next call.
      store.apply(ops, new LocalCall(call, ops, answer))
    },
    applySync(ops) {
      try {
        return store.applySync(ops)
      } catch (error) {
        return answer(ops, error)
      }
    },
    // Needs no guard: a request that the fast path can't decide is sent as an op.
    fastPath: store.fastPath?.bind(store),
    close() {},
  }
}

type Answer = (ops: readonly Op[], error: unknown) => readonly Outcome[]

class LocalCall extends PassingCall {
  readonly #ops: readonly Op[]
  readonly #answer: Answer

  constructor(call: Call, ops: readonly Op[], answer: Answer) {
    super(call)
    this.#ops = ops
    this.#answer = answer
  }

  override reject(error: unknown): void {
    try {
      this.call.resolve(this.#answer(this.#ops, error), 0)
    } catch (failure) {
      this.call.reject(failure)
    }
  }
}

export function checkWrapped<Options extends { readonly clock?: unknown }>(
  store: Store,
  options: Options,
  what: string,
  names: Names<Options>,
): void {
  checkStore(store, `${what} got`, 'pass a store, such as redisStore(client)')
  checkOptions(options, what, names)
  checkClock(options.clock)
}

function checkStore(store: Store, what: string, right: string): void {
  if (typeof store === 'object' && typeof store?.apply === 'function') return
  throw invalidOption(`${what} ${show(store)}; ${right}`, store)
}
