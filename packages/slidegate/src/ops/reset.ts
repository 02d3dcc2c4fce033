// Forgets every log.

import type { OpKind } from './op.ts'
import type { AnyOp } from './request.ts'

export interface ResetOp extends AnyOp {
  readonly type: 'reset'
}

export const reset: OpKind<ResetOp, undefined> = {
  effect: 'free',
  work: 'remove',
  fields: {},
  leavesStamps: true,

  apply(_, memory) {
    memory.forget()
  },

  /** Whatever is stored, it is removed. */
  json: () => ({ isUnread: true }),
}
