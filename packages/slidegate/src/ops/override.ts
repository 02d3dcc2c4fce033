// Writes an override, or reads a page of a limiter's or dimension's overrides.

import { type OpKind, stateOf } from './op.ts'
import type { AnyOp, OverrideChange, OverridesOutcome } from './request.ts'

export interface OverrideOp extends AnyOp, OverrideChange {
  readonly type: 'override'
}

export interface OverrideOutcome {
  /** Whether a rule or a block was in force before. */
  readonly existed: boolean
}

export const override: OpKind<OverrideOp, OverrideOutcome> = {
  effect: 'free',
  work: 'override',
  fields: { rule: 'rule?', ruleMs: 'untilEnd?', blockMs: 'untilEnd?', given: 'keyPerPart?' },
  keys: 'andIndex',

  apply({ parts, ...change }, memory) {
    memory.changeOverrides(parts, change)
    if (change.blockMs === 0 && change.rule === undefined) {
      for (const held of memory.load(parts)) if (held.number !== 0) held.log.kind.ban?.unblock(stateOf(held))
    }
    return { existed: memory.overrides !== undefined }
  },

  json: ({ parts, given }) => ({
    given: given?.filter((_, part) => parts[part]!.set.isOverridable),
    keys: parts.reduce((sum, { set }) => sum + set.logs.length + (set.isOverridable ? 2 : 0), 0),
  }),

  answer: (reply) => ({ existed: reply.flag('existed', 'some') }),
}

/** Has a single part, whose key doesn't matter. */
export interface OverridesOp extends AnyOp {
  readonly type: 'overrides'
  /** The number of the bucket to list, from 0. See `OverridesOutcome.buckets`. */
  readonly bucket: number
  /** Where the previous page ended: that page's `next`. `''` for the first page. */
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
