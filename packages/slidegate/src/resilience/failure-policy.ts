// The failure policy: gives every request a defined answer within a bounded time, even if the store fails.

import { asUnavailable, noAnswer, SlidegateError, type StoreUnavailableError } from '../errors.ts'
import type { FailureReports } from '../events.ts'
import type { ConsumeOutcome } from '../ops/request.ts'
import type { Op, Outcome } from '../ops/table.ts'
import { send } from '../stores/call.ts'
import type { Call, FailurePolicy, FailureSettings, Store } from '../stores/store.ts'
import { Breaker } from './breaker.ts'
import { acrossShards } from './cluster/across-shards.ts'
import { Deadlines, type Due } from './deadlines.ts'
import { Fallback, SeenOverrides } from './fallback.ts'
import { LateCharges } from './refunds.ts'
import { checkSetup } from './setup-warnings.ts'
import { ClockWatch, StoreHealth } from './store-health.ts'

/**
 * The failure policy for stores that can fail or hang. Stores outside this process include it: `{ failurePolicy, apply, ... }`.
 *
 * A call that isn't answered within `timeoutMs` fails, even if the store's client keeps waiting. A store that fails too
 * often gets no requests, except for occasional attempts. Charges that are made too late are refunded, unless the
 * caller was allowed to pass, or chose the request's id and can repeat the request.
 */
export const failurePolicy: FailurePolicy = (store, settings, reports) => {
  const guarded = guardedStore(store, settings, reports)
  return store.shardOf === undefined ? guarded : acrossShards(guarded, store.shardOf.bind(store))
}

function guardedStore(store: Store, settings: FailureSettings, reports: FailureReports): Store {
  const guard = guardOf(store, settings, reports)
  const closeSetup = checkSetup(store, settings)
  const shards: Shard[] = []
  return {
    apply(ops, call) {
      const op = ops[0]!
      if (guard.fallback.settles(op, call)) return
      const nowMs = guard.deadlines.now()
      const number = store.shardOf?.(op) ?? 0
      shards[number] ??= shardOf(guard, nowMs)
      const shard = shards[number]
      if (!shard.breaker.admits(nowMs)) {
        answer(shard, ops, call)
        return
      }
      const guarded = new GuardedCall(shard, ops, call, nowMs)
      send(store, ops, guarded)
      guarded.watch()
    },
    close() {
      closeSetup()
      guard.deadlines.close()
    },
  }
}

type Guard = ReturnType<typeof guardOf>

/** The state that all of a store's shards have in common. */
function guardOf(store: Store, settings: FailureSettings, reports: FailureReports) {
  const overrides = new SeenOverrides()
  return {
    store,
    settings,
    reports,
    overrides,
    fallback: new Fallback(settings, reports.counts, overrides),
    health: new StoreHealth(reports, settings.onStoreError, store),
    late: new LateCharges(store),
    deadlines: new Deadlines(),
  }
}

/** A store, or a part of a Cluster that can be down on its own. */
function shardOf(guard: Guard, nowMs: number) {
  const breaker = new Breaker(guard.settings.breaker, guard.health, nowMs)
  return { guard, breaker, clock: new ClockWatch() }
}

type Shard = ReturnType<typeof shardOf>

/** Answers a call without the store. Returns whether the caller may pass. */
function answer(
  shard: Shard,
  ops: readonly Op[],
  call: Call,
  error?: StoreUnavailableError,
  isOverload = false,
) {
  const { reports, fallback, health } = shard.guard
  health.countRequest()
  if (error === undefined) reports.counts.storeErrors.down++
  const nowMs = performance.now()
  const answers = fallback.answer(ops, nowMs, shard.breaker.pauseAt(nowMs), isOverload)
  if (answers === undefined) call.reject(error ?? reports.named(health.error()))
  else call.resolve(answers, 0)
  return answers !== undefined && (answers[0] as ConsumeOutcome).admitted > 0
}

/** Errors about one key or this process, not about the store's health. */
const IS_ANSWER: readonly string[] = ['invalid_state', 'full']

const NO_DIAGNOSIS = { message: 'the store did not answer' }

/** A call to the store. It can be answered after its deadline, when its units have already been charged. */
class GuardedCall implements Call, Due {
  isSettled = false
  readonly #shard: Shard
  readonly #ops: readonly Op[]
  readonly #call: Call
  /** When the call was sent, or when the store first connected, whichever is later. */
  #sentAtMs: number
  /** If the call is an attempt to end an outage: the number of that outage. Otherwise 0. */
  readonly #outage: number
  #isAnswered = false
  /** Whether the call failed but the caller may pass. If so, a late charge is correct. */
  #mayPass = false

