// Requests for a leased key: waiting, or granted in advance.

import { StoreUnavailableError } from '../../errors.ts'
import type { ConsumeOp, PeekOp, RefundOp } from '../../ops/all.ts'
import { resetOf, usedOf } from '../../ops/numbers.ts'
import type { ConsumeOutcome, Part } from '../../ops/request.ts'
import type { Op, Outcome } from '../../ops/table.ts'
import type { Clock } from '../../runtime/clock.ts'
import { send } from '../../stores/call.ts'
import { limitsInForce, outcomeAt } from '../../stores/outcome.ts'
import type { Call, Store } from '../../stores/store.ts'
import { GIVE_UP_MS, refundsOf, sendRefunds } from '../refunds.ts'

/** A key is hot if it gets more requests than this per `leaseMs`. */
export const FEW = 5

const MAX_SIZE: number = 2 ** 20

/** The maximum share of the remaining units that a process leases in advance. */
const SHARE = 1 / 4

const MAX_WAITING = 65_536

/** One key may take this share of the places left for waiting requests. */
const SHARE_WAITING = 1 / 4

/** The state that all keys share. */
export interface Supply {
  readonly store: Store
  readonly clock: Clock
  waiting: number
}

/** A key with its pools, one for each limit set and cost. */
export class HotKey {
  readonly part: Part
  readonly supply: Supply
  readonly pools: Pool[] = []
  #waiting = 0

  constructor(supply: Supply, part: Part) {
    this.supply = supply
    this.part = part
  }

  find({ parts, cost }: ConsumeOp | PeekOp): Pool | undefined {
    const { set } = parts[0]!
    for (let i = 0; i < this.pools.length; i++) {
      const { op } = this.pools[i]!
      if (op.cost === cost && op.parts[0]!.set === set) return this.pools[i]
    }
    return undefined
  }

  get isOverloaded(): boolean {
    return this.#waiting >= SHARE_WAITING * (MAX_WAITING - this.supply.waiting)
  }

  count(waiting: number): void {
    this.#waiting += waiting
    this.supply.waiting += waiting
  }

  /** Call this before denying requests. If this key holds units, it returns them and sends the requests again. */
  askAgain(op: ConsumeOp, denied: readonly Call[]): boolean {
    const holding = this.pools.filter(({ isHolding }) => isHolding)
    if (holding.length === 0 || denied.length === 0) return false
    void Promise.all(holding.map((pool) => pool.giveBack())).then(() => {
      for (const call of denied) if (!call.isSettled) send(this.supply.store, [op], call)
    })
    return true
  }
}

/** Requests for a hot key that have the same limit set and cost. */
export class Pool {
  readonly key: HotKey
  readonly op: ConsumeOp
  readonly #leaseMs: number
  #lease: Lease | undefined
  #pending: Lease | undefined
  /** When the pending lease was requested, by `performance.now()`. */
  #askedAtMs = 0
  /** Requests that have arrived since the pending lease was requested, in order. */
  readonly #waiting: Call[] = []
  #size = 2 * FEW
  /** Number of requests that the store had room for, according to its last answer. */
  #room: number
  #hotAtMs: number
  #state: 'open' | 'closed' | 'void' = 'open'

  constructor(key: HotKey, op: ConsumeOp, leaseMs: number, outcome: ConsumeOutcome) {
    this.key = key
    this.op = op
    this.#leaseMs = leaseMs
    this.#room = roomAfter(op, outcome)
    this.#hotAtMs = key.supply.clock()
  }

  get isHolding(): boolean {
    return this.#lease !== undefined && this.#lease.left > 0
  }

