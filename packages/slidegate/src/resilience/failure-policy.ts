// The failure policy: every failure of a store becomes a defined answer within a bounded time.

import {
  asUnavailable,
  noAnswer,
  type Silence,
  SlidegateError,
  type StoreUnavailableError,
  type StoreUnavailableReason,
} from '../errors.ts'
import { Announcer } from '../events.ts'
import { send } from '../stores/call.ts'
import type { Call, ConsumeOutcome, Op, Outcome, Store } from '../stores/store.ts'
import { Breaker } from './breaker.ts'
import { ClockSteps, ClockWatch } from './clock-watch.ts'
import { Deadlines, type Due } from './deadlines.ts'
import { Fallback } from './fallback.ts'
import { guardLocal, type LocalStore } from './local-guard.ts'
import { checkFailureOptions, type FailureOptions, type FailurePolicy } from './options.ts'
import { LateCharges } from './refunds.ts'
import { StoreHealth } from './store-health.ts'

/**
 * Returns the store with a failure policy, and what reports its failures.
 *
 * A call without an answer within `timeoutMs` fails, whatever the store's client waits for. A store that fails too often
 * isn't asked, except for an attempt now and then. Charges that arrive too late are returned, unless the caller was allowed to
 * pass, or has chosen the request's id and can ask again with it.
 *
 * @param name the limiter's name
 * @throws {SlidegateError} `invalid_option`
 */
export function withFailurePolicy(
  name: string,
  options: FailureOptions,
): { readonly store: Store; readonly announcer: Announcer } {
  const policy = checkFailureOptions(options)
  const { store } = policy
  const announcer = new Announcer(name, policy.logger || undefined)
  const fallback = new Fallback(policy.onStoreError, policy.instances, announcer.counts)
  const guarded =
    store.applySync === undefined
      ? guardRemote(policy, fallback, announcer)
      : guardLocal(store as LocalStore, fallback, announcer)
  return { store: guarded, announcer }
}

/** What the calls of a limiter share. */
interface Guard {
  readonly policy: FailurePolicy
  readonly fallback: Fallback
  readonly announcer: Announcer
  readonly health: StoreHealth
  readonly late: LateCharges
  readonly clockSteps: ClockSteps
  readonly deadlines: Deadlines
}

function guardRemote(policy: FailurePolicy, fallback: Fallback, announcer: Announcer): Store {
  const { store, onStoreError } = policy
  const deadlines = new Deadlines()
  const health = new StoreHealth(announcer, onStoreError, store)
  const late = new LateCharges(store)
  const clockSteps = new ClockSteps(announcer)
  const guard: Guard = { policy, fallback, announcer, health, late, clockSteps, deadlines }
  const domains: Domain[] = []
  return {
    apply(ops, call) {
      const op = ops[0]!
      if (fallback.settles(op, call)) return
      const nowMs = deadlines.now()
      const number = store.domainOf?.(op) ?? 0
      domains[number] ??= new Domain(guard, nowMs)
      const domain = domains[number]
      if (!domain.breaker.admits(nowMs)) {
        domain.answer(ops, call)
        return
      }
      const guarded = new GuardedCall(domain, ops, call, nowMs)
      send(store, ops, guarded)
      guarded.watch()
    },
    close: () => deadlines.close(),
  }
}

/** What may be down on its own: a store, or a part of a Cluster. */
class Domain {
  readonly guard: Guard
  readonly breaker: Breaker
  readonly clock: ClockWatch = new ClockWatch()

  constructor(guard: Guard, nowMs: number) {
    this.guard = guard
    this.breaker = new Breaker(guard.policy.breaker, guard.health, nowMs)
  }

  /** Answers a call without the store. Returns whether the caller may pass. */
  answer(ops: readonly Op[], call: Call, error?: StoreUnavailableError, isCrowd = false): boolean {
    const { announcer, fallback, health } = this.guard
    health.countRequest()
    if (error === undefined) announcer.counts.storeErrors.down++
    const nowMs = performance.now()
    const answers = fallback.answer(ops, nowMs, this.breaker.pauseAt(nowMs), isCrowd)
    if (answers === undefined) call.reject(error ?? announcer.named(health.error()))
    else call.resolve(answers, 0)
    return answers !== undefined && (answers[0] as ConsumeOutcome).admitted > 0
  }
}

/** These errors concern one key or this process, not the store's health. */
const IS_ANSWER: readonly StoreUnavailableReason[] = ['state', 'full']

const SILENCE: Silence = { message: 'the store did not answer' }

/** A call to the store, until its answer: a late one, too, for it may have charged. */
class GuardedCall implements Call, Due {
  isSettled = false
  readonly #domain: Domain
  readonly #ops: readonly Op[]
  readonly #call: Call
  /** Never before the store's first connection. */
  #sentAtMs: number
  /** The outage in which this is an attempt, or 0. */
  readonly #outage: number
  #isAnswered = false
  /** Whether it failed and the caller may pass, so that a late charge is right. */
  #mayPass = false

