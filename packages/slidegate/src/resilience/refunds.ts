import { isCounted } from '../decision.ts'
import type { Log } from '../limits/limit-set.ts'
import { costsOf } from '../stores/outcome.ts'
import { type ConsumeOp, type ConsumeOutcome, partsInForce, type RefundOp } from '../stores/store.ts'

/**
 * What returns the requests at these positions, to the very instant of their charge. A shadow limit was charged only for
 * those that it had room for; what no limit reads was not charged.
 */
export function refundsOf(op: ConsumeOp, outcome: ConsumeOutcome, from: number, end: number): RefundOp[] {
  const { parts, requestId } = op
  const { source, atMs, repeats, debits } = outcome
  if (!isCounted(source) || repeats !== undefined) return []
  const costs = debits && costsOf(op, debits)
  let first = 0
  const units = partsInForce(parts, outcome.overrides).flatMap(({ set }) => {
    const ofPart = set.logs.map((log) => unitsIn(log, first, op, outcome, from, end, costs))
    first += set.limits.length
    return ofPart
  })
  const amounts = Array.from(new Set(units)).filter((amount) => amount > 0)
  return amounts.map((amount) => {
    const charged = units.map((each) => each === amount)
    const refund: RefundOp = { type: 'refund', parts, units: amount, atMs, charged, requestId }
    if (debits !== undefined) return { ...refund, debits }
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
  costs: readonly number[] | undefined,
): number {
  const { role, shadow, params, serves } = log
  if (role !== 'count') return 0
  const i = first + serves[0]!
  if (costs?.[i] === 0) return 0
  if (!shadow) return op.cost * (end - from)
  const rooms = serves.map((limit, j) => params.limits[j]! - outcome.limits[3 * (first + limit)]!)
  const room = Math.max(0, Math.floor(Math.min(...rooms) / op.cost))
  return op.cost * Math.max(0, Math.min(end, room) - from)
}