  ask(call: Call): void {
    const lease = this.#spendable()
    if (lease !== undefined) {
      lease.spendOn(call)
    } else if (this.key.isOverloaded) {
      call.reject(new StoreUnavailableError('overload', 'too many requests are already waiting for leases'))
    } else {
      this.key.count(1)
      this.#waiting.push(call)
      if (this.#pending === undefined || this.#pending.isGivenUp) this.#take()
    }
  }

  isPendingSince(ms: number): boolean {
    return this.#pending !== undefined && this.#askedAtMs < ms
  }

  peek(): Outcome {
    const lease = this.#spendable()
    return lease && outcomeAt(this.op, lease.outcome, lease.spent)
  }

  /** First serves requests that waited for this lease. Newer requests get its remaining units, then the next lease. */
  answered(lease: Lease, outcomes: readonly Outcome[], position: number): void {
    const outcome = outcomes[0] as ConsumeOutcome
    const isDecided = outcome.source === 'store'
    const granted = Math.min(lease.op.count, Math.max(0, outcome.admitted - position))
    const calls = lease.calls.filter(isWaiting)
    const denied = calls.splice(granted)
    if (isDecided) {
      this.#room = roomAfter(lease.op, outcome)
      if (granted > calls.length) this.#keep(lease, outcome, position + calls.length, position + granted)
    }
    for (let i = 0; i < calls.length; i++) calls[i]!.resolve(outcomes, position + i)
    if (!isDecided || !this.key.askAgain(this.op, denied)) {
      for (let i = 0; i < denied.length; i++) denied[i]!.resolve(outcomes, position + granted + i)
    }
    this.#next(lease)
  }

  failed(lease: Lease, error: unknown): void {
    for (const call of lease.calls) if (!call.isSettled) call.reject(error)
    this.#next(lease)
  }

  /** Ends the lease if it has expired. Returns when to check again, or `undefined` if the key is no longer hot. */
  review(nowMs: number): number | undefined {
    if (this.#pending?.isSettled) this.#next(this.#pending)
    const lease = this.#lease
    if (lease?.isLiveAt(nowMs)) return lease.endsAtMs
    if (lease !== undefined && lease.spent > FEW) this.#hotAtMs = nowMs
    this.#end(nowMs)
    const isCold = this.#pending === undefined && !(nowMs - this.#hotAtMs < this.#leaseMs)
    return isCold ? undefined : nowMs + this.#leaseMs
  }

  giveBack(): Promise<void> {
    const lease = this.#lease
    this.#lease = undefined
    return lease === undefined ? Promise.resolve() : this.#refund(lease.refunds())
  }

  /** Refunds the units it holds. Units still in flight are refunded when they arrive. */
  close(): Promise<void> {
    this.#state = 'closed'
    return this.giveBack()
  }

  /** Drops units held or in flight, because the key was reset. Returns the waiting calls. */
  void(): readonly Call[] {
    this.#state = 'void'
    this.#lease = undefined
    return this.#takeWaiting(this.#waiting.length)
  }

  #takeWaiting(count: number): Call[] {
    this.key.count(-count)
    return this.#waiting.splice(0, count)
  }

  #spendable(): Lease | undefined {
    const lease = this.#lease
    return lease !== undefined && lease.left > 0 && lease.isLiveAt(this.key.supply.clock())
      ? lease
      : undefined
  }

