// In-memory logs of sliding windows: charges in chronological order.

import { Slab } from '../runtime/slab.ts'
import { MAX_UNITS } from './declare.ts'
import type { ListedCharge, Logs } from './limit.ts'

export const MAX_RECORDS = 65_536

const MIN_REFUND_RECORDS = 256
const MAX_REFUND_RECORDS = 4096

/** Totals are lowered before they exceed this. */
const MAX_TOTAL: number = 2 ** 47

export const STAMP_COLUMN = 0
export const TOTAL_COLUMN = 1
const COLUMNS = 2

type Column = typeof STAMP_COLUMN | typeof TOTAL_COLUMN

/** Maximum distance between records in a narrow ring, in milliseconds and in units. */
const MAX_SPAN: number = 2 ** 32 - 1

/** Records in a log's first ring. Each larger ring has room for twice as many. */
const FIRST_SLOTS = 4

/** An empty log keeps a ring of up to this size. A larger one is kept only if a quarter or more was in use. */
const KEPT_SLOTS = 64

/** Number of doubles per row: six numbers, and one that holds two 32-bit integers. */
const ROW = 7
const RING = 12
const HEAD_AND_COUNT = 13
const COUNT_BITS = 16

/** A ring's reference encodes its number, width and size (log2 of its length in doubles). A reference of 0 means no ring. */
const RING_SHIFT = 6
const WIDE = 2 ** 5

/** Log2 of the number of doubles in a chunk of rings. A larger ring has its own chunk. */
const CHUNK_SHIFT = 15

const NO_RECORDS = new Int32Array(0)

interface Lease {
  readonly leaseMs: number
  readonly leasedUntil: number
}

const NO_LEASE: Lease = { leaseMs: 0, leasedUntil: 0 }

/** Maximum records that a refund rewrites. `records` is the number of records that the limits can fill. */
export function refundable(records: number): number {
  return Math.min(MAX_REFUND_RECORDS, Math.max(MIN_REFUND_RECORDS, records))
}

/**
 * Records in chronological order, each with a stamp and the running total of units. Represents one log at a time.
 *
 * The newest record is stored separately; the others are in a ring. A narrow ring stores the last 32 bits of stamps and
 * totals. The newest record supplies the other bits. If records are too far apart for this, the ring is wide and stores
 * doubles.
 */
export class WindowLog {
  readonly #logs: WindowLogs
  #number = 0
  /** Stamp and total of the newest record. */
  stamp = 0
  total = 0
  /** The total before the oldest record. */
  base = 0
  /** How long charges are kept. 0 for an empty log. */
  keepMs = 0
  /** The time of the first charge since the log was last empty. */
  since = 0
  /** A lower bound for the stamps in the ring, usually the first stamp. */
  oldest = 0
  /** Number of records in the ring, which has `slots` places. */
  count = 0
  slots = 0
  #head = 0
  /** See {@link RING_SHIFT}. */
  #ring = 0
  #records: Int32Array | Float64Array = NO_RECORDS
  #recordsAt = 0

  constructor(logs: WindowLogs) {
    this.#logs = logs
  }

