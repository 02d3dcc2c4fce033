// Stores the logs of sliding windows in memory, as rows of numbers.

import { Slab } from '../runtime/slab.ts'
import type { Logs } from './limit.ts'

/** The two numbers of a record. */
export const STAMP = 0
export const TOTAL = 1
export const WIDTH = 2

/** Doubles in a header: six, and two 32-bit integers that pack two numbers each. */
const HEADER = 7
const RING_AND_POWER = 12
const HEAD_AND_COUNT = 13

/** Bits for the logarithm of the slots, 0 if there is no ring. */
const POWER_BITS = 5
const COUNT_BITS = 16

/** Records in a chunk of rings, as a power of two; a larger ring has a chunk of its own. */
const CHUNK_RECORDS_SHIFT = 13

interface Lease {
  readonly leaseMs: number
  readonly leasedUntil: number
}

export const NO_LEASE: Lease = { leaseMs: 0, leasedUntil: 0 }

const NO_RECORDS = new Float64Array(0)

/**
 * Records in time order, each a stamp and the running total of all units up to and with it: so the units of
 * any stretch of time are one subtraction, and both "where does the window start" and "when are n units
 * free" are binary searches. The newest record stands in the header; the older ones are a ring. The header also has the
 * ring's oldest stamp, so a request that finds nothing expired doesn't read the ring.
 *
 * In an empty log all is 0: with a `keepMs` of 0, nothing in it counts.
 *
 * The numbers stand in slabs, and this is a view of one log there: of another one after each `show`.
 */
export class WindowLog {
  readonly #headers: Slab
  readonly #rings: Rings
  readonly #leases: Map<number, Lease>
  #number = 0
  /** The header, as doubles and as integers. */
  #doubles!: Float64Array
  #ints!: Int32Array
  #at = 0
  #intsAt = 0
  /** The chunk with the ring, which begins at `#recordsAt`. It is empty until the ring is read. */
  #records: Float64Array = NO_RECORDS
  #recordsAt = 0

  constructor(headers: Slab, rings: Rings, leases: Map<number, Lease>) {
    this.#headers = headers
    this.#rings = rings
    this.#leases = leases
  }

  show(number: number): void {
    const { shift, mask, doubles, ints } = this.#headers
    this.#number = number
    this.#doubles = doubles[number >>> shift]!
    this.#ints = ints[number >>> shift]!
    this.#at = (number & mask) * HEADER
    this.#intsAt = 2 * this.#at
    this.#records = NO_RECORDS
  }

  /** The newest record. */
  get stamp(): number {
    return this.#doubles[this.#at]!
  }
  set stamp(stamp: number) {
    this.#doubles[this.#at] = stamp
  }

  get total(): number {
    return this.#doubles[this.#at + 1]!
  }
  set total(total: number) {
    this.#doubles[this.#at + 1] = total
  }

  /** The total before the oldest record. */
  get base(): number {
    return this.#doubles[this.#at + 2]!
  }
  set base(base: number) {
    this.#doubles[this.#at + 2] = base
  }

  /** The longest time for which any commit needed charges to count; after it they are gone. */
  get keepMs(): number {
    return this.#doubles[this.#at + 3]!
  }
  set keepMs(keepMs: number) {
    this.#doubles[this.#at + 3] = keepMs
  }

  /** When it was charged for the first time since it was last empty. */
  get since(): number {
    return this.#doubles[this.#at + 4]!
  }
  set since(since: number) {
    this.#doubles[this.#at + 4] = since
  }

  /** No record in the ring has an earlier stamp. Usually the oldest record has this one. */
  get oldest(): number {
    return this.#doubles[this.#at + 5]!
  }
  set oldest(oldest: number) {
    this.#doubles[this.#at + 5] = oldest
  }

