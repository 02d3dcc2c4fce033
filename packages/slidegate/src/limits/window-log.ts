// Operations on the log of a sliding window in memory: search, append, refund, trim.

import { MAX_UNITS } from './declare.ts'
import type { Charged } from './limit.ts'
import { NO_LEASE, STAMP, TOTAL, WIDTH, type WindowLog } from './window-logs.ts'

/** Records that a log may hold. */
export const MAX_RECORDS = 65_536

const MIN_REFUND_RECORDS = 256
const MAX_REFUND_RECORDS = 4096

/** Totals are rebased before they pass this. */
const MAX_TOTAL: number = 2 ** 47

/** An empty log keeps a ring of up to this many slots. It keeps a larger one if a quarter of it was in use. */
const KEPT_SLOTS = 64

/** Slots of a log's first ring; each further one has twice as many. */
const FIRST_SLOTS = 4

export function clear(log: WindowLog): void {
  if (log.slots > KEPT_SLOTS && 4 * log.count < log.slots) log.resize(0)
  log.keepMs = 0
  log.base = 0
  log.stamp = 0
  log.total = 0
  log.lease = NO_LEASE
  log.head = 0
  log.count = 0
}

/** Stamp or total of a record, counted from the oldest; `count` is the newest. */
export function at(log: WindowLog, index: number, column: typeof STAMP | typeof TOTAL): number {
  if (index === log.count) return column === STAMP ? log.stamp : log.total
  return log.records[slotOf(log, index) + column]!
}

/** The total of all records up to and with `cut`. */
export function totalUpTo(log: WindowLog, cut: number): number {
  return log.stamp <= cut ? log.total : totalBefore(log, countUpTo(log, cut))
}

/** How many records of the ring have stamps up to and with `cut`. */
export function countUpTo(log: WindowLog, cut: number): number {
  return log.count === 0 || log.oldest > cut ? 0 : firstAbove(log, STAMP, cut)
}

/**
 * Index of the first record whose stamp (or total) is above the bound, `count` where none but perhaps the
 * newest is. Searched from the oldest on in growing steps: what leaves a window mostly lies near it.
 */
export function firstAbove(log: WindowLog, column: typeof STAMP | typeof TOTAL, bound: number): number {
  const { count } = log
  if (count === 0) return 0
  const { records, recordsAt, head } = log
  const mask = log.slots - 1
  let low = 0
  let step = 1
  while (
    low + step <= count &&
    records[recordsAt + ((head + low + step - 1) & mask) * WIDTH + column]! <= bound
  ) {
    low += step
    step *= 2
  }
  let high = Math.min(low + step - 1, count)
  while (low < high) {
    const middle = (low + high) >>> 1
    if (records[recordsAt + ((head + middle) & mask) * WIDTH + column]! <= bound) low = middle + 1
    else high = middle
  }
  return low
}

/** The total of all records before this one. */
function totalBefore(log: WindowLog, index: number): number {
  return index === 0 ? log.base : at(log, index - 1, TOTAL)
}

/** What was charged after `cut`: the newest records, so many at most, oldest first. */
export function newestAfter(log: WindowLog, cut: number, most: number): Charged[] {
  if (log.stamp <= cut) return []
  const from = Math.max(firstAbove(log, STAMP, cut), log.count + 1 - most)
  let before = totalBefore(log, from)
  const charges: Charged[] = []
  for (let index = from; index <= log.count; index++) {
    const total = at(log, index, TOTAL)
    charges.push({ atMs: at(log, index, STAMP), units: total - before })
    before = total
  }
  return charges
}

/** Drops what is gone at `nowMs`. */
export function trim(log: WindowLog, nowMs: number): void {
  const cut = nowMs - log.keepMs
  if (log.stamp <= cut) clear(log)
  else drop(log, countUpTo(log, cut))
}

/** Adds units that are charged now, at `stamp`, which is not before the newest record's. */
export function append(log: WindowLog, nowMs: number, stamp: number, units: number): void {
  if (log.total + units > MAX_TOTAL) rebase(log, units)
  if (log.total === log.base) log.since = nowMs
  else if (log.stamp !== stamp) push(log)
  log.stamp = stamp
  log.total += units
}

/** Merges all records into one at `stamp`. */
export function merge(log: WindowLog, stamp: number): void {
  log.stamp = stamp
  log.head = 0
  log.count = 0
  log.resize(0)
}

/**
 * How many records a refund may have to rewrite: as many as the limits can fill, within bounds. A charge with more records
 * behind it returns nothing.
 */
export function refundable(records: number): number {
  return Math.min(MAX_REFUND_RECORDS, Math.max(MIN_REFUND_RECORDS, records))
}

/**
 * Takes up to `units` from the record at `stamp`, and so from the totals of all later ones. Answers how many
 * it held: none where there is no such record, or where more than `mostRecords` have followed it.
 */
export function subtract(log: WindowLog, stamp: number, units: number, mostRecords: number): number {
  const index = firstAbove(log, STAMP, stamp - 1)
  if (at(log, index, STAMP) !== stamp || log.count - index > mostRecords) return 0
  const held = at(log, index, TOTAL) - totalBefore(log, index)
  const returned = Math.min(units, held)
  // A record left with nothing is removed, so that no log has more records than units.
  const removed = returned === held ? 1 : 0
  for (let later = index + removed; later < log.count; later++) {
    set(log, later - removed, at(log, later, STAMP), at(log, later, TOTAL) - returned)
  }
  log.total -= returned
  if (removed === 1) remove(log, index === log.count)
  return returned
}

function remove(log: WindowLog, newest: boolean): void {
  if (log.count === 0) {
    clear(log)
    return
  }
  if (newest) log.stamp = at(log, log.count - 1, STAMP)
  log.count--
}

/** Drops the oldest records of the ring. */
export function drop(log: WindowLog, records: number): void {
  if (records === 0) return
  log.base = at(log, records - 1, TOTAL)
  log.head = (log.head + records) & (log.slots - 1)
  log.count -= records
  if (log.count > 0) log.oldest = at(log, 0, STAMP)
}

/**
 * Lowers all totals by what no longer needs to be told apart. A log that would hold more than 2^46 units
 * forgets its oldest: no limit is large enough to see the difference.
 */
function rebase(log: WindowLog, units: number): void {
  const shift = Math.max(log.base, log.total + units - MAX_UNITS)
  drop(log, firstAbove(log, TOTAL, shift))
  for (let index = 0; index < log.count; index++) {
    set(log, index, at(log, index, STAMP), at(log, index, TOTAL) - shift)
  }
  log.base = 0
  log.total -= shift
}

/** Moves the newest record into the ring. */
function push(log: WindowLog): void {
  if (log.count === MAX_RECORDS - 1) {
    // Merged into the next one: its units count for longer than they should, never for less.
    log.head = (log.head + 1) & (log.slots - 1)
    log.count--
  } else if (log.count === log.slots) {
    log.resize(Math.max(2 * log.slots, FIRST_SLOTS))
  }
  set(log, log.count, log.stamp, log.total)
  if (log.count === 0) log.oldest = log.stamp
  log.count++
}

function set(log: WindowLog, index: number, stamp: number, total: number): void {
  const slot = slotOf(log, index)
  log.records[slot + STAMP] = stamp
  log.records[slot + TOTAL] = total
}

/** Where the record stands among the numbers of `records`. */
function slotOf(log: WindowLog, index: number): number {
  return log.recordsAt + ((log.head + index) & (log.slots - 1)) * WIDTH
}