  /** Requests a lease for the waiting requests and some future ones. */
  #take(): void {
    const nowMs = this.key.supply.clock()
    this.#hotAtMs = nowMs
    this.#end(nowMs)
    const calls = this.#takeWaiting(this.#waiting.length).filter(isWaiting)
    if (calls.length === 0) return
    const most = this.#state === 'open' ? Math.floor(this.#room * SHARE) : 0
    const more = Math.max(0, Math.min(this.#size - calls.length, most))
    const op = { ...this.op, count: calls.length + more, leaseMs: more > 0 ? this.#leaseMs : 0 }
    this.#pending = new Lease(op, calls, this.key.supply.clock, this)
    this.#askedAtMs = performance.now()
    send(this.key.supply.store, [op], this.#pending)
  }

  #keep(lease: Lease, outcome: ConsumeOutcome, from: number, end: number): void {
    if (this.#state === 'void') return
    if (lease === this.#pending && this.#state === 'open' && lease.op.leaseMs > 0) {
      lease.hold(outcome, from)
      if (lease.isLiveAt(this.key.supply.clock())) {
        this.#lease = lease
        return
      }
    }
    void this.#refund(refundsOf(lease.op, outcome, from, end))
  }

  #next(lease: Lease): void {
    if (this.#pending !== lease) return
    let served = 0
    for (; served < this.#waiting.length; served++) {
      const call = this.#waiting[served]!
      if (call.isSettled) continue
      const spendable = this.#spendable()
      if (spendable === undefined) break
      spendable.spendOn(call)
    }
    this.#takeWaiting(served)
    this.#pending = undefined
    if (this.#waiting.length > 0) this.#take()
  }

  /** Ends the lease. The demand for it sets the next lease's size. */
  #end(nowMs: number): void {
    const lease = this.#lease
    if (lease === undefined) return
    this.#lease = undefined
    if (lease.left > 0) {
      this.#size = Math.max(2 * FEW, lease.spent)
      void this.#refund(lease.refunds())
    } else {
      const demand = lease.demandAt(nowMs)
      if (demand > this.#size) this.#size = Math.min(2 * this.#size, demand, MAX_SIZE)
    }
  }

  #refund(refunds: readonly Op[]): Promise<void> {
    return new Promise((resolve) =>
      sendRefunds(this.key.supply.store, refunds, this.key.supply.clock, resolve),
    )
  }
}

/**
 * One op that decides the waiting requests and charges for later ones in advance.
 *
 * Requests use its units in order of position. If all waiting requests time out, the lease stays pending, so that its
 * units can be returned.
 */
class Lease implements Call {
  readonly op: ConsumeOp
  /** The requests that are waiting for the lease, in order. */
  readonly calls: readonly Call[]
  /** How many requests have used the lease. */
  spent = 0
  /** When the lease ends. Set when the store has granted it. */
  endsAtMs: number
  readonly #clock: Clock
  readonly #sentAtMs: number
  readonly #pool: Pool
  #isAnswered = false
  #outcomes: readonly ConsumeOutcome[] = []

  constructor(op: ConsumeOp, calls: readonly Call[], clock: Clock, pool: Pool) {
    this.op = op
    this.calls = calls
    this.#clock = clock
    this.#sentAtMs = this.endsAtMs = clock()
    this.#pool = pool
  }

  get isGivenUp(): boolean {
    return !this.#isAnswered && this.calls.every(({ isSettled }) => isSettled)
  }

  get isSettled(): boolean {
    return this.#isAnswered || (this.isGivenUp && this.#clock() - this.#sentAtMs > GIVE_UP_MS)
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    this.#pool.answered(this, outcomes, position)
  }

  reject(error: unknown): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    this.#pool.failed(this, error)
  }

  /** @param spent how many requests were waiting for the lease; they took its first units */
  hold(outcome: ConsumeOutcome, spent: number): void {
    this.#outcomes = [{ ...outcome, source: 'lease' }]
    this.spent = spent
    const enforced = limitsInForce(this.op, outcome).map(({ shadow }) => !shadow)
    // A unit charged in one fixed window must not be spent in the next.
    const resetsMs = enforced.flatMap((isEnforced, i) => (isEnforced ? resetOf(outcome.limits, i) : []))
    this.endsAtMs = this.#sentAtMs + Math.min(this.op.leaseMs, ...resetsMs)
  }

  get outcome(): ConsumeOutcome {
    return this.#outcomes[0]!
  }

  get left(): number {
    return this.outcome.admitted - this.spent
  }

  /** Whether units may be spent. Ends the lease 1 ms early, because the store's clock counts whole milliseconds. */
  isLiveAt(nowMs: number): boolean {
    return nowMs >= this.#sentAtMs && nowMs <= this.endsAtMs - 1
  }

  spendOn(call: Call): void {
    call.resolve(this.#outcomes, this.spent++)
  }

  /** How many requests would use the lease within `leaseMs` at the current rate. */
  demandAt(nowMs: number): number {
    return Math.ceil((this.spent * this.op.leaseMs) / Math.max(1, nowMs - this.#sentAtMs))
  }

  refunds(): RefundOp[] {
    return refundsOf(this.op, this.outcome, this.spent, this.outcome.admitted)
  }
}

function isWaiting(call: Call): boolean {
  return !call.isSettled
}

/** How many more requests with the op's cost fit after the op. */
function roomAfter(op: ConsumeOp, outcome: ConsumeOutcome): number {
  const rooms = limitsInForce(op, outcome).map(({ limit, shadow }, i) =>
    shadow ? Number.POSITIVE_INFINITY : Math.floor((limit - usedOf(outcome.limits, i)) / op.cost),
  )
  return Math.min(...rooms) - outcome.admitted
}
