// A lease: one op that decides waiting requests, and charges for future ones in advance.

import { resetOf } from '../../ops/numbers.ts'
import type { Clock } from '../../runtime/clock.ts'
import { limitsInForce } from '../../stores/outcome.ts'
import type { Call, ConsumeOp, ConsumeOutcome, Outcome, RefundOp } from '../../stores/store.ts'
import { GIVE_UP_MS, refundsOf } from '../refunds.ts'

/** Called with the store's answer. */
export interface Leaseholder {
  answered(lease: Lease, outcomes: readonly Outcome[], position: number): void
  failed(lease: Lease, error: unknown): void
}

/**
 * One op with a count, for waiting requests and some future ones.
 *
 * While it is held, each new request takes the next position. If all waiting requests time out, it still waits briefly for the
 * answer, to return the units.
 */
export class Lease implements Call {
  readonly op: ConsumeOp
  /** The requests that wait for it, in order. */
  readonly calls: readonly Call[]
  readonly #clock: Clock
  readonly #sentAtMs: number
  readonly #holder: Leaseholder
  #isAnswered = false
  /** The outcomes, while the lease is held. */
  #outcomes: readonly ConsumeOutcome[] = []
  #spent = 0
  #lifeMs = 0

  constructor(op: ConsumeOp, calls: readonly Call[], clock: Clock, holder: Leaseholder) {
    this.op = op
    this.calls = calls
    this.#clock = clock
    this.#sentAtMs = clock()
    this.#holder = holder
  }

  /** Whether no request is waiting for it any more. */
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
    this.#spent = spent
    // Ends no later than the reset of any enforced limit. Otherwise a unit charged in one fixed window could be spent in the
    // next.
    const resetsMs = limitsInForce(this.op, outcome).flatMap(({ shadow }, i) =>
      shadow ? [] : [resetOf(outcome.limits, i)],
    )
    this.#lifeMs = Math.min(this.op.leaseMs, ...resetsMs)
  }

  get outcome(): ConsumeOutcome {
    return this.#outcomes[0]!
  }

  /** Number of requests that used it. */
  get spent(): number {
    return this.#spent
  }

  get left(): number {
    return this.outcome.admitted - this.#spent
  }

  get endsAtMs(): number {
    return this.#sentAtMs + this.#lifeMs
  }

  /**
   * Whether it may be spent.
   *
   * Its time starts before it was sent and ends a millisecond early, because the store's clock counts whole milliseconds. So it
   * ends here before it ends in the store.
   */
  isLiveAt(nowMs: number): boolean {
    const passedMs = nowMs - this.#sentAtMs
    return passedMs >= 0 && passedMs <= this.#lifeMs - 1
  }

  spendOn(call: Call): void {
    call.resolve(this.#outcomes, this.#spent++)
  }

  /** How many requests would use it during the whole `leaseMs`, at the current rate. */
  demandAt(nowMs: number): number {
    return Math.ceil((this.#spent * this.op.leaseMs) / Math.max(1, nowMs - this.#sentAtMs))
  }

  /** The refunds for all units left. */
  refunds(): RefundOp[] {
    return refundsOf(this.op, this.outcome, this.#spent, this.outcome.admitted)
  }
}
