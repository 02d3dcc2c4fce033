/** Keys that are taken note of at once, at most, as no longer being at their limit: a thousand may open in one millisecond. */
const MOST_OPENED = 256

/**
 * Keys that were found at their limit while room was made, until they are used again: so that no search
 * meets them twice. They wait by when they open, and thereafter by when they were used.
 *
 * All of them were used before any that is not here: the least recently used is the one that is parked, and
 * whoever is used leaves.
 */
export class Parking {
  /** By when they open. */
  readonly #closed = new SlotHeap()
  /** By their place in the order of use. */
  readonly #opened = new SlotHeap()
  /** That of each slot. */
  #orders: Float64Array = new Float64Array(64)
  #lastOrder = 0

  /** Only for the least recently used key. */
  park(slot: number, opensAtMs: number): void {
    if (this.#opened.has(slot)) this.#opened.remove(slot)
    else this.#remember(slot)
    this.#closed.add(slot, opensAtMs)
  }

  leave(slot: number): void {
    if (this.#closed.has(slot)) this.#closed.remove(slot)
    else if (this.#opened.has(slot)) this.#opened.remove(slot)
  }

  /**
   * Of those that may no longer be at their limit the least recently used one, as far as it was taken note of; 0
   * where there is none.
   */
  open(nowMs: number): number {
    for (let i = 0; i < MOST_OPENED && this.#closed.leastValue <= nowMs; i++) {
      const slot = this.#closed.least
      this.#closed.remove(slot)
      this.#opened.add(slot, this.#orders[slot]!)
    }
    return this.#opened.least
  }

  /** When the first of them opens; 0 where there is none. */
  get opensAtMs(): number {
    return this.#closed.least === 0 ? 0 : this.#closed.leastValue
  }

  #remember(slot: number): void {
    if (slot >= this.#orders.length) {
      const enlarged = new Float64Array(2 * Math.max(slot, this.#orders.length))
      enlarged.set(this.#orders)
      this.#orders = enlarged
    }
    this.#orders[slot] = this.#lastOrder++
  }
}

/**
 * Slots with a value each, of which the least is found at once: a binary heap that knows where each slot stands, so that
 * any can be taken out. What no longer holds could also be left in it until it comes up; to sweep all that out in one go
 * would stop the process.
 */
class SlotHeap {
  readonly #slots: number[] = []
  readonly #values: number[] = []
  /** Where each slot stands, from 1 on; 0 for those that are not here. */
  #places: Int32Array = new Int32Array(64)

  /** 0 where there is none. */
  get least(): number {
    return this.#slots[0] ?? 0
  }

  get leastValue(): number {
    return this.#values[0] ?? Number.POSITIVE_INFINITY
  }

  has(slot: number): boolean {
    return slot < this.#places.length && this.#places[slot]! > 0
  }

  add(slot: number, value: number): void {
    if (slot >= this.#places.length) {
      const enlarged = new Int32Array(2 * Math.max(slot, this.#places.length))
      enlarged.set(this.#places)
      this.#places = enlarged
    }
    this.#slots.push(slot)
    this.#values.push(value)
    this.#rise(this.#slots.length - 1, slot, value)
  }

  remove(slot: number): void {
    const place = this.#places[slot]! - 1
    this.#places[slot] = 0
    const last = this.#slots.pop()!
    const value = this.#values.pop()!
    // The last one takes the place, and goes on from there to its own.
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

  /** Makes room for a value below those that are less; answers where. */
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
    this.#places[slot] = place + 1
  }
}
