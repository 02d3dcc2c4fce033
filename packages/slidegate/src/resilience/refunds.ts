import type { ConsumeOp, ConsumeOutcome, RefundOp } from '../stores/store.ts'

/** What returns the requests at these positions: a shadow limit was charged only for those that it had room for. */
export function refundsOf(op: ConsumeOp, outcome: ConsumeOutcome, from: number, end: number): RefundOp[] {
  const { parts, cost, requestId, value } = op
  const { limits, logs } = parts[0]!.set
  const units = logs.map(({ shadow, serves }) => {
    if (!shadow) return cost * (end - from)
    const i = serves[0]!
    const room = Math.max(0, Math.floor((limits[i]!.limit - outcome.limits[3 * i]!) / cost))
    return cost * Math.max(0, Math.min(end, room) - from)
  })
  const amounts = Array.from(new Set(units)).filter((amount) => amount > 0)
  return amounts.map((amount) => {
    const charged = units.map((each) => each === amount)
    return { type: 'refund', parts, units: amount, atMs: outcome.atMs, charged, requestId, value }
  })
}
