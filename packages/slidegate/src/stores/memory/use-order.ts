// Finds the least recently used slot that isn't at its limit.

import type { Slab } from '../../runtime/slab.ts'

/** Maximum number of slots that one call to `oldest` unparks. */
const MOST_OPENED = 256

/** Collecting a slot takes as long as looking at this many rows. */
const ROWS_PER_FOUND = 64

/** Minimum and maximum rows sampled. */
const FEWEST_SAMPLED = 64
const MOST_SAMPLED = 1024

/** The base-2 logarithm of the number of slots in each piece of `#places`. */
const PIECE_SHIFT = 12
const PIECE_MASK: number = 2 ** PIECE_SHIFT - 1

/**
 * Each use of a slot writes a sequence number (tick) to the slot's row. Nothing else is tracked until a search.
 *
 * A search then goes through all rows in steps, and collects enough of the oldest slots to make room for many keys.
 * Slots that are at their limit are parked until they open (fall below the limit) or are used, so no search meets them
 * twice. Parked slots have negative ticks.
 */
export class UseOrder {
  /** The first number of each row is its tick. */
  readonly #slots: Slab
  #tick = 0
  /** Parked slots, ordered by the time when they open. */
  readonly #parked = new SlotHeap()
  /** Slots ordered by tick. Contains all unparked slots with ticks up to `#foundUpTo`, and some later ones. */
  readonly #found = new SlotHeap()
  #foundUpTo = 0
  /** The row where the current search continues, or 0. `#upTo` is the tick up to which it collects slots. */
  #next = 0
  #upTo = 0

  constructor(slots: Slab) {
    this.#slots = slots
  }

  use(slot: number): void {
    const { doubles, shift, mask, width } = this.#slots
    const row = doubles[slot >>> shift]!
    const at = (slot & mask) * width
    const before = row[at]!
    row[at] = ++this.#tick
    if (before >= 0) return
    this.#parked.remove(slot)
    this.#found.add(slot, this.#tick)
  }

