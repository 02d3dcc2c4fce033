// A decision that writes nothing.

import { decided, look } from './driver.ts'
import type { OpKind } from './op.ts'
import type { ConsumeOutcome, RequestOp } from './request.ts'

/** Returns the outcome that `consume` would have. */
export interface PeekOp extends RequestOp {
  readonly type: 'peek'
  readonly count: 1
}

export const peek: OpKind<PeekOp, ConsumeOutcome> = {
  effect: 'look',
  work: 'write',
  counts: true,
  fields: { cost: 'units', count: 'one', requestId: 'id?', mayRepeat: 'flag?' },

  apply(op, memory) {
    const admitted = look(memory, op)
    return typeof admitted === 'number' ? decided(memory.loaded, memory.nowMs, admitted, op) : admitted
  },

  encode: () => 0,
  answer: (reply) => reply.decision(),
}
