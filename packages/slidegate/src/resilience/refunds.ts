import { isCounted } from '../decision.ts'
import type { Log } from '../limits/limit-set.ts'
import { type ConsumeOp, type ConsumeOutcome, type RefundOp, takesOnce } from '../stores/store.ts'

/**
 * What returns the requests at these positions, to the very instant of their charge. A shadow limit was charged only for
 * those that it had room for; what no limit reads was not charged.
 */
export function refundsOf(op: ConsumeOp, outcome: ConsumeOutcome, from: number, end: number): RefundOp[] {
  const { parts, requestId } = op
  const { source, atMs, isRepeat, instants, sources } = outcome
  if (!isCounted(source) || isRepeat) return []
  let first = 0
  const units = parts.flatMap(({ set }) => {
    const ofPart = set.logs.map((log) => unitsIn(log, first, op, outcome, from, end))
    first += set.limits.length
    return ofPart
  })
  const amounts = Array.from(new Set(units)).filter((amount) => amount > 0)
  return amounts.map((amount) => {
    const charged = units.map((each) => each === amount)
    const refund: RefundOp = { type: 'refund', parts, units: amount, atMs, charged, requestId }
    if (instants !== undefined) return { ...refund, instants, sources }
    return source === 'fallback' ? { ...refund, source } : refund
  })
}

/** @param first the number of limits of the parts before the log's */
function unitsIn(
  log: Log,
  first: number,
  op: ConsumeOp,
  outcome: ConsumeOutcome,
  from: number,
  end: number,
): number {
  const { role, shadow, params, serves } = log
  if (role !== 'count') return 0
  const i = first + serves[0]!
  if (takesOnce(log, op) && outcome.costs?.[i] === 0) return 0
  if (!shadow) return op.cost * (end - from)
  const room = Math.max(0, Math.floor((params.limits[0]! - outcome.limits[3 * i]!) / op.cost))
  return op.cost * Math.max(0, Math.min(end, room) - from)
}
