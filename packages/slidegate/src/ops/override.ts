// Writes overrides.

import { stateOf } from './memory.ts'
import type { OpKind } from './op.ts'
import type { AnyOp, OverrideChange } from './request.ts'

export interface OverrideOp extends AnyOp, OverrideChange {
  readonly type: 'override'
}

export interface OverrideOutcome {
  /** Whether anything was in force before. */
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
