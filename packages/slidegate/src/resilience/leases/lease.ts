// A lease: one op that decides waiting requests, and charges for future ones in advance.

import { resetOf } from '../../ops/numbers.ts'
import type { Clock } from '../../runtime/clock.ts'
import { limitsInForce } from '../../stores/outcome.ts'
import type { Call, ConsumeOp, ConsumeOutcome, Outcome, RefundOp } from '../../stores/store.ts'
import { GIVE_UP_MS, refundsOf } from '../refunds.ts'

export interface Leaseholder {
  answered(lease: Lease, outcomes: readonly Outcome[], position: number): void
  failed(lease: Lease, error: unknown): void
}

/** Requests use a held lease in order of position. If all waiting requests time out, it stays pending briefly, to return its units. */
export class Lease implements Call {
  readonly op: ConsumeOp
  /** The requests that wait for it, in order. */
  readonly calls: readonly Call[]
  /** How many requests used it. */
  spent = 0
  /** When it ends, once it is held. */
  endsAtMs: number
  readonly #clock: Clock
  readonly #sentAtMs: number
  readonly #holder: Leaseholder
  #isAnswered = false
  #outcomes: readonly ConsumeOutcome[] = []

  constructor(op: ConsumeOp, calls: readonly Call[], clock: Clock, holder: Leaseholder) {
    this.op = op
    this.calls = calls
    this.#clock = clock
    this.#sentAtMs = this.endsAtMs = clock()
    this.#holder = holder
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
    this.#holder.answered(this, outcomes, position)
  }

  reject(error: unknown): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    this.#holder.failed(this, error)
  }

  /** @param spent requests that waited for it, at the first positions */
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

  /** Whether it may be spent. It ends earlier here than in the store, whose clock counts whole milliseconds. */
  isLiveAt(nowMs: number): boolean {
    return nowMs >= this.#sentAtMs && nowMs <= this.endsAtMs - 1
  }

  spendOn(call: Call): void {
    call.resolve(this.#outcomes, this.spent++)
  }

  /** How many requests would use it during the whole `leaseMs`, at the current rate. */
  demandAt(nowMs: number): number {
    return Math.ceil((this.spent * this.op.leaseMs) / Math.max(1, nowMs - this.#sentAtMs))
  }

  refunds(): RefundOp[] {
    return refundsOf(this.op, this.outcome, this.spent, this.outcome.admitted)
  }
}
