// Guards a limiter's store, so that every failure becomes a defined answer.

import { checkOptions, invalidOption, StoreUnavailableError, show } from '../errors.ts'
import { Announcer, type Logger } from '../events.ts'
import { PassingCall } from '../stores/call.ts'
import { memoryStore } from '../stores/memory/memory.ts'
import type {
  BreakerOptions,
  Call,
  FailureSettings,
  OnStoreError,
  Op,
  Outcome,
  Store,
} from '../stores/store.ts'
import { Fallback } from './fallback.ts'
import { checkInteger, checkTimeout, isStore } from './options.ts'

/** See `CommonOptions` in limiter.ts. */
export interface FailureOptions {
  readonly store?: Store
  readonly timeoutMs?: number
  readonly onStoreError?: OnStoreError
  readonly instances?: number
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
 * @param name the limiter's name
 * @throws {SlidegateError} `invalid_option`
 */
export function guardStore(name: string, options: FailureOptions): Guarded {
  const { store = memoryStore(), logger = console } = options
  if (!isStore(store)) {
    throw invalidOption(`the store is ${show(store)}; use memoryStore() or redisStore(client)`, store)
  }
  const settings = checkSettings(options)
  if (logger !== false && typeof logger?.warn !== 'function') {
    throw invalidOption(`the logger is ${show(logger)}; it must have a warn method, or be false`, logger)
  }
  const announcer = new Announcer(name, logger || undefined)
  if (store.failurePolicy !== undefined) {
    return { store: store.failurePolicy(store, settings, announcer), announcer }
  }
  if (store.applySync === undefined) {
    throw invalidOption(
      'the store has no failurePolicy; use the one that slidegate exports: { failurePolicy, apply, close }',
      store,
    )
  }
  const fallback = new Fallback(settings, announcer.counts)
  return { store: guardLocal(store as LocalStore, fallback, announcer), announcer }
}

const POLICIES: readonly unknown[] = ['throw', 'deny', 'allow', 'local'] satisfies OnStoreError[]

function checkSettings(options: FailureOptions): FailureSettings {
  const { timeoutMs = 50, onStoreError = 'throw', breaker = {}, instances } = options
  checkTimeout(timeoutMs)
  if (!POLICIES.includes(onStoreError)) {
    throw invalidOption(
      `onStoreError is ${show(onStoreError)}; it must be 'throw', 'deny', 'allow' or 'local'`,
      onStoreError,
    )
  }
  if (instances !== undefined) checkInteger('instances', instances, 1, 2 ** 20)
  return { timeoutMs, onStoreError, instances, breaker: checkBreaker(breaker) }
}

function checkBreaker(options: BreakerOptions): Required<BreakerOptions> {
  checkOptions(options, 'breaker', { failureRate: true, minRequests: true, maxBackoffMs: true })
  const { failureRate = 0.5, minRequests = 5, maxBackoffMs = 500 } = options
  if (typeof failureRate !== 'number' || !(failureRate > 0 && failureRate <= 1)) {
    throw invalidOption(`failureRate is ${show(failureRate)}; it must be above 0 and at most 1`, failureRate)
  }
  checkInteger('minRequests', minRequests, 1, 2 ** 20)
  checkInteger('maxBackoffMs', maxBackoffMs, 10, 60_000)
  return { failureRate, minRequests, maxBackoffMs }
}

/** A store in this process. */
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
    // Requests that the fast path can't decide need an op.
    fastPath: store.fastPath?.bind(store),
    close() {},
  }
}

/** Answers ops after a failure of the store, or throws if they fail, too. */
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
