// All operations by their names.

import { charge } from './charge.ts'
import { consume } from './consume.ts'
import { explain } from './explain.ts'
import { extend, release } from './hold.ts'
import { list } from './list.ts'
import type { Field, OpKind } from './op.ts'
import { override } from './override.ts'
import { overrides } from './overrides.ts'
import { peek } from './peek.ts'
import { refund } from './refund.ts'
import { reset } from './reset.ts'
import { settle } from './settle.ts'

interface Kinds {
  readonly consume: typeof consume
  readonly peek: typeof peek
  readonly charge: typeof charge
  readonly refund: typeof refund
  readonly extend: typeof extend
  readonly release: typeof release
  readonly list: typeof list
  readonly reset: typeof reset
  readonly settle: typeof settle
  readonly explain: typeof explain
  readonly override: typeof override
  readonly overrides: typeof overrides
}

/** A request to a store, distinguished by `type`. */
export type Op = Parameters<Kinds[keyof Kinds]['apply']>[0]

/** The outcome of an op, if it has one. */
export type Outcome = ReturnType<Kinds[keyof Kinds]['apply']>

const ALL: Kinds = {
  ...{ consume, peek, explain, charge, refund, extend, release, list, reset, settle, override, overrides },
}

/** An operation, whichever it is. */
export interface Kind extends OpKind<Op, Outcome> {
  readonly fields: Readonly<Record<string, Field>>
}

export const OPS = ALL as unknown as Readonly<Record<Op['type'], Kind>>

export function kindOf({ type }: Op): Kind {
  return OPS[type]
}

/** The units that it reads or writes in each log. */
export function unitsOf(op: Op): number {
  const { cost, units = 1 } = op as { readonly cost?: number; readonly units?: number }
  return cost ?? units
}
