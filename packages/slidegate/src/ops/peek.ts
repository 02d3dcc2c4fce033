// Decisions that write nothing: `peek`, and `explain`, whose outcome has more details on each limit.

import type { ListedCharge } from '../limits/limit.ts'
import { bansOf, freesIn, preview } from './driver.ts'
import { CHARGES, EXPLAIN, type Loaded, type LoadedLog, NAMED, type OpKind, stateOf } from './op.ts'
import type { ConsumeOutcome, ExplainOutcome, RequestOp } from './request.ts'

export interface PeekOp extends RequestOp {
  readonly type: 'peek'
  readonly count: 1
}

export const peek: OpKind<PeekOp, ConsumeOutcome> = {
  effect: 'look',
  work: 'write',
  counts: true,
  fields: { cost: 'units', count: 'one', ...NAMED },
  apply: (op, memory) => preview(memory, op),
  encode: () => 0,
  answer: (reply) => reply.decision(),
}

export interface ExplainOp extends RequestOp {
  readonly type: 'explain'
  readonly count: 1
  /** Maximum number of charges to list per limit. The latest charges are listed. Default: none. */
  readonly charges?: number | undefined
}

export const explain: OpKind<ExplainOp, ExplainOutcome> = {
  effect: 'look',
  work: 'search',
  fields: { cost: 'units', count: 'one', charges: 'units?' },

  apply(op, memory) {
    const { loaded, nowMs } = memory
    const most = op.charges
    return {
      ...preview(memory, op),
      frees: perLimit(loaded, (held, i) => freesIn(held.log, stateOf(held), i, held.used[i]!, nowMs)),
      bans: bansOf(loaded, op.parts.length, nowMs),
      ...(most !== undefined && { charges: perLimit(loaded, (held, i) => chargesOf(held, i, nowMs, most)) }),
    }
  },

  encode({ charges }, words) {
    if (charges === undefined) return EXPLAIN
    words.push(`${charges}`)
    return EXPLAIN + CHARGES
  },

  answer: (reply) => reply.explanation(),
}

/** Returns one value per limit, in declared order. */
function perLimit<Value>(loaded: Loaded, value: (held: LoadedLog, i: number) => Value): Value[] {
  const values: Value[] = []
  for (const held of loaded) {
    for (const [i, limit] of held.log.serves.entries()) values[held.first + limit] = value(held, i)
  }
  return values
}

/** Returns the latest charges, added up per millisecond. `undefined` if the kind doesn't store their times. */
function chargesOf(held: LoadedLog, i: number, nowMs: number, most: number): ListedCharge[] | undefined {
  const { kind, params } = held.log
  const charges = kind.charges?.(stateOf(held), params, i, nowMs, most)
  if (charges === undefined) return undefined
  const joined = new Map<number, number>()
  for (const { atMs, units } of charges) joined.set(atMs, (joined.get(atMs) ?? 0) + units)
  return Array.from(joined, ([atMs, units]) => ({ atMs, units }))
}