  constructor(shard: Shard, ops: readonly Op[], call: Call, sentAtMs: number) {
    this.#shard = shard
    this.#ops = ops
    this.#call = call
    this.#sentAtMs = sentAtMs
    this.#outage = shard.breaker.outage
  }

  get dueAtMs(): number {
    return this.#sentAtMs + this.#shard.guard.settings.timeoutMs
  }

  /** Starts the deadline. If the store is still starting, waits for that first. */
  watch(): void {
    if (this.isSettled) return
    const { deadlines, store } = this.#shard.guard
    const started = store.connection?.whenStarted()
    if (started === undefined) deadlines.watch(this)
    else
      void started.then(() => {
        this.#sentAtMs = deadlines.now()
        if (!this.isSettled) deadlines.watch(this)
      })
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
      // The store's answer is invalid.
      this.#call.reject(asUnavailable(error))
    }
  }

  reject(reason: unknown): void {
    if (this.isSettled) return
    this.isSettled = true
    const { breaker, guard } = this.#shard
    if (reason instanceof SlidegateError) {
      breaker.succeeded(this.#sentAtMs, this.#isAttempt)
      this.#call.reject(reason)
      return
    }
    const error = asUnavailable(reason)
    const isOverload = this.#isOverload(error)
    this.#tellBreaker(error, isOverload)
    const named = guard.reports.named(error)
    guard.reports.storeFailed(named)
    this.#mayPass = answer(this.#shard, this.#ops, this.#call, named, isOverload)
  }

  giveUp(): void {
    const { store, settings } = this.#shard.guard
    this.reject(noAnswer(store.connection?.diagnose() ?? NO_DIAGNOSIS, settings.timeoutMs))
  }

  get #isAttempt(): boolean {
    return this.#outage !== 0 && this.#outage === this.#shard.breaker.outage
  }

  #learn(outcomes: readonly Outcome[]): void {
    const { breaker, clock, guard } = this.#shard
    const outcome = outcomes[0]
    if (outcome !== undefined && 'source' in outcome && outcome.source !== 'store') {
      // The deny cache or a lease may have answered, even though the store is down.
      if (this.#isAttempt) breaker.notAsked(this.#sentAtMs)
      return
    }
    breaker.succeeded(this.#sentAtMs, this.#isAttempt)
    const nowMs = guard.deadlines.now()
    // All parts belong to one limiter.
    if (this.#ops[0]!.parts[0]?.set.isOverridable) {
      for (let i = 0; i < this.#ops.length; i++) guard.overrides.learn(this.#ops[i]!, outcomes[i], nowMs)
    }
    // A repeated request has the time of the original request, which may be long ago.
    if (outcome === undefined || !('atMs' in outcome) || outcome.repeats !== undefined) return
    const byMs = clock.stepAt(outcome.atMs, this.#sentAtMs, nowMs)
    if (byMs !== 0) guard.health.clockStepped(byMs, nowMs)
  }

  /** Whether the op timed out because of other requests for its keys. */
  #isOverload({ reason }: StoreUnavailableError): boolean {
    if (reason !== 'timeout' && reason !== 'overload') return false
    const { store, settings } = this.#shard.guard
    // A request that is rejected immediately hasn't waited, but other requests have.
    const sinceMs = reason === 'timeout' ? this.#sentAtMs : this.#sentAtMs - settings.timeoutMs
    return store.isOverloaded?.(this.#ops[0]!, sinceMs) === true
  }

  #tellBreaker(error: StoreUnavailableError, isOverload: boolean): void {
    const { breaker } = this.#shard
    if (IS_ANSWER.includes(error.reason)) {
      breaker.succeeded(this.#sentAtMs, this.#isAttempt)
    } else if (isOverload) {
      // The store hasn't failed. Too many requests for the key caused the timeout.
      if (this.#isAttempt) breaker.notAsked(performance.now())
    } else if (error.reason !== 'overload' || this.#isAttempt) {
      breaker.failed(performance.now(), error, this.#isAttempt)
    }
  }

  /** Refunds requests that were admitted too late. Such a request has already failed, or was decided without the store. */
  #returnCharges(outcomes: readonly Outcome[], position: number): void {
    const { late } = this.#shard.guard
    this.#ops.forEach((op, i) => {
      const outcome = outcomes[i] as ConsumeOutcome
      // A caller that chose the id can repeat the request, and then gets this answer.
      if (op.type !== 'consume' || op.mayRepeat) return
      if (outcome.source !== 'store' || position >= outcome.admitted) return
      // A failed reservation is treated as if the store had never made it.
      if (this.#mayPass && op.reservation === undefined) late.release(op)
      else late.add(op, outcome, position, Math.min(outcome.admitted, position + op.count))
    })
  }
}
