// The operations by name.

import * as all from './all.ts'
import type { Field, OpKind } from './op.ts'

type Any = (typeof all)[keyof typeof all]

/** A request to a store, distinguished by `type`. */
export type Op = Parameters<Any['apply']>[0]

/** The outcome of an op, if it has one. */
export type Outcome = ReturnType<Any['apply']>

export interface Kind extends OpKind<Op, Outcome> {
  readonly fields: Readonly<Record<string, Field>>
}

export const OPS = { ...all } as unknown as Readonly<Record<Op['type'], Kind>>

export function kindOf({ type }: Op): Kind {
  return OPS[type]
}

/** The units that an op reads or writes in each log. */
export function unitsOf(op: Op): number {
  const { cost, units = 1 } = op as { readonly cost?: number; readonly units?: number }
  return cost ?? units
}

/** Whether an op is an ordinary request for one key. Identical requests are merged, and their denials are reused. */
export function isSingle(op: Op): op is Extract<Op, { readonly type: 'consume' }> {
  return isUsual(op) && op.count === 1 && op.parts.length === 1
}

/** Whether an op is a plain consume, as nearly every op is. It has no id, lease or reservation, and isn't waiting. */
export function isUsual(op: Op): op is Extract<Op, { readonly type: 'consume' }> {
  if (op.type !== 'consume') return false
  const { requestId, leaseMs, isWaiting, reservation } = op
  return requestId === undefined && leaseMs === 0 && isWaiting !== true && reservation === undefined
}
