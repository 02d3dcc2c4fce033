import type { ConsumeOp, ConsumeOutcome, Op, Store } from '../stores/store.ts'
import { ReturnCall } from './leases/lease-call.ts'
import { refundsOf } from './refunds.ts'

/** Requests that were decided together and came too late: from this position on, up to another. */
interface Range {
  readonly op: ConsumeOp
  readonly outcome: ConsumeOutcome
  readonly from: number
  end: number
}

/** Returns what was charged for requests that had given up by then. What gets lost on its way back leaves the window in time. */
export class LateCharges {
  readonly #store: Store
  #ranges: Range[] = []

  constructor(store: Store) {
    this.#store = store
  }

  /** The requests at these positions, or at this one, were admitted when nobody waited for them any more. */
  add(op: ConsumeOp, outcome: ConsumeOutcome, from: number, end: number = from + 1): void {
    const last = this.#ranges.at(-1)
    if (last?.outcome === outcome && last.end === from) {
      last.end = end
      return
    }
    // What was decided together comes in one tick, and goes back in one op.
    if (last === undefined) queueMicrotask(() => this.#return())
    this.#ranges.push({ op, outcome, from, end })
  }

  /** What a request holds is not its own where it passes without the store: nobody would release it. */
  release({ parts, cost: units, requestId }: ConsumeOp): void {
    const isHeld = parts.some(({ set }) => set.logs.some(({ kind }) => kind.entries?.are === 'holder'))
    if (isHeld && requestId !== undefined) this.#send({ type: 'release', parts, requestId, units })
  }

  #return(): void {
    const refunds: Op[] = this.#ranges.flatMap(({ op, outcome, from, end }) =>
      refundsOf(op, outcome, from, end),
    )
    this.#ranges = []
    for (const refund of refunds) this.#send(refund)
  }

  #send(op: Op): void {
    try {
      this.#store.apply(
        [op],
        new ReturnCall(
          () => {},
          () => performance.now(),
        ),
      )
    } catch {
      // As if it had been lost.
    }
  }
}
