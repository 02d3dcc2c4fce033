import { asUnavailable, SlidegateError, StoreUnavailableError } from '../errors.ts'
import type { Announcer } from '../events.ts'
import type { Call } from '../stores/call.ts'
import type { ConsumeOutcome, Op, Outcome, Store } from '../stores/store.ts'
import { Answers, MIN_WAIT_MS, type OnStoreError } from './answers.ts'
import { Breaker, type BreakerOptions } from './breaker.ts'
import { ClockWatch } from './clock-watch.ts'
import { Deadlines, type Due } from './deadlines.ts'
import { LateCharges } from './late-charges.ts'
import type { LocalStore } from './local-share.ts'
import { StoreHealth } from './store-health.ts'

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

/** What may be down on its own: one server, or a part of a Cluster. */
interface Domain {
  readonly breaker: Breaker
  readonly clock: ClockWatch
}

/**
 * Makes every failure of a store a defined answer within a bounded time. A store that has not answered within `timeoutMs` is
 * given up, whatever its client waits for; one that fails too often is not asked, but for attempts now and then. What it
 * charges for those who have given up is returned, unless they were told that they may pass.
 */
export function withFailurePolicy(store: Store, policy: FailurePolicy): Store {
  if (store.applySync === undefined) return new GuardedStore(store, policy)
  return policy.onStoreError === 'throw' ? store : new GuardedLocalStore(store as LocalStore, policy)
}

/** One in this process: it answers at once, or not at all. */
class GuardedLocalStore implements LocalStore {
  readonly #store: LocalStore
  readonly #answers: Answers

  constructor(store: LocalStore, { onStoreError, instances, createLocalStore }: FailurePolicy) {
    this.#store = store
    this.#answers = new Answers(onStoreError, instances, createLocalStore)
  }

  apply(ops: readonly Op[], call: Call): void {
    try {
      call.resolve(this.applySync(ops), 0)
    } catch (error) {
      call.reject(error)
    }
  }

  applySync(ops: readonly Op[]): readonly Outcome[] {
    const settled = this.#answers.settle(ops[0]!)
    if (settled !== undefined) return [settled]
    try {
      return this.#store.applySync(ops)
    } catch (error) {
      const answers = error instanceof StoreUnavailableError && this.#answers.to(ops, MIN_WAIT_MS)
      if (answers) return answers
      throw error
    }
  }

  close(): void {}
}

class GuardedStore implements Store {
  readonly timeoutMs: number
  readonly deadlines: Deadlines = new Deadlines()
  readonly #store: Store
  readonly #breaker: Required<BreakerOptions>
  readonly #announcer: Announcer
  readonly #health: StoreHealth
  readonly #late: LateCharges
  readonly #answers: Answers
  readonly #domains: (Domain | undefined)[] = []

  constructor(store: Store, policy: FailurePolicy) {
    this.#store = store
    this.#breaker = policy.breaker
    this.timeoutMs = policy.timeoutMs
    this.#announcer = policy.announcer
    this.#health = new StoreHealth(policy.announcer, policy.onStoreError)
    this.#late = new LateCharges(store)
    this.#answers = new Answers(policy.onStoreError, policy.instances, policy.createLocalStore)
  }

  apply(ops: readonly Op[], call: Call): void {
    const op = ops[0]!
    const settled = this.#answers.settle(op)
    if (settled !== undefined) {
      call.resolve([settled], 0)
      return
    }
    const nowMs = this.deadlines.now()
    const domain = this.#domainOf(op)
    if (!domain.breaker.admits(nowMs)) {
      this.#answer(ops, call, domain, new StoreUnavailableError('down', this.#health.reason))
      return
    }
    const guarded = new GuardedCall(this, domain, ops, call, nowMs)
    try {
      this.#store.apply(ops, guarded)
    } catch (error) {
      guarded.reject(error)
    }
    // What was answered in this process has no deadline to watch.
    if (!guarded.isSettled) this.deadlines.watch(guarded)
  }

  close(): void {
    this.deadlines.close()
  }

  /** The store has answered in time. */
  answered({ domain, sentAtMs }: GuardedCall, outcomes: readonly Outcome[]): void {
    domain.breaker.succeeded()
    const outcome = outcomes[0]
    if (outcome === undefined || !('atMs' in outcome) || outcome.source !== 'store') return
    const byMs = domain.clock.stepAt(outcome.atMs, sentAtMs, this.deadlines.now())
    if (byMs !== 0) this.#announcer.tell('clockStep', { byMs })
  }

  /** Answers whether the caller was told that it may pass. */
  failed({ domain, ops, call }: GuardedCall, reason: unknown): boolean {
    if (reason instanceof SlidegateError) {
      domain.breaker.succeeded()
      call.reject(reason)
      return false
    }
    const error = asUnavailable(reason)
    // What is damaged, or full, has answered.
    if (error.reason === 'state' || error.reason === 'full') domain.breaker.succeeded()
    else domain.breaker.failed(performance.now(), error)
    this.#announcer.tell('storeError', { error })
    return this.#answer(ops, call, domain, error)
  }

  /** What is admitted now has been told something else. */
  lateAnswer(ops: readonly Op[], outcomes: readonly Outcome[], position: number): void {
    ops.forEach((op, i) => {
      const outcome = outcomes[i] as ConsumeOutcome
      if (op.type === 'consume' && outcome.source === 'store' && position < outcome.admitted) {
        this.#late.add(op, outcome, position)
      }
    })
  }

  /** Tells a call what the policy says. Answers whether that was that it may pass. */
  #answer(ops: readonly Op[], call: Call, { breaker }: Domain, error: StoreUnavailableError): boolean {
    this.#health.decided()
    const pauseMs = Math.max(MIN_WAIT_MS, breaker.pauseAt(performance.now()))
    const answers = this.#answers.to(ops, pauseMs)
    if (answers === undefined) call.reject(error)
    else call.resolve(answers, 0)
    return answers !== undefined && (answers[0] as ConsumeOutcome).admitted > 0
  }

  #domainOf(op: Op): Domain {
    const number = this.#store.domainOf?.(op) ?? 0
    let domain = this.#domains[number]
    if (domain === undefined) {
      domain = { breaker: new Breaker(this.#breaker, this.#health), clock: new ClockWatch() }
      this.#domains[number] = domain
    }
    return domain
  }
}

/** A call of the store, until it is answered, and after that until its late answer. */
class GuardedCall implements Call, Due {
  isSettled = false
  readonly domain: Domain
  readonly ops: readonly Op[]
  readonly call: Call
  readonly sentAtMs: number
  readonly #store: GuardedStore
  /** Whether the caller was told that it may pass: what the store charges later is right then. */
  #mayPass = false

  constructor(store: GuardedStore, domain: Domain, ops: readonly Op[], call: Call, sentAtMs: number) {
    this.#store = store
    this.domain = domain
    this.ops = ops
    this.call = call
    this.sentAtMs = sentAtMs
  }

  get dueAtMs(): number {
    return this.sentAtMs + this.#store.timeoutMs
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    if (this.isSettled) {
      if (!this.#mayPass) this.#store.lateAnswer(this.ops, outcomes, position)
      return
    }
    this.isSettled = true
    this.#store.answered(this, outcomes)
    this.call.resolve(outcomes, position)
  }

  reject(error: unknown): void {
    if (this.isSettled) return
    this.isSettled = true
    this.#mayPass = this.#store.failed(this, error)
  }

  giveUp(): void {
    const { timeoutMs } = this.#store
    this.reject(new StoreUnavailableError('timeout', `the store did not answer within ${timeoutMs} ms`))
  }
}
