// Estimates the time that an op takes Redis, in usual ops.

import type { Entries } from '../../limits/limit.ts'
import { entriesOf } from '../../limits/limit-set.ts'
import { kindOf, type Op, unitsOf } from '../../ops/table.ts'

/** The most that one call takes, so that no script holds Redis for long. */
export const MAX_WEIGHT = 128

/** A log of entries writes this many units in the time of a usual op. */
const UNITS_PER_OP = 100

/** An op with up to this many logs takes as long as the usual one. */
const LOGS_PER_OP = 4

/** The time of an op as a multiple of the usual one, up to that of a whole call. */
export function weightOf(op: Op): number {
  const { work } = kindOf(op)
  // Each of its times is searched for, and some hundred overrides, or charges, are read at a time.
  let weight = work === 'search' || work === 'page' ? MAX_WEIGHT / 8 : 1
  if ('charges' in op && op.charges !== undefined) weight = MAX_WEIGHT
  let logs = 0
  for (const { set } of op.parts) {
    logs += set.logs.length
    for (const log of set.logs) {
      const are = entriesOf(log)
      if (are !== undefined) weight += entriesWeight(op, are)
    }
  }
  return Math.min(weight + Math.ceil(logs / LOGS_PER_OP) - 1, MAX_WEIGHT)
}

/** Each unit or entry of such a log is written, or read, on its own. */
function entriesWeight(op: Op, are: Entries): number {
  switch (kindOf(op).work) {
    case 'read':
      return MAX_WEIGHT
    case 'take':
      // A stream is rewritten.
      return are === 'record' ? MAX_WEIGHT : Math.floor(unitsOf(op) / UNITS_PER_OP)
    case 'write':
    case 'find':
      return Math.floor(unitsOf(op) / UNITS_PER_OP)
    default:
      return 0
  }
}