  /** Removes the slot. Call it before the row is deleted. */
  forget(slot: number): void {
    for (const heap of [this.#parked, this.#found]) if (heap.has(slot)) heap.remove(slot)
    this.#setTick(slot, 0)
  }

  /** Returns the least recently used slot that isn't parked, or 0. Unparks slots that have opened. */
  oldest(nowMs: number): number {
    for (let i = 0; i < MOST_OPENED && this.#parked.leastValue <= nowMs; i++) {
      const slot = this.#parked.least
      this.#parked.remove(slot)
      this.#setTick(slot, -this.#tickOf(slot))
      this.#found.add(slot, this.#tickOf(slot))
    }
    for (;;) {
      const slot = this.#found.least
      const tick = this.#tickOf(slot)
      if (slot !== 0 && tick !== this.#found.leastValue) {
        // The slot has been used since it was found.
        this.#found.remove(slot)
        this.#found.add(slot, tick)
      } else if ((slot !== 0 && tick <= this.#foundUpTo) || this.#areAllFound) {
        return slot
      } else {
        this.#search(Number.MAX_SAFE_INTEGER)
      }
    }
  }

  /** Parks a slot until it opens. Call it only for the slot that {@link oldest} returned. */
  park(slot: number, opensAtMs: number): void {
    this.#setTick(slot, -this.#found.leastValue)
    this.#found.remove(slot)
    this.#parked.add(slot, opensAtMs)
  }

  /** When the first parked slot opens, or 0 if none is parked. */
  get opensAtMs(): number {
    return this.#parked.least === 0 ? 0 : this.#parked.leastValue
  }

  /** Whether every slot has been found or parked. Row 0 isn't a slot. */
  get #areAllFound(): boolean {
    return this.#parked.size + this.#found.size === this.#slots.rows - 1
  }

  /** Continues a search, or starts one if too few slots have been found. Takes as long as looking at `most` rows. */
  searchAhead(most: number): void {
    const isEnough = this.#areAllFound || this.#found.size > this.#slots.rows >>> 7
    if (this.#next > 0 || !isEnough) this.#search(most)
  }

  #search(most: number): void {
    if (this.#next === 0) this.#upTo = this.#sampled()
    const { doubles, shift, mask, width } = this.#slots
    // The tick of a free row is less than 1.
    const from = this.#foundUpTo + 1
    for (let left = most; left > 0; ) {
      const chunk = doubles[this.#next >>> shift]
      if (chunk === undefined) {
        this.#next = 0
        this.#foundUpTo = this.#upTo
        return
      }
      const first = this.#next & mask
      const rows = chunk.length / width
      let place = first
      for (; place < rows && left > 0; place++, left--) {
        const tick = chunk[place * width]!
        const slot = this.#next - first + place
        if (tick < from || tick > this.#upTo || this.#found.has(slot)) continue
        this.#found.add(slot, tick)
        left -= ROWS_PER_FOUND
      }
      this.#next += place < rows ? place - first : mask + 1 - first
    }
  }

  /** The tick up to which a search collects slots. Roughly 1 in 16 slots is older, or 1 in 64 in a large store. */
  #sampled(): number {
    const { rows, doubles, shift, mask, width } = this.#slots
    const last = doubles.length - 1
    const end = (last << shift) + doubles[last]!.length / width
    const wanted = Math.min(Math.max(rows >>> 4, FEWEST_SAMPLED), MOST_SAMPLED)
    const step = Math.max(1, Math.floor(end / wanted))
    const ticks: number[] = []
    for (let row = 0; row < end; row += step) {
      // A freed chunk has no rows.
      const tick = doubles[row >>> shift]![(row & mask) * width] ?? 0
      if (tick >= this.#foundUpTo + 1 && !this.#found.has(row)) ticks.push(tick)
    }
    const sorted = new Float64Array(ticks).sort()
    return sorted[Math.min(sorted.length >>> 4, MOST_SAMPLED >>> 6)] ?? this.#tick
  }

  #tickOf(slot: number): number {
    const { doubles, shift, mask, width } = this.#slots
    return doubles[slot >>> shift]![(slot & mask) * width]!
  }

  #setTick(slot: number, tick: number): void {
    const { doubles, shift, mask, width } = this.#slots
    doubles[slot >>> shift]![(slot & mask) * width] = tick
  }
}

/** A heap of slots, ordered by value. Slots are removed immediately: removing many later would block the process. */
class SlotHeap {
  readonly #slots: number[] = []
  readonly #values: number[] = []
  /** By slot: its place in the heap plus 1, or 0. In pieces, because copying a large array would block the process. */
  readonly #places: Int32Array[] = []

  get size(): number {
    return this.#slots.length
  }

  /** The slot with the lowest value, or 0 if the heap is empty. */
  get least(): number {
    return this.#slots[0] ?? 0
  }

  get leastValue(): number {
    return this.#values[0] ?? Number.POSITIVE_INFINITY
  }

  has(slot: number): boolean {
    return this.#placeOf(slot) > 0
  }

  add(slot: number, value: number): void {
    this.#slots.push(slot)
    this.#values.push(value)
    this.#rise(this.#slots.length - 1, slot, value)
  }

  remove(slot: number): void {
    const place = this.#placeOf(slot) - 1
    this.#places[slot >>> PIECE_SHIFT]![slot & PIECE_MASK] = 0
    const last = this.#slots.pop()!
    const value = this.#values.pop()!
    // The last slot moves to the removed slot's place, and then up or down.
    if (last !== slot) this.#rise(this.#sink(place, value), last, value)
  }

  #rise(from: number, slot: number, value: number): void {
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      if (this.#values[above]! <= value) break
      this.#put(place, this.#slots[above]!, this.#values[above]!)
      place = above
    }
    this.#put(place, slot, value)
  }

  /** Moves smaller values up. Returns the place for the value. */
  #sink(from: number, value: number): number {
    let place = from
    for (let below = 2 * place + 1; below < this.#values.length; below = 2 * place + 1) {
      if (below + 1 < this.#values.length && this.#values[below + 1]! < this.#values[below]!) below++
      if (this.#values[below]! >= value) break
      this.#put(place, this.#slots[below]!, this.#values[below]!)
      place = below
    }
    return place
  }

  #put(place: number, slot: number, value: number): void {
    this.#slots[place] = slot
    this.#values[place] = value
    this.#places[slot >>> PIECE_SHIFT] ??= new Int32Array(2 ** PIECE_SHIFT)
    this.#places[slot >>> PIECE_SHIFT]![slot & PIECE_MASK] = place + 1
  }

  #placeOf(slot: number): number {
    return this.#places[slot >>> PIECE_SHIFT]?.[slot & PIECE_MASK] ?? 0
  }
}
