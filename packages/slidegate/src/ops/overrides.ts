// Reads a page of all overrides of a limiter or dimension.

import type { OpKind } from './op.ts'
import type { AnyOp, OverridesOutcome } from './request.ts'

export interface OverridesOp extends AnyOp {
  readonly type: 'overrides'
  /** A single part, of any key. */
  readonly parts: AnyOp['parts']
  /** The bucket of the store, from 0. */
  readonly bucket: number
  /** Where the previous page ended: its `next`. `''` for the first page. */
  readonly after: string
}

export const overrides: OpKind<OverridesOp, OverridesOutcome> = {
  effect: 'look',
  work: 'page',
  fields: { bucket: 'bucket', after: 'place' },
  keys: 'index',
  apply: ({ parts, after }, memory) => memory.listOverrides(parts[0]!.set.limiter, after),
  json: () => ({ keys: 1 }),
  answer: (reply) => reply.page(),
}
