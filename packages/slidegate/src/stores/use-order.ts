import type { Slab } from '../slab.ts'

/** Where the circle of slots begins and ends. */
const END = 0

/** Instead of the slot used after it: not in the order. */
const OUT = -1

/** The first two integers of a slot's row: the slot used before it, and the one used after it. */
const OLDER = 0
const NEWER = 1

/**
 * Slots in the order of their last use: a circle through their rows, which begins and ends at row 0. A list of
 * objects would be the same, but for the cost of fetching them from all over the heap.
 */
export class UseOrder {
  readonly #slots: Slab

  constructor(slots: Slab) {
    this.#slots = slots
  }

  /** The slot used longest ago; 0 where there is none. */
  get oldest(): number {
    return this.#read(END, NEWER)
  }

  get newest(): number {
    return this.#read(END, OLDER)
  }

  has(slot: number): boolean {
    return this.#read(slot, NEWER) !== OUT
  }

  /** Adds a slot, as the newest. */
  append(slot: number): void {
    this.#link(this.newest, slot)
    this.#link(slot, END)
  }

  remove(slot: number): void {
    this.#link(this.#read(slot, OLDER), this.#read(slot, NEWER))
    this.#write(slot, NEWER, OUT)
  }

  #link(older: number, newer: number): void {
    this.#write(older, NEWER, newer)
    this.#write(newer, OLDER, older)
  }

  #read(slot: number, column: number): number {
    const { ints, shift, mask, width } = this.#slots
    return ints[slot >>> shift]![2 * (slot & mask) * width + column]!
  }

  #write(slot: number, column: number, value: number): void {
    const { ints, shift, mask, width } = this.#slots
    ints[slot >>> shift]![2 * (slot & mask) * width + column] = value
  }
}
