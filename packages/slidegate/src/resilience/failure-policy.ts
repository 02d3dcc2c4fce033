import {
  asUnavailable,
  noAnswer,
  type Silence,
  SlidegateError,
  type StoreUnavailableError,
  type StoreUnavailableReason,
} from '../errors.ts'
import type { Announcer } from '../events.ts'
import type { Call, ConsumeOutcome, Op, Outcome, Store } from '../stores/store.ts'
import { Answers, MIN_WAIT_MS } from './answers.ts'
import { Breaker, type BreakerOptions } from './breaker.ts'
import { ClockWatch } from './clock-watch.ts'
import { Deadlines, type Due } from './deadlines.ts'
import type { FailurePolicy } from './failure-options.ts'
import { GuardedLocalStore } from './guarded-local-store.ts'
import { LateCharges } from './late-charges.ts'
import type { LocalStore } from './local-share.ts'
import { SeenOverrides } from './seen-overrides.ts'
import { StoreHealth } from './store-health.ts'

/** What has these reasons is the matter of one key, or of this process. */
const HAS_ANSWERED: readonly StoreUnavailableReason[] = ['state', 'full']

const SILENCE: Silence = { message: 'the store did not answer' }

/** A step of a clock that is seen so soon after another, and differs by so little, is taken for the same one. */
const SAME_STEP_MS = 1000

/** What may be down on its own: one server, or a part of a Cluster. */
interface Domain {
  readonly breaker: Breaker
  readonly clock: ClockWatch
}

/**
 * Makes every failure of a store a defined answer within a bounded time. A store that has not answered within `timeoutMs` is
 * given up, whatever its client waits for; one that fails too often is not asked, but for attempts now and then. What it
 * charges for those who have given up is returned, unless they were told that they may pass, or have chosen the id of
 * their request, by which they may ask again.
 */
