// Estimates the maximum work of an op, whatever its keys contain. One unit takes Redis or the service about 4 µs.
// Measured figures: docs/bounds.md.

import { MAX_ENTRIES, rewritable } from '../../limits/entry-window.ts'
import { entriesOf, type LimitSet, type Log } from '../../limits/limit-set.ts'
import { refundable } from '../../limits/window-log.ts'
import { kindOf, type Op, unitsOf } from '../../ops/table.ts'

/** Maximum work of a body: under 20 ms. */
export const MAX_WORK: number = 2 ** 12

/** Finds the windows of a calendar: once per body, because the calendar caches them. */
const CALENDAR = 60
/** The work of rejecting an op or a set. */
export const REFUSAL = 16

/** The work of reading or writing a log of any size. */
const LOG = 2
/** The work of the script per op, without its logs. */
const GENERAL = 4
const WINDOW_LOG = 4

/** Reads up to 1,000 denials. */
const BAN = 10
/** Removes one of 10,000 entries. */
const ENTRY = 40
/** One list per body. Its parts are listed one at a time, until the list is too long. */
const LIST_OP = MAX_WORK / 2 + 1
/** Lists 10,000 entries; those of a stream take longer. */
const LIST = 1300
const LIST_OF_STREAM = 2000
/** Searches a log of 65,536 records eleven times, for each limit. */
const EXPLAIN = 45
/** Reads an override of 64 limits, for a key of 64 KiB. */
const OVERRIDE = 32
/** Reads and writes an override. */
const NEW_OVERRIDE = 80
/** Reads a page of 250 overrides. */
const OVERRIDES = 400

export function workOfSet({ logs }: LimitSet): number {
  let work = 0
  for (const { kind } of logs) if (kind.hasTimedWords) work += CALENDAR
  return work
}

export function workOf(op: Op): number {
  const { work: way } = kindOf(op)
  if (way === 'read') return Math.max(LIST_OP, ...op.parts.map(({ set }) => workOfList(set)))
  const isUsual = isUsualOp(op)
  let work = isUsual ? 0 : GENERAL
  if (way === 'page') work += OVERRIDES
  for (const { set } of op.parts) {
    work += set.limits.length
    if (set.isOverridable) work += way === 'override' ? NEW_OVERRIDE : OVERRIDE
    for (const log of set.logs) work += isUsual ? LOG : workOfLog(op, log)
  }
  return work
}

function workOfList({ logs }: LimitSet): number {
  let work = 0
  for (const log of logs) {
    const are = entriesOf(log)
    work += are === undefined ? LOG : are === 'record' ? LIST_OF_STREAM : LIST
  }
  return work
}

function isUsualOp(op: Op): boolean {
  const { logs } = op.parts[0]!.set
  return op.type === 'consume' && op.parts.length === 1 && logs.length === 1 && logs[0]!.kind.tag === 'w'
}

function workOfLog(op: Op, log: Log): number {
  if (kindOf(op).work === 'remove') return 1
  if (log.role === 'ban') return BAN
  if (log.role === 'reservations') return 'reservation' in op && op.reservation !== undefined ? ENTRY : LOG
  const are = entriesOf(log)
  return are === undefined ? workOfSums(op, log) : workOfEntries(op, log, are)
}

function workOfSums(op: Op, { kind, params }: Log): number {
  if (kind.charges === undefined) return LOG
  switch (kindOf(op).work) {
    case 'search':
      return params.limits.length * (EXPLAIN + Math.ceil(chargesOf(op) / 2))
    case 'take':
      return Math.ceil(refundable(params.records) / 4)
    default:
      return WINDOW_LOG
  }
}

function workOfEntries(op: Op, { params }: Log, are: string): number {
  const isStream = are === 'record'
  // A stream has an entry per request, other logs have one per unit.
  const written = isStream ? LOG : Math.floor(Math.min(unitsOf(op), MAX_ENTRIES) / 3)
  const { work, effect } = kindOf(op)
  switch (work) {
    case 'write':
      return effect === 'look' ? LOG : (are === 'value' ? ENTRY : LOG) + written
    case 'find':
      return ENTRY + written
    case 'take':
      return isStream ? 2 * rewritable(params.records) : ENTRY + written
    case 'search':
      return params.limits.length * (EXPLAIN + chargesOf(op))
    default:
      return LOG
  }
}

function chargesOf(op: Op): number {
  return ('charges' in op && op.charges) || 0
}
