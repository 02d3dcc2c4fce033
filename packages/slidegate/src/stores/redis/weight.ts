// Estimates how long an op takes in Redis, in usual ops.

import type { Entries } from '../../limits/limit.ts'
import { entriesOf } from '../../limits/limit-set.ts'
import { kindOf, type Op, unitsOf } from '../../ops/table.ts'

/** Maximum weight of a call, so that no script blocks Redis for long. */
export const MAX_WEIGHT = 128

/** A log of entries writes this many units in the time of a usual op. */
const UNITS_PER_OP = 100

/** An op with up to this many logs takes as long as the usual one. */
const LOGS_PER_OP = 4

/** The weight of an op: its time relative to the usual op, at most {@link MAX_WEIGHT}. */
export function weightOf(op: Op): number {
  const { work } = kindOf(op)
  // An explain searches for each time that it reports. A page has hundreds of overrides, and an explain may list hundreds of
  // charges.
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

/** In such a log, each unit or entry is written or read separately. */
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
