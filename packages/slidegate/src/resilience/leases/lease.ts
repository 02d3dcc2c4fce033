// A lease: requests that are decided together, some of them before they come.

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
 * One op with a count, for requests that wait and for some that will come. Once it is held, each that comes takes the next
 * position. If all that wait time out, the answer is still awaited for a moment, to return what it grants.
 */
export class Lease implements Call {
  readonly op: ConsumeOp
  /** Those that wait for it, in order. */
  readonly calls: readonly Call[]
  readonly #clock: Clock
  readonly #sentAtMs: number
  readonly #holder: Leaseholder
  #isAnswered = false
  /** Once it is held. */
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

  /** Whether no request waits for it any more. */
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
    // A window that is empty before the lease ends isn't extended by leases, such as a fixed one: a charge in it must not be
    // spent in the next.
    const resetsMs = limitsInForce(this.op, outcome).flatMap(({ shadow }, i) =>
      shadow ? [] : [resetOf(outcome.limits, i)],
    )
    this.#lifeMs = Math.min(this.op.leaseMs, ...resetsMs)
  }

  get outcome(): ConsumeOutcome {
    return this.#outcomes[0]!
  }

  /** Requests that it has been spent on. */
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
   * Whether it may be spent. Its time counts from before it was sent, and ends a millisecond early: the store's clock shows
   * whole ones. So it ends here before it ends in the store.
   */
  isLiveAt(nowMs: number): boolean {
    const passedMs = nowMs - this.#sentAtMs
    return passedMs >= 0 && passedMs <= this.#lifeMs - 1
  }

  spendOn(call: Call): void {
    call.resolve(this.#outcomes, this.#spent++)
  }

  /** Requests that it would be spent on in all of `leaseMs`, at the rate so far. */
  demandAt(nowMs: number): number {
    return Math.ceil((this.#spent * this.op.leaseMs) / Math.max(1, nowMs - this.#sentAtMs))
  }

  /** The refunds of all that is left. */
  refunds(): RefundOp[] {
    return refundsOf(this.op, this.outcome, this.#spent, this.outcome.admitted)
  }
}
