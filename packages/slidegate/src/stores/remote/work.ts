// Estimates an op's worst-case work. One unit takes Redis or the service approximately 4 µs (docs/bounds.md has figures).

import { MAX_ENTRIES, rewritable } from '../../limits/entry-window.ts'
import type { Entries } from '../../limits/limit.ts'
import { entriesOf, type LimitSet, type Log } from '../../limits/limit-set.ts'
import { refundable } from '../../limits/window-log.ts'
import { kindOf, type Op, unitsOf } from '../../ops/table.ts'

/** Maximum work in a body: less than 20 ms. */
export const MAX_WORK: number = 2 ** 12

/** The work of finding a calendar's windows, once per body. */
const CALENDAR = 60
/** The work of rejecting an op or a set. */
export const REFUSAL = 16

/** The work of reading or writing a log of any size. */
const LOG = 2
/** The script's work per op, in addition to the work for the op's logs. */
const GENERAL = 4
const WINDOW_LOG = 4

/** The work of reading up to 1,000 denials. */
const BAN = 10
/** The work of removing one of 10,000 entries. */
const ENTRY = 40
/** More than half of the maximum, so that a body can have only one list. */
const LIST_OP = MAX_WORK / 2 + 1
/** The work of listing 10,000 entries. */
const LIST = 1300
const LIST_OF_STREAM = 2000
/** The work of searching a log of 65,536 records eleven times, per limit. */
const EXPLAIN = 45
/** The work of reading an override for 64 limits and a key with 64 KiB. */
const OVERRIDE = 32
/** The work of reading and writing an override. */
const NEW_OVERRIDE = 80
/** The work of reading a page of 250 overrides. */
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
  const { work } = kindOf(op)
  if (kind.charges === undefined) return LOG
  if (work === 'search') return params.limits.length * (EXPLAIN + Math.ceil(chargesOf(op) / 2))
  return work === 'take' ? Math.ceil(refundable(params.records) / 4) : WINDOW_LOG
}

function workOfEntries(op: Op, { params }: Log, are: Entries): number {
  const { work, effect } = kindOf(op)
  const isStream = are === 'record'
  if (work === 'search') return params.limits.length * (EXPLAIN + chargesOf(op))
  if (work === 'take' && isStream) return 2 * rewritable(params.records)
  // A stream stores one entry per request; other logs store one per unit.
  const written = isStream ? LOG : Math.floor(Math.min(unitsOf(op), MAX_ENTRIES) / 3)
  if (work === 'find' || work === 'take') return ENTRY + written
  return work === 'write' && effect !== 'look' ? (are === 'value' ? ENTRY : LOG) + written : LOG
}

function chargesOf(op: Op): number {
  return ('charges' in op && op.charges) || 0
}
