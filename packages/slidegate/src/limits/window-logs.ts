import { Slab } from '../slab.ts'
import type { Logs } from './limit.ts'

/** The two numbers of a record. */
export const STAMP = 0
export const TOTAL = 1
export const WIDTH = 2

/** Doubles in a header. It holds five doubles, then four 32-bit integers. */
const HEADER = 7
const RING = 10
const SLOTS = 11
const HEAD = 12
const COUNT = 13

/** Records in a chunk of rings, as a power of two; a larger ring has a chunk of its own. */
const CHUNK_RECORDS_SHIFT = 13

interface Lease {
  readonly leaseMs: number
  readonly leasedUntil: number
}

export const NO_LEASE: Lease = { leaseMs: 0, leasedUntil: 0 }

/**
 * Records in time order, each a stamp and the running total of all units up to and with it: so the units of
 * any stretch of time are one subtraction, and both "where does the window start" and "when are n units
 * free" are binary searches. The newest record stands in the header; the older ones are a ring.
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
  /** The numbers of the ring, from `recordsAt` on. */
  records!: Float64Array
  recordsAt = 0

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
    if (this.slots > 0) this.#showRing()
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

  /** Records that the ring has room for: 0, or a power of two. */
  get slots(): number {
    return this.#ints[this.#intsAt + SLOTS]!
  }

  /** Slot of the oldest record in the ring, and how many there are. */
  get head(): number {
    return this.#ints[this.#intsAt + HEAD]!
  }
  set head(head: number) {
    this.#ints[this.#intsAt + HEAD] = head
  }

  get count(): number {
    return this.#ints[this.#intsAt + COUNT]!
  }
  set count(count: number) {
    this.#ints[this.#intsAt + COUNT] = count
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

  /** Moves the records to a ring of another size, 0 or a power of two, with room for them. */
  resize(slots: number): void {
    const { slots: oldSlots, head, count, records, recordsAt } = this
    const oldRing = this.#ints[this.#intsAt + RING]!
    this.#ints[this.#intsAt + SLOTS] = slots
    this.head = 0
    if (slots > 0) {
      this.#ints[this.#intsAt + RING] = this.#rings.create(slots)
      this.#showRing()
      // First those up to the end of the old ring, then those from its beginning on.
      const before = Math.min(count, oldSlots - head)
      for (const [from, moved, to] of [
        [head, before, 0],
        [0, count - before, before],
      ] as const) {
        const start = recordsAt + from * WIDTH
        if (moved > 0) {
          this.records.set(records.subarray(start, start + moved * WIDTH), this.recordsAt + to * WIDTH)
        }
      }
    }
    if (oldSlots > 0) this.#rings.delete(oldSlots, oldRing)
  }

  #showRing(): void {
    const ring = this.#ints[this.#intsAt + RING]!
    const { shift, mask, width, doubles } = this.#rings.ofSize(this.slots)
    this.records = doubles[ring >>> shift]!
    this.recordsAt = (ring & mask) * width
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
    const { slots, records, recordsAt } = original
    if (slots > 0) {
      log.resize(slots)
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
    const power = 31 - Math.clz32(slots)
    let slab = this.#slabs[power]
    if (slab === undefined) {
      slab = new Slab(slots * WIDTH, Math.max(0, CHUNK_RECORDS_SHIFT - power))
      this.#slabs[power] = slab
    }
    return slab
  }
}
