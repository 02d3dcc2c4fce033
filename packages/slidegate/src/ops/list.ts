// Lists the entries of logs.

import type { Entry } from '../limits/limit.ts'
import { entriesOf } from '../limits/limit-set.ts'
import { type OpKind, stateOf } from './op.ts'
import type { AnyOp } from './request.ts'

export interface ListOp extends AnyOp {
  readonly type: 'list'
}

export interface ListOutcome {
  /** The entries in every log, across all parts, oldest first. Empty for logs that store only totals. */
  readonly lists: readonly (readonly Entry[])[]
}

export const list: OpKind<ListOp, ListOutcome> = {
  effect: 'look',
  work: 'read',
  fields: {},

  apply(_, { loaded, nowMs }) {
    const lists = loaded.map((held) => {
      const { kind, params } = held.log
      return entriesOf(held.log) === undefined ? [] : kind.entries!.list(stateOf(held), params, nowMs)
    })
    return { lists }
  },

  answer: (reply) => ({ lists: reply.entriesPerLog('lists') }),
}