export function withFailurePolicy(store: Store, policy: FailurePolicy): Store {
  if (store.applySync === undefined) return new GuardedStore(store, policy)
  return new GuardedLocalStore(store as LocalStore, policy)
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
  readonly #seen = new SeenOverrides()
  readonly #domains: (Domain | undefined)[] = []
  #steppedAtMs = Number.NEGATIVE_INFINITY
  #steppedByMs = 0

  constructor(store: Store, policy: FailurePolicy) {
    this.#store = store
    this.#breaker = policy.breaker
    this.timeoutMs = policy.timeoutMs
    this.#announcer = policy.announcer
    this.#health = new StoreHealth(policy.announcer, policy.onStoreError, store)
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
    const domain = this.#domainOf(op, nowMs)
    if (!domain.breaker.admits(nowMs)) {
      this.#answer(ops, call, domain)
      return
    }
    const guarded = new GuardedCall(this, domain, ops, call, nowMs)
    try {
      this.#store.apply(ops, guarded)
    } catch (error) {
      guarded.reject(error)
    }
    // What was answered in this process has no deadline to watch.
    if (guarded.isSettled) return
    const started = this.#store.connection?.whenStarted()
    if (started === undefined) this.deadlines.watch(guarded)
    else void started.then(() => this.#watchFromNow(guarded))
  }

  /** A deadline that includes the first connection would fail the first requests of a process. */
  #watchFromNow(guarded: GuardedCall): void {
    guarded.sentAtMs = this.deadlines.now()
    if (!guarded.isSettled) this.deadlines.watch(guarded)
  }

  close(): void {
    this.deadlines.close()
  }

  /** The store has answered in time. */
  answered({ domain, ops, sentAtMs, isAttempt }: GuardedCall, outcomes: readonly Outcome[]): void {
    const outcome = outcomes[0]
    if (outcome !== undefined && 'source' in outcome && outcome.source !== 'store') {
      // The deny cache and leases answer for the store, whether or not it could.
      if (isAttempt) domain.breaker.notAsked(sentAtMs)
      return
    }
    domain.breaker.succeeded(sentAtMs, isAttempt)
    const nowMs = this.deadlines.now()
    for (let i = 0; i < ops.length; i++) this.#seen.learn(ops[i]!, outcomes[i], nowMs)
    // The instant of a request that comes again is long past.
    if (outcome === undefined || !('atMs' in outcome) || outcome.repeats !== undefined) return
    const byMs = domain.clock.stepAt(outcome.atMs, sentAtMs, nowMs)
    if (byMs !== 0) this.#clockStepped(byMs)
  }

  /** Each part of a Cluster sees it: it is told once. */
  #clockStepped(byMs: number): void {
    const nowMs = this.deadlines.now()
    const isSame =
      nowMs - this.#steppedAtMs < SAME_STEP_MS && Math.abs(byMs - this.#steppedByMs) < SAME_STEP_MS
    this.#steppedAtMs = nowMs
    this.#steppedByMs = byMs
    if (isSame) return
    this.#announcer.tally.clockSteps++
    this.#announcer.tell('clockStep', { byMs })
  }

  noAnswer(): StoreUnavailableError {
    return noAnswer(this.#store.connection?.silence() ?? SILENCE, this.timeoutMs)
  }

  /** Answers whether the caller was told that it may pass. */
  failed({ domain, ops, call, sentAtMs, isAttempt }: GuardedCall, reason: unknown): boolean {
    if (reason instanceof SlidegateError) {
      domain.breaker.succeeded(sentAtMs, isAttempt)
      call.reject(reason)
      return false
    }
    const unnamed = asUnavailable(reason)
    const error = this.#announcer.named(unnamed)
    const isCrowd = this.#isCrowd(ops[0]!, error, sentAtMs)
    if (HAS_ANSWERED.includes(error.reason)) {
      domain.breaker.succeeded(sentAtMs, isAttempt)
    } else if (isCrowd) {
      // A key's own flood says nothing of the store.
      if (isAttempt) domain.breaker.notAsked(performance.now())
    } else if (error.reason !== 'overload' || isAttempt) {
      domain.breaker.failed(performance.now(), unnamed, isAttempt)
    }
    this.#announcer.storeFailed(error)
    return this.#answer(ops, call, domain, error, isCrowd)
  }

  /** Whether the op was not answered in time because of what else was asked for its keys. */
  #isCrowd(op: Op, { reason }: StoreUnavailableError, sentAtMs: number): boolean {
    if (reason !== 'timeout' && reason !== 'overload') return false
    // What is refused at once has not waited, but others have.
    const sinceMs = reason === 'timeout' ? sentAtMs : sentAtMs - this.timeoutMs
    return this.#store.isCrowded?.(op, sinceMs) === true
  }

  /** What is admitted now has been told something else: that it failed, or that it may pass without the store. */
  lateAnswer(ops: readonly Op[], outcomes: readonly Outcome[], position: number, mayPass: boolean): void {
    ops.forEach((op, i) => {
      const outcome = outcomes[i] as ConsumeOutcome
      // Whoever has chosen the id asks again with it, and is told of this one.
      if (op.type !== 'consume' || op.mayRepeat) return
      if (outcome.source !== 'store' || position >= outcome.admitted) return
      // A reservation that the store has not made in time settles as if it knew nothing of it.
      if (mayPass && op.reservation === undefined) this.#late.release(op)
      else this.#late.add(op, outcome, position, Math.min(outcome.admitted, position + op.count))
    })
  }

  /** Tells a call what the policy says. Answers whether that was that it may pass. */
  #answer(
    ops: readonly Op[],
    call: Call,
    { breaker }: Domain,
    error?: StoreUnavailableError,
    isCrowd = false,
  ): boolean {
    this.#health.decided()
    const { tally } = this.#announcer
    if (error === undefined) tally.storeErrors.down++
    const nowMs = performance.now()
    const pauseMs = Math.max(MIN_WAIT_MS, breaker.pauseAt(nowMs))
    const answers = this.#answers.to(ops, pauseMs, isCrowd, (op) =>
      this.#seen.of(op.parts, this.deadlines.now()),
    )
    if (answers === undefined) call.reject(error ?? this.#announcer.named(this.#health.error()))
    else {
      tally.count(answers)
      call.resolve(answers, 0)
    }
    return answers !== undefined && (answers[0] as ConsumeOutcome).admitted > 0
  }

  #domainOf(op: Op, nowMs: number): Domain {
    const number = this.#store.domainOf?.(op) ?? 0
    let domain = this.#domains[number]
    if (domain === undefined) {
      domain = { breaker: new Breaker(this.#breaker, this.#health, nowMs), clock: new ClockWatch() }
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
  /** Not before the store's first connection. */
  sentAtMs: number
  /** The outage in which it is to find out if the store answers again; 0 in none. */
  readonly #outage: number
  readonly #store: GuardedStore
  /** Whether the store has answered: a call that was given up hears it late. */
  #isAnswered = false
  /** Whether the caller was told that it may pass, so that what the store charges is right. */
  #mayPass = false

  constructor(store: GuardedStore, domain: Domain, ops: readonly Op[], call: Call, sentAtMs: number) {
    this.#store = store
    this.domain = domain
    this.ops = ops
    this.call = call
    this.sentAtMs = sentAtMs
    this.#outage = domain.breaker.isClosed ? 0 : domain.breaker.outage
  }

  get isAttempt(): boolean {
    return this.#outage !== 0 && this.#outage === this.domain.breaker.outage
  }

  get dueAtMs(): number {
    return this.sentAtMs + this.#store.timeoutMs
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    if (this.#isAnswered) return
    const isLate = this.isSettled
    this.isSettled = true
    this.#isAnswered = true
    if (isLate) {
      this.#store.lateAnswer(this.ops, outcomes, position, this.#mayPass)
      return
    }
    try {
      this.#store.answered(this, outcomes)
      this.call.resolve(outcomes, position)
    } catch (error) {
      // Not what a store answers.
      this.call.reject(asUnavailable(error))
    }
  }

  reject(error: unknown): void {
    if (this.isSettled) return
    this.isSettled = true
    this.#mayPass = this.#store.failed(this, error)
  }

  giveUp(): void {
    this.reject(this.#store.noAnswer())
  }
}
