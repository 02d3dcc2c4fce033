import { MAX_ENTRIES, rewritable } from '../../limits/entry-window.ts'
import type { LimitSet, Log } from '../../limits/limit-set.ts'
import { refundable } from '../../limits/window-log.ts'
import type { Op } from '../store.ts'

// How long an op takes at most, whatever its keys hold. A unit is about 4 µs of Redis, or of the service. The measured
// figures are in docs/bounds.md.

/** Units that the ops of one body may take: under 20 ms. */
export const MAX_WORK: number = 2 ** 12

/** Finds the windows of a calendar: once for each body, since the calendar remembers them. */
const CALENDAR = 60
/** To say what is wrong with an op or a set. */
export const REFUSAL = 16

/** Reads or writes a log without regard to its size. */
const LOG = 2
/** The same with anything but the usual request: by the general part of the script. */
const GENERAL = 4
const WINDOW_LOG = 4

/** Reads up to 1,000 denials. */
const BAN = 10
/** Takes one of 10,000 entries out of the middle. */
const ENTRY = 40
/** One list per body. Its parts are listed one by one, until they hold too much. */
const LIST_OP = MAX_WORK / 2 + 1
/** Lists 10,000 entries; those of a stream take longer. */
const LIST = 1300
const LIST_OF_STREAM = 2000
/** Searches a log of 65,536 records eleven times, for each limit. */
const EXPLAIN = 45
/** Reads an override of 64 limits, of a key of 64 KiB. */
const OVERRIDE = 32
/** Writes one, too. */
const NEW_OVERRIDE = 80
/** Reads a page of 250 overrides. */
const OVERRIDES = 400

/** Work for a set of a body, whatever its ops. */
export function workOfSet({ logs }: LimitSet): number {
  let work = 0
  for (const { kind } of logs) if (kind.hasTimedWords) work += CALENDAR
  return work
}

export function workOf(op: Op): number {
  if (op.type === 'list') return Math.max(LIST_OP, ...op.parts.map(({ set }) => workOfList(set)))
  const isUsual = isUsualOp(op)
  let work = isUsual ? 0 : GENERAL
  if (op.type === 'overrides') work += OVERRIDES
  for (const { set } of op.parts) {
    work += set.limits.length
    if (set.isOverridable) work += op.type === 'override' ? NEW_OVERRIDE : OVERRIDE
    for (const log of set.logs) work += isUsual ? LOG : workOfLog(op, log)
  }
  return work
}

function workOfList({ logs }: LimitSet): number {
  let work = 0
  for (const { kind, role } of logs) {
    if (role !== 'count' || kind.entries === undefined) work += LOG
    else work += kind.entries.are === 'record' ? LIST_OF_STREAM : LIST
  }
  return work
}

function isUsualOp(op: Op): boolean {
  const { logs } = op.parts[0]!.set
  return op.type === 'consume' && op.parts.length === 1 && logs.length === 1 && logs[0]!.kind.tag === 'w'
}

function workOfLog(op: Op, log: Log): number {
  if (op.type === 'reset') return 1
  switch (log.role) {
    case 'ban':
      return BAN
    case 'reservations':
      return 'reservation' in op && op.reservation !== undefined ? ENTRY : LOG
    default:
      return log.kind.entries === undefined
        ? workOfSums(op, log)
        : workOfEntries(op, log, log.kind.entries.are)
  }
}

function workOfSums(op: Op, { kind, params }: Log): number {
  if (!kind.keepsTimes) return LOG
  switch (op.type) {
    case 'explain':
      return params.limits.length * (EXPLAIN + Math.ceil((op.charges ?? 0) / 2))
    case 'refund':
    case 'settle':
      return Math.ceil(refundable(params.records) / 4)
    default:
      return WINDOW_LOG
  }
}

function workOfEntries(op: Op, { params }: Log, are: string): number {
  const isStream = are === 'record'
  // A stream has one entry for each request, other logs have one for each unit.
  const unitsOf = (units: number) => (isStream ? LOG : Math.floor(Math.min(units, MAX_ENTRIES) / 3))
  switch (op.type) {
    case 'consume':
      return (are === 'value' ? ENTRY : LOG) + unitsOf(op.cost)
    case 'charge':
    case 'extend':
    case 'release':
      return ENTRY + unitsOf(op.units)
    case 'refund':
    case 'settle':
      return isStream ? 2 * rewritable(params.records) : ENTRY + unitsOf(op.units)
    case 'explain':
      return params.limits.length * (EXPLAIN + (op.charges ?? 0))
    default:
      return LOG
  }
}
