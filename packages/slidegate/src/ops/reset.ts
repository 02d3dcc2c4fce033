// Deletes every log.

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

  /** Deletes the state without reading it. */
  json: () => ({ isUnread: true }),
}
