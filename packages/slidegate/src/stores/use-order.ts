/** Where the circle of slots begins and ends. */
const END = 0

const INITIAL_SLOTS = 64

/**
 * Slots, numbers from 1 that are handed out in turn, in the order of their last use. A circle of numbers in
 * one array: in a list of objects, each use would fetch the neighbours from all over the heap.
 */
export class UseOrder {
  /** For each slot the one used before it and the one used after it. */
  #links = new Int32Array(2 * INITIAL_SLOTS)

  /** The slot used longest ago; 0 where there is none. */
  get oldest(): number {
    return this.#links[2 * END + 1]!
  }

  get newest(): number {
    return this.#links[2 * END]!
  }

  /** Adds a slot, as the newest. */
  append(slot: number): void {
    if (2 * slot >= this.#links.length) this.#grow()
    this.#link(this.newest, slot)
    this.#link(slot, END)
  }

  remove(slot: number): void {
    this.#link(this.#links[2 * slot]!, this.#links[2 * slot + 1]!)
  }

  #link(older: number, newer: number): void {
    this.#links[2 * older + 1] = newer
    this.#links[2 * newer] = older
  }

  #grow(): void {
    const links = new Int32Array(2 * this.#links.length)
    links.set(this.#links)
    this.#links = links
  }
}