  show(number: number): void {
    if (number !== this.#number) this.#load(number)
  }

  /** Writes back the fields, and reads those of another log. A separate method, so that `show` can be inlined. */
  #load(number: number): void {
    const { shift, mask, doubles, ints } = this.#logs.rows
    let row = doubles[this.#number >>> shift]!
    let words = ints[this.#number >>> shift]!
    let at = (this.#number & mask) * ROW
    row[at] = this.stamp
    row[at + 1] = this.total
    row[at + 2] = this.base
    row[at + 3] = this.keepMs
    row[at + 4] = this.since
    row[at + 5] = this.oldest
    words[2 * at + RING] = this.#ring
    words[2 * at + HEAD_AND_COUNT] = (this.#head << COUNT_BITS) | this.count

    this.#number = number
    row = doubles[number >>> shift]!
    words = ints[number >>> shift]!
    at = (number & mask) * ROW
    this.stamp = row[at]!
    this.total = row[at + 1]!
    this.base = row[at + 2]!
    this.keepMs = row[at + 3]!
    this.since = row[at + 4]!
    this.oldest = row[at + 5]!
    const headAndCount = words[2 * at + HEAD_AND_COUNT]!
    this.#head = headAndCount >>> COUNT_BITS
    this.count = headAndCount & (2 ** COUNT_BITS - 1)
    this.#useRing(words[2 * at + RING]!)
  }

  #useRing(ring: number): void {
    this.#ring = ring
    if (ring === 0) {
      this.#records = NO_RECORDS
      this.slots = 0
      return
    }
    const isWide = (ring & WIDE) !== 0
    const { shift, mask, width, doubles, ints } = this.#logs.rings(ring & (WIDE - 1))
    const number = ring >>> RING_SHIFT
    const at = (number & mask) * width
    this.#records = isWide ? doubles[number >>> shift]! : ints[number >>> shift]!
    this.#recordsAt = isWide ? at : 2 * at
    this.slots = isWide ? width / 2 : width
  }

  get #isWide(): boolean {
    return (this.#ring & WIDE) !== 0
  }

  get lease(): Lease {
    return this.isLeased ? this.#logs.leases.get(this.#number)! : NO_LEASE
  }
  set lease(lease: Lease) {
    if (lease.leaseMs > 0) this.#logs.leases.set(this.#number, lease)
    else this.#logs.leases.delete(this.#number)
  }

  get isLeased(): boolean {
    return this.#logs.leases.size > 0 && this.#logs.leases.has(this.#number)
  }

  /** `index` is 0 for the oldest record, and `count` for the newest. */
  at(index: number, column: Column): number {
    const newest = column === STAMP_COLUMN ? this.stamp : this.total
    if (index === this.count) return newest
    const kept = this.#records[this.#placeOf(index) + column]!
    return this.#isWide ? kept : completed(kept, newest)
  }

  /** Finds the first record above the bound. Searches in growing steps, because that record is usually near the oldest one. */
  firstAbove(column: Column, bound: number): number {
    const { count } = this
    let low = 0
    let step = 1
    while (low + step <= count && this.at(low + step - 1, column) <= bound) {
      low += step
      step *= 2
    }
    let high = Math.min(low + step - 1, count)
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.at(middle, column) <= bound) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Counts the records in the ring with a stamp up to and including `cut`. */
  countUpTo(cut: number): number {
    return this.count === 0 || this.oldest > cut ? 0 : this.firstAbove(STAMP_COLUMN, cut)
  }

  /** Returns the total of the records with a stamp up to and including `cut`. */
  totalUpTo(cut: number): number {
    return this.stamp <= cut ? this.total : this.totalBefore(this.countUpTo(cut))
  }

  totalBefore(index: number): number {
    return index === 0 ? this.base : this.at(index - 1, TOTAL_COLUMN)
  }

  /** Returns up to `most` of the newest charges after `cut`, oldest first. */
  newestAfter(cut: number, most: number): ListedCharge[] {
    if (this.stamp <= cut) return []
    const from = Math.max(this.firstAbove(STAMP_COLUMN, cut), this.count + 1 - most)
    let before = this.totalBefore(from)
    const charges: ListedCharge[] = []
    for (let index = from; index <= this.count; index++) {
      const total = this.at(index, TOTAL_COLUMN)
      charges.push({ atMs: this.at(index, STAMP_COLUMN), units: total - before })
      before = total
    }
    return charges
  }

  clear(): void {
    if (this.#isWide || (this.slots > KEPT_SLOTS && 4 * this.count < this.slots)) this.#freeRing()
    this.lease = NO_LEASE
    this.stamp = 0
    this.total = 0
    this.base = 0
    this.keepMs = 0
    this.#head = 0
    this.count = 0
  }

  /** Drops records that no longer count at `nowMs`. */
  trim(nowMs: number): void {
    const cut = nowMs - this.keepMs
    if (this.stamp <= cut) this.clear()
    else this.drop(this.countUpTo(cut))
  }

  drop(records: number): void {
    if (records === 0) return
    this.base = this.at(records - 1, TOTAL_COLUMN)
    this.#head = (this.#head + records) & (this.slots - 1)
    this.count -= records
    this.oldest = this.at(0, STAMP_COLUMN)
  }

  /** Adds units charged now. `stamp` is never before the newest record's stamp. */
  append(nowMs: number, stamp: number, units: number): void {
    if (this.total + units > MAX_TOTAL) this.#lower(units)
    if (this.total === this.base) this.since = nowMs
    else if (this.stamp !== stamp) this.#push()
    const isFarApart = stamp - this.oldest > MAX_SPAN || this.total + units - this.base > MAX_SPAN
    if (isFarApart && this.count > 0 && !this.#isWide) this.#resize(this.slots, true)
    this.stamp = stamp
    this.total += units
  }

  merge(stamp: number): void {
    this.#freeRing()
    this.stamp = stamp
  }

  /** Takes up to `units` from the record at `stamp`. Returns the number taken, or 0 if too many records follow. */
  subtract(stamp: number, units: number, mostRecords: number): number {
    const index = this.firstAbove(STAMP_COLUMN, stamp - 1)
    if (this.at(index, STAMP_COLUMN) !== stamp || this.count - index > mostRecords) return 0
    const held = this.at(index, TOTAL_COLUMN) - this.totalBefore(index)
    const returned = Math.min(units, held)
    // An empty record is removed, so that no log has more records than units.
    const removed = returned === held ? 1 : 0
    for (let later = index + removed; later < this.count; later++) {
      this.#set(later - removed, this.at(later, STAMP_COLUMN), this.at(later, TOTAL_COLUMN) - returned)
    }
    this.total -= returned
    if (removed === 0) return returned
    if (this.count === 0) this.clear()
    else {
      if (index === this.count) this.stamp = this.at(this.count - 1, STAMP_COLUMN)
      this.count--
    }
    return returned
  }

  /** Lowers all totals by the number of expired units. Drops the oldest units beyond 2^46, which doesn't affect any limit. */
  #lower(units: number): void {
    const shift = Math.max(this.base, this.total + units - MAX_UNITS)
    this.drop(this.firstAbove(TOTAL_COLUMN, shift))
    for (let index = 0; index < this.count; index++) {
      this.#set(index, this.at(index, STAMP_COLUMN), this.at(index, TOTAL_COLUMN) - shift)
    }
    this.base = 0
    this.total -= shift
  }

  /** Moves the newest record into the ring. */
  #push(): void {
    if (this.count === MAX_RECORDS - 1) {
      // Merges the two oldest records. The units of the first then count slightly longer than they should.
      this.#head = (this.#head + 1) & (this.slots - 1)
      this.count--
    } else if (this.count === this.slots) {
      this.#resize(Math.max(2 * this.slots, FIRST_SLOTS), this.#isWide)
    }
    this.#set(this.count, this.stamp, this.total)
    if (this.count === 0) this.oldest = this.stamp
    this.count++
  }

  #set(index: number, stamp: number, total: number): void {
    const place = this.#placeOf(index)
    this.#records[place + STAMP_COLUMN] = stamp
    this.#records[place + TOTAL_COLUMN] = total
  }

  #placeOf(index: number): number {
    return this.#recordsAt + ((this.#head + index) & (this.slots - 1)) * COLUMNS
  }

  #resize(slots: number, isWide: boolean): void {
    const before = this.#ring
    const records = this.#records
    const head = this.#head
    const first = this.#recordsAt
    const mask = this.slots - 1
    const wasWide = this.#isWide
    const power = 31 - Math.clz32(isWide ? 2 * slots : slots)
    const number = this.#logs.rings(power).create()
    this.#useRing((number << RING_SHIFT) | (isWide ? WIDE : 0) | power)
    this.#head = 0
    for (let index = 0; index < this.count; index++) {
      const place = first + ((head + index) & mask) * COLUMNS
      const stamp = records[place + STAMP_COLUMN]!
      const total = records[place + TOTAL_COLUMN]!
      if (wasWide) this.#set(index, stamp, total)
      else this.#set(index, completed(stamp, this.stamp), completed(total, this.total))
    }
    this.#delete(before)
  }

