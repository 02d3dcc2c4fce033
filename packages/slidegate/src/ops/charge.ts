// Charges every log, even beyond its limit. The script runs it as a forced decision.

import { costIn } from './driver.ts'
import { stateOf } from './memory.ts'
import { FORCED, type OpKind } from './op.ts'
import type { AnyOp, Named } from './request.ts'

export interface ChargeOp extends AnyOp, Named {
  readonly type: 'charge'
  readonly units: number
}

export const charge: OpKind<ChargeOp, undefined> = {
  effect: 'charge',
  work: 'find',
  counts: true,
  fields: { units: 'units', requestId: 'id?', mayRepeat: 'flag?' },

  apply(op, memory) {
    if (!memory.makeRoom()) {
      if (memory.onFull === 'allow') return
      throw memory.full()
    }
    const { loaded, nowMs } = memory
    for (const held of loaded) {
      if (held.log.role !== 'count') continue
      const units = costIn(held, nowMs, op.units, op)
      // A shadow limit that already has the request doesn't renew it.
      if (units === 0) continue
      const { kind, params } = held.log
      kind.commit(stateOf(held), params, nowMs, { units, leaseMs: 0, entry: op.requestId ?? '' })
    }
    memory.keep()
  },

  encode: () => FORCED,
}
