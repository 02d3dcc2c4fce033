import { limitsInForce } from '../../stores/outcome.ts'
import type { Call, ConsumeOp, ConsumeOutcome, Outcome, RefundOp } from '../../stores/store.ts'
import { refundsOf } from '../refunds.ts'

/**
 * Requests that were admitted before they came. The store has decided them together, as one op with a count; as they
 * come, each takes the next position.
 */
export class Lease {
  readonly outcome: ConsumeOutcome
  readonly #outcomes: readonly Outcome[]
  readonly #op: ConsumeOp
  readonly #sentAtMs: number
  readonly #lifeMs: number
  #spent: number

  /** @param spent requests that were waiting for it, at the first positions */
  constructor(op: ConsumeOp, outcome: ConsumeOutcome, sentAtMs: number, spent: number) {
    this.outcome = { ...outcome, source: 'lease' }
    this.#outcomes = [this.outcome]
    this.#op = op
    this.#sentAtMs = sentAtMs
    this.#spent = spent
    let lifeMs = op.leaseMs
    limitsInForce(op, outcome).forEach(({ shadow }, i) => {
      // A window that is empty before the lease ends is one that leases do not lengthen, such as a fixed one: what was
      // charged in it may not be spent in the next.
      if (!shadow) lifeMs = Math.min(lifeMs, outcome.limits[3 * i + 2]!)
    })
    this.#lifeMs = lifeMs
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
   * Whether its time has not passed. That counts from before it was sent, so it is over here before it is in the
   * store, whose clock shows whole milliseconds and may have been close to its next when it charged.
   */
  isLiveAt(nowMs: number): boolean {
    const passedMs = nowMs - this.#sentAtMs
    return passedMs >= 0 && passedMs <= this.#lifeMs - 1
  }

  spendOn(call: Call): void {
    call.resolve(this.#outcomes, this.#spent++)
  }

  /** Requests that it would be spent on in all of `leaseMs`, going by those until now. */
  demandAt(nowMs: number): number {
    return Math.ceil((this.#spent * this.#op.leaseMs) / Math.max(1, nowMs - this.#sentAtMs))
  }

  /** What returns all that is left. */
  refunds(): RefundOp[] {
    return refundsOf(this.#op, this.outcome, this.#spent, this.outcome.admitted)
  }
}