  #freeRing(): void {
    this.#delete(this.#ring)
    this.#useRing(0)
    this.#head = 0
    this.count = 0
  }

  #delete(ring: number): void {
    if (ring !== 0) this.#logs.rings(ring & (WIDE - 1)).delete(ring >>> RING_SHIFT)
  }
}

/** Returns the highest number up to `newest` whose low 32 bits are `bits`. */
function completed(bits: number, newest: number): number {
  return newest - ((newest - bits) >>> 0)
}

export class WindowLogs implements Logs<WindowLog> {
  readonly rows: Slab = new Slab(ROW)
  /** Not in the rows, because few logs have a lease. */
  readonly leases: Map<number, Lease> = new Map()
  /** Rings, by size (log2, in doubles). */
  readonly #rings: Slab[] = []
  readonly #log: WindowLog = new WindowLog(this)

  constructor() {
    // Log 0 must stay empty.
    this.rows.create()
  }

  get bytes(): number {
    return this.#rings.reduce((sum, { bytes }) => sum + bytes, this.rows.bytes)
  }

  rings(power: number): Slab {
    this.#rings[power] ??= new Slab(2 ** power, Math.max(0, CHUNK_SHIFT - power))
    return this.#rings[power]
  }

  create(): number {
    const { rows } = this
    const number = rows.create()
    const at = (number & rows.mask) * ROW
    rows.doubles[number >>> rows.shift]!.fill(0, at, at + ROW)
    return number
  }

  at(number: number): WindowLog {
    this.#log.show(number)
    return this.#log
  }

  copy(number: number): number {
    const { keepMs, since, lease } = this.at(number)
    const charges = this.#log.newestAfter(-1, MAX_RECORDS)
    const copied = this.create()
    const log = this.at(copied)
    for (const { atMs, units } of charges) log.append(atMs, atMs, units)
    Object.assign(log, { keepMs, since, lease })
    return copied
  }

  delete(number: number): void {
    const log = this.at(number)
    log.merge(0)
    log.lease = NO_LEASE
    log.show(0)
    this.rows.delete(number)
  }
}