  constructor(domain: Domain, ops: readonly Op[], call: Call, sentAtMs: number) {
    this.#domain = domain
    this.#ops = ops
    this.#call = call
    this.#sentAtMs = sentAtMs
    this.#outage = domain.breaker.outage
  }

  get dueAtMs(): number {
    return this.#sentAtMs + this.#domain.guard.policy.timeoutMs
  }

  /** Starts the deadline: with the first connection, or the first requests of a process would fail. */
  watch(): void {
    // Answers from this process need no deadline.
    if (this.isSettled) return
    const { deadlines, policy } = this.#domain.guard
    const started = policy.store.connection?.whenStarted()
    if (started === undefined) deadlines.watch(this)
    else void started.then(() => this.#watchFromNow(deadlines))
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    if (this.isSettled) {
      this.#returnCharges(outcomes, position)
      return
    }
    this.isSettled = true
    try {
      this.#learn(outcomes)
      this.#call.resolve(outcomes, position)
    } catch (error) {
      // The store's answer makes no sense.
      this.#call.reject(asUnavailable(error))
    }
  }

  reject(reason: unknown): void {
    if (this.isSettled) return
    this.isSettled = true
    const { breaker, guard } = this.#domain
    if (reason instanceof SlidegateError) {
      breaker.succeeded(this.#sentAtMs, this.#isAttempt)
      this.#call.reject(reason)
      return
    }
    const error = asUnavailable(reason)
    const isCrowd = this.#isCrowd(error)
    this.#tellBreaker(error, isCrowd)
    const named = guard.announcer.named(error)
    guard.announcer.storeFailed(named)
    this.#mayPass = this.#domain.answer(this.#ops, this.#call, named, isCrowd)
  }

  giveUp(): void {
    const { store, timeoutMs } = this.#domain.guard.policy
    this.reject(noAnswer(store.connection?.silence() ?? SILENCE, timeoutMs))
  }

  get #isAttempt(): boolean {
    return this.#outage !== 0 && this.#outage === this.#domain.breaker.outage
  }

  #watchFromNow(deadlines: Deadlines): void {
    this.#sentAtMs = deadlines.now()
    if (!this.isSettled) deadlines.watch(this)
  }

  #learn(outcomes: readonly Outcome[]): void {
    const { breaker, clock, guard } = this.#domain
    const outcome = outcomes[0]
    if (outcome !== undefined && 'source' in outcome && outcome.source !== 'store') {
      // The deny cache and leases answer whether or not the store could.
      if (this.#isAttempt) breaker.notAsked(this.#sentAtMs)
      return
    }
    breaker.succeeded(this.#sentAtMs, this.#isAttempt)
    const nowMs = guard.deadlines.now()
    guard.fallback.learn(this.#ops, outcomes, nowMs)
    // The instant of a repeated request is long past.
    if (outcome === undefined || !('atMs' in outcome) || outcome.repeats !== undefined) return
    const byMs = clock.stepAt(outcome.atMs, this.#sentAtMs, nowMs)
    if (byMs !== 0) guard.clockSteps.report(byMs, nowMs)
  }

  /** Whether the op timed out because of other requests for its keys. */
  #isCrowd({ reason }: StoreUnavailableError): boolean {
    if (reason !== 'timeout' && reason !== 'overload') return false
    const { store, timeoutMs } = this.#domain.guard.policy
    // A request that is rejected at once hasn't waited, but others have.
    const sinceMs = reason === 'timeout' ? this.#sentAtMs : this.#sentAtMs - timeoutMs
    return store.isCrowded?.(this.#ops[0]!, sinceMs) === true
  }

  #tellBreaker(error: StoreUnavailableError, isCrowd: boolean): void {
    const { breaker } = this.#domain
    if (IS_ANSWER.includes(error.reason)) {
      breaker.succeeded(this.#sentAtMs, this.#isAttempt)
    } else if (isCrowd) {
      // A key's own flood says nothing about the store.
      if (this.#isAttempt) breaker.notAsked(performance.now())
    } else if (error.reason !== 'overload' || this.#isAttempt) {
      breaker.failed(performance.now(), error, this.#isAttempt)
    }
  }

  /** Requests that were admitted too late have failed already, or may pass without the store. */
  #returnCharges(outcomes: readonly Outcome[], position: number): void {
    const { late } = this.#domain.guard
    this.#ops.forEach((op, i) => {
      const outcome = outcomes[i] as ConsumeOutcome
      // A caller that has chosen the id can ask again, and gets this answer.
      if (op.type !== 'consume' || op.mayRepeat) return
      if (outcome.source !== 'store' || position >= outcome.admitted) return
      // A reservation that failed settles as if the store had never made it.
      if (this.#mayPass && op.reservation === undefined) late.release(op)
      else late.add(op, outcome, position, Math.min(outcome.admitted, position + op.count))
    })
  }
}
