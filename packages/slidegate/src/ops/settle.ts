// Settles a reservation, at most once: returns its unused units, or charges the extra units.

import { charge, find, giveBack } from './driver.ts'
import type { OpKind } from './op.ts'
import type { AnyOp } from './request.ts'

export interface SettleOp extends AnyOp {
  readonly type: 'settle'
  /** See `ConsumeOp.reservation`. */
  readonly reservation: string
  readonly units: number
  /** Actual units, 0 or more. */
  readonly actual: number
  /** For each log, across all parts, in order: whether the reservation charged it. */
  readonly charged: readonly boolean[]
  /** When each part was charged. Charges that were restamped after that aren't refunded. */
  readonly instants: readonly number[]
}

export interface SettleOutcome {
  /** Whether the reservation was still open. If not, nothing was changed. */
  readonly settled: boolean
  /** Units refunded per log, across all parts, in order. */
  readonly returned: readonly number[]
}

const NOT_SETTLED: SettleOutcome = { settled: false, returned: [] }

export const settle: OpKind<SettleOp, SettleOutcome> = {
  effect: 'free',
  work: 'take',
  counts: true,
  fields: {
    reservation: 'name',
    units: 'integer',
    actual: 'whole',
    charged: 'flagPerLog',
    instants: 'integerPerPart',
  },

  apply(op, { loaded, nowMs }) {
    const { reservation, units, actual } = op
    if (loaded.some(({ slot }) => slot === 0)) return NOT_SETTLED
    const chargedAtMs = new Map<number, number>()
    for (const held of loaded) {
      if (held.log.role !== 'reservations') continue
      const entry = find(held, nowMs, reservation)
      if (entry === undefined) return NOT_SETTLED
      chargedAtMs.set(held.part, entry.atMs)
    }
    const returned = loaded.map((held, i) => {
      const { kind, role } = held.log
      if (role === 'reservations') giveBack(held, nowMs, 0, 1, reservation)
      // The limits may now keep entries. If so, the extra units become an entry, except in a log of holders.
      const are = kind.entries?.are
      if (actual > units && role === 'count' && are !== 'holder') {
        charge(held, nowMs, actual - units, are && reservation)
      }
      const atMs = op.instants[held.part]!
      const isMine = op.charged[i] && chargedAtMs.get(held.part) === atMs
      return actual < units && isMine ? giveBack(held, nowMs, atMs, units - actual) : 0
    })
    return { settled: true, returned }
  },

  /** The part of each log, counted from 1, and the time of its charge. */
  json: ({ parts, instants }) => ({
    parts: parts.flatMap(({ set }, part) => set.logs.map(() => part + 1)),
    instants: parts.flatMap(({ set }, part) => set.logs.map(() => instants[part]!)),
  }),

  answer(reply) {
    const settled = reply.flag('settled', 'every')
    return { settled, returned: reply.unitsPerLog('returned', settled) }
  },
}
