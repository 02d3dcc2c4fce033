// Two operations, which renew or release a held entry. The Redis script runs them as decisions with the HOLD option.

import { entriesOf } from '../limits/limit-set.ts'
import { giveBack } from './driver.ts'
import { HOLD, LOOK, type LoadedLog, type OpKind, stateOf } from './op.ts'
import type { AnyOp, Debit } from './request.ts'

export interface HoldOp extends AnyOp {
  readonly type: 'extend' | 'release'
  readonly requestId: string
  readonly units: number
  readonly source?: 'fallback'
  /** If set, used instead of `source`; see `ConsumeOutcome.debits`. */
  readonly debits?: readonly Debit[] | undefined
}

export interface HoldOutcome {
  /** Whether the entry still counted in the logs of all enforced limits that store holders. */
  readonly held: boolean
}

export const extend: OpKind<HoldOp, HoldOutcome> = {
  ...holding(({ units, requestId }, held, nowMs) => {
    const { kind, params } = held.log
    return kind.entries!.renew(stateOf(held), params, nowMs, requestId, units)
  }),
  effect: 'renew',
}

export const release: OpKind<HoldOp, HoldOutcome> = holding(
  ({ units, requestId }, held, nowMs) => giveBack(held, nowMs, 0, units, requestId) > 0,
)

/** @param change returns whether the log still counted the entry */
function holding(
  change: (op: HoldOp, held: LoadedLog, nowMs: number) => boolean,
): OpKind<HoldOp, HoldOutcome> {
  return {
    effect: 'free',
    work: 'find',
    counts: true,
    fields: { units: 'units', requestId: 'id' },

    apply(op, { loaded, nowMs }) {
      const holders = loaded.filter(({ log }) => entriesOf(log) === 'holder')
      const lost = holders.filter((each) => !change(op, each, nowMs))
      return { held: lost.every(({ log }) => log.shadow) }
    },

    encode({ type }, words) {
      words.push(type === 'extend' ? '1' : '0')
      return LOOK + HOLD
    },

    answer: (reply) => ({ held: reply.flag('held', 'every') }),

    forServer({ debits: _, source: own, ...op }, debit) {
      const source = debit === undefined ? own : debit.source
      return { ...op, ...(source === 'fallback' && { source }) }
    },
  }
}
