// Refunds units of a charge.

import { isCounted } from '../decision.ts'
import { entriesOf } from '../limits/limit-set.ts'
import { find, giveBack } from './driver.ts'
import { type Loaded, NAMED, type OpKind } from './op.ts'
import type { AnyOp, Debit, Named } from './request.ts'

export interface RefundOp extends AnyOp, Named {
  readonly type: 'refund'
  readonly units: number
  readonly atMs: number
  /** For each log, across all parts: whether it was charged. A shadow limit without room wasn't charged. */
  readonly charged: readonly boolean[]
  /** The source of the charge, if it wasn't the store. */
  readonly source?: 'fallback'
  /** If set, used instead of `atMs` and `source`; see `ConsumeOutcome.debits`. */
  readonly debits?: readonly Debit[] | undefined
}

export interface RefundOutcome {
  /** The units refunded per log, across all parts, in order. */
  readonly returned: readonly number[]
}

export const refund: OpKind<RefundOp, RefundOutcome> = {
  effect: 'free',
  work: 'take',
  counts: true,
  fields: { units: 'units', atMs: 'whole', charged: 'flagPerLog', debits: 'debitPerPart?', ...NAMED },
  leavesStamps: true,

  apply(op, { loaded, nowMs }) {
    const isCharged = !op.mayRepeat || isStillCharged(loaded, nowMs, op)
    const returned = loaded.map((held, i) =>
      isCharged && op.charged[i] ? giveBack(held, nowMs, op.atMs, op.units, op.requestId) : 0,
    )
    return { returned }
  },

  answer: (reply) => ({ returned: reply.unitsPerLog('returned') }),

  forServer(op, debit) {
    const { source, atMs } = debit ?? op
    if ((source !== undefined && !isCounted(source)) || !op.charged.includes(true)) return undefined
    const { debits: _, source: __, ...asked } = op
    return { ...asked, atMs, ...(source === 'fallback' && { source }) }
  },
}

/** Whether the logs still have the request. If it was repeated, only the first refund returns units. */
function isStillCharged(loaded: Loaded, nowMs: number, { requestId, units, atMs }: RefundOp): boolean {
  const enforced = loaded.filter(({ log }) => !log.shadow)
  const are = enforced.some(({ log }) => entriesOf(log) === 'request') ? 'request' : 'holder'
  return enforced.every((held) => {
    if (entriesOf(held.log) !== are) return true
    const entry = find(held, nowMs, requestId!)
    return entry?.units === units && (are === 'holder' || entry.atMs === atMs)
  })
}