  /** Records that the ring has room for: 0, or a power of two above 1. */
  get slots(): number {
    return (1 << (this.#ints[this.#intsAt + RING_AND_POWER]! & (2 ** POWER_BITS - 1))) & ~1
  }

  /** Slot of the oldest record in the ring, and how many there are. */
  get head(): number {
    return this.#ints[this.#intsAt + HEAD_AND_COUNT]! >>> COUNT_BITS
  }
  set head(head: number) {
    this.#ints[this.#intsAt + HEAD_AND_COUNT] = (head << COUNT_BITS) | this.count
  }

  get count(): number {
    return this.#ints[this.#intsAt + HEAD_AND_COUNT]! & (2 ** COUNT_BITS - 1)
  }
  set count(count: number) {
    this.#ints[this.#intsAt + HEAD_AND_COUNT] = (this.head << COUNT_BITS) | count
  }

  /** Units taken on lease may be spent elsewhere. So few logs have a lease that it is not in the header. */
  get lease(): Lease {
    return this.#leases.size === 0 ? NO_LEASE : (this.#leases.get(this.#number) ?? NO_LEASE)
  }
  set lease(lease: Lease) {
    if (lease.leaseMs > 0) this.#leases.set(this.#number, lease)
    else if (this.#leases.size > 0) this.#leases.delete(this.#number)
  }

  get isLeased(): boolean {
    return this.#leases.size > 0 && this.#leases.has(this.#number)
  }

  /** The numbers of the ring, from {@link recordsAt} on. Only while there are slots. */
  get records(): Float64Array {
    if (this.#records === NO_RECORDS) this.#showRing()
    return this.#records
  }

  get recordsAt(): number {
    if (this.#records === NO_RECORDS) this.#showRing()
    return this.#recordsAt
  }

  #showRing(): void {
    const { shift, mask, width, doubles } = this.#rings.ofSize(this.slots)
    const ring = this.#ring
    this.#records = doubles[ring >>> shift]!
    this.#recordsAt = (ring & mask) * width
  }

  get #ring(): number {
    return this.#ints[this.#intsAt + RING_AND_POWER]! >>> POWER_BITS
  }

  /** Moves the records to a ring of another size, 0 or a power of two, with room for them. */
  resize(slots: number): void {
    const { slots: oldSlots, head, count } = this
    const oldRing = this.#ring
    if (slots > 0) {
      const from = count > 0 ? this.records : NO_RECORDS
      const fromAt = count > 0 ? this.recordsAt : 0
      this.#ints[this.#intsAt + RING_AND_POWER] = (this.#rings.create(slots) << POWER_BITS) | powerOf(slots)
      this.#showRing()
      // Most have few, so that a call of set() would take longer.
      for (let i = 0; i < count; i++) {
        const record = fromAt + ((head + i) & (oldSlots - 1)) * WIDTH
        this.#records[this.#recordsAt + i * WIDTH + STAMP] = from[record + STAMP]!
        this.#records[this.#recordsAt + i * WIDTH + TOTAL] = from[record + TOTAL]!
      }
    } else {
      this.#ints[this.#intsAt + RING_AND_POWER] = 0
      this.#records = NO_RECORDS
    }
    this.head = 0
    if (oldSlots > 0) this.#rings.delete(oldSlots, oldRing)
  }
}

/** The window logs of a store. */
export class WindowLogs implements Logs<WindowLog> {
  readonly #headers = new Slab(HEADER)
  readonly #rings = new Rings()
  readonly #leases = new Map<number, Lease>()
  readonly #log = new WindowLog(this.#headers, this.#rings, this.#leases)

  constructor() {
    // Number 0, in which all is 0.
    this.#headers.create()
  }

  get bytes(): number {
    return this.#headers.bytes + this.#rings.bytes
  }

  create(): number {
    const number = this.#headers.create()
    const { shift, mask, doubles } = this.#headers
    const at = (number & mask) * HEADER
    doubles[number >>> shift]!.fill(0, at, at + HEADER)
    return number
  }

  at(number: number): WindowLog {
    this.#log.show(number)
    return this.#log
  }

  copy(number: number): number {
    const copied = this.create()
    const original = this.at(number)
    const log = new WindowLog(this.#headers, this.#rings, this.#leases)
    log.show(copied)
    log.stamp = original.stamp
    log.total = original.total
    log.base = original.base
    log.keepMs = original.keepMs
    log.since = original.since
    log.lease = original.lease
    const { slots } = original
    if (slots > 0) {
      log.resize(slots)
      const { records, recordsAt } = original
      log.records.set(records.subarray(recordsAt, recordsAt + slots * WIDTH), log.recordsAt)
      log.head = original.head
      log.count = original.count
    }
    return copied
  }

  delete(number: number): void {
    const log = this.at(number)
    log.lease = NO_LEASE
    log.count = 0
    if (log.slots > 0) log.resize(0)
    this.#headers.delete(number)
  }
}

/** The logarithm to base 2. */
function powerOf(slots: number): number {
  return 31 - Math.clz32(slots)
}

/** The rings of all sizes. */
class Rings {
  /** By the power of two that their size is. */
  readonly #slabs: Slab[] = []

  get bytes(): number {
    return this.#slabs.reduce((sum, slab) => sum + slab.bytes, 0)
  }

  create(slots: number): number {
    return this.ofSize(slots).create()
  }

  delete(slots: number, ring: number): void {
    this.ofSize(slots).delete(ring)
  }

  ofSize(slots: number): Slab {
    const power = powerOf(slots)
    let slab = this.#slabs[power]
    if (slab === undefined) {
      slab = new Slab(slots * WIDTH, Math.max(0, CHUNK_RECORDS_SHIFT - power))
      this.#slabs[power] = slab
    }
    return slab
  }
}
