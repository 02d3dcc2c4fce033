// A peek with more detail on each limit.

import type { ListedCharge } from '../limits/limit.ts'
import { bansOf, decided, freesIn, look } from './driver.ts'
import { type Loaded, stateOf } from './memory.ts'
import { CHARGES, EXPLAIN, type OpKind } from './op.ts'
import type { ExplainOutcome, RequestOp } from './request.ts'

export interface ExplainOp extends RequestOp {
  readonly type: 'explain'
  readonly count: 1
  /** Maximum charges to list per limit. Keeps the latest. Default: none. */
  readonly charges?: number | undefined
}

export const explain: OpKind<ExplainOp, ExplainOutcome> = {
  effect: 'look',
  work: 'search',
  fields: { cost: 'units', count: 'one', charges: 'units?' },

  apply(op, memory) {
    const { loaded, nowMs } = memory
    const admitted = look(memory, op)
    return {
      ...(typeof admitted === 'number' ? decided(loaded, nowMs, admitted, op) : admitted),
      frees: freesOf(loaded, nowMs),
      bans: bansOf(loaded, op.parts.length, nowMs),
      ...(op.charges !== undefined && { charges: chargesOf(loaded, nowMs, op.charges) }),
    }
  },

  encode({ charges }, words) {
    if (charges === undefined) return EXPLAIN
    words.push(`${charges}`)
    return EXPLAIN + CHARGES
  },

  answer: (reply) => reply.explanation(),
}

/** When units of each limit are free again: see `ExplainOutcome.frees`. */
function freesOf(loaded: Loaded, nowMs: number): number[][] {
  const frees: number[][] = []
  for (const held of loaded) {
    held.log.serves.forEach((limit, i) => {
      frees[held.first + limit] = freesIn(held.log, stateOf(held), i, held.used[i]!, nowMs)
    })
  }
  return frees
}

/** The latest charges of each limit, if its kind stores times: see `ExplainOutcome.charges`. */
function chargesOf(loaded: Loaded, nowMs: number, most: number): (readonly ListedCharge[] | undefined)[] {
  const told: (readonly ListedCharge[] | undefined)[] = []
  for (const held of loaded) {
    const { kind, params, serves } = held.log
    serves.forEach((limit, i) => {
      const charges = kind.charges?.(stateOf(held), params, i, nowMs, most)
      told[held.first + limit] = charges && joinedByStamp(charges)
    })
  }
  return told
}

/** Adds up charges of the same instant. */
function joinedByStamp(charges: readonly ListedCharge[]): readonly ListedCharge[] {
  const joined: ListedCharge[] = []
  for (const { atMs, units } of charges) {
    const last = joined.at(-1)
    if (last?.atMs === atMs) joined[joined.length - 1] = { atMs, units: last.units + units }
    else joined.push({ atMs, units })
  }
  return joined
}
