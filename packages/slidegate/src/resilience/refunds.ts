// Refunds unused charges: for requests that were answered too late, and for unspent leases.

import { isCounted } from '../decision.ts'
import type { ConsumeOp, RefundOp } from '../ops/all.ts'
import { type ConsumeOutcome, partsInForce } from '../ops/request.ts'
import type { Op } from '../ops/table.ts'
import type { Clock } from '../runtime/clock.ts'
import { send } from '../stores/call.ts'
import { costsOf, roomsOf } from '../stores/outcome.ts'
import type { Store } from '../stores/store.ts'

/** Returns the refunds for the requests at these positions. Each has the time of its charge. */
export function refundsOf(op: ConsumeOp, outcome: ConsumeOutcome, from: number, end: number): RefundOp[] {
  const { requestId } = op
  const { source, atMs, repeats, debits } = outcome
  if (!isCounted(source) || repeats !== undefined) return []
  const parts = partsInForce(op.parts, outcome.overrides)
  const costs = debits && costsOf(op, debits)
  const rooms = roomsOf(parts, op.cost, outcome.limits)
  let first = 0
  const units = parts.flatMap(({ set }) => {
    const ofPart = set.logs.map(({ role, shadow, serves }) => {
      const i = first + serves[0]!
      if (role !== 'count' || costs?.[i] === 0) return 0
      // A shadow limit was charged only for the requests that it had room for.
      return op.cost * Math.max(0, (shadow ? Math.min(end, rooms[i]!) : end) - from)
    })
    first += set.limits.length
    return ofPart
  })
  const amounts = Array.from(new Set(units)).filter((amount) => amount > 0)
  return amounts.map((amount) => {
    const charged = units.map((each) => each === amount)
    const refund: RefundOp = { type: 'refund', parts: op.parts, units: amount, atMs, charged, requestId }
    if (debits !== undefined) return { ...refund, debits }
    return source === 'fallback' ? { ...refund, source } : refund
  })
}

/** How long a refund may take, in milliseconds. If a refund is lost, the charge still expires with the window. */
export const GIVE_UP_MS = 500

export function sendRefunds(
  store: Store,
  ops: readonly Op[],
  clock: Clock = () => performance.now(),
  whenDone: () => void = () => {},
): void {
  const sentAtMs = clock()
  let isDone = false
  const done = () => {
    isDone = true
    whenDone()
  }
  send(store, ops, {
    get isSettled() {
      return isDone || clock() - sentAtMs > GIVE_UP_MS
    },
    resolve: done,
    reject: done,
  })
}

/** A range of positions among requests that were decided together. */
interface Range {
  readonly op: ConsumeOp
  readonly outcome: ConsumeOutcome
  readonly from: number
  end: number
}

/** Refunds requests that the store charged only after they had failed. */
export class LateCharges {
  readonly store: Store
  #ranges: Range[] = []

  constructor(store: Store) {
    this.store = store
  }

  add(op: ConsumeOp, outcome: ConsumeOutcome, from: number, end: number): void {
    const last = this.#ranges.at(-1)
    if (last?.outcome === outcome && last.end === from) {
      last.end = end
      return
    }
    // The answers to requests that were decided together arrive in the same tick, so one op can refund them all.
    if (last === undefined) queueMicrotask(() => this.#return())
    this.#ranges.push({ op, outcome, from, end })
  }

  /** Releases a concurrency slot. Its caller was admitted without the store, so won't release it. */
  release({ parts, cost: units, requestId }: ConsumeOp): void {
    const isHeld = parts.some(({ set }) => set.keeps.has('holder'))
    if (isHeld && requestId !== undefined)
      sendRefunds(this.store, [{ type: 'release', parts, requestId, units }])
  }

  #return(): void {
    const ranges = this.#ranges
    this.#ranges = []
    for (const { op, outcome, from, end } of ranges) {
      for (const refund of refundsOf(op, outcome, from, end)) sendRefunds(this.store, [refund])
    }
  }
}
