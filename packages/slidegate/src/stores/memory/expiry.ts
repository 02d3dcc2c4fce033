// Finds blocks of slots whose keys may have expired.

const NEVER = Number.POSITIVE_INFINITY

/** The base-2 logarithm of the number of slots in a block. */
const BLOCK_SHIFT = 6

export const BLOCK_SLOTS: number = 2 ** BLOCK_SHIFT

/** Keeps one time per block, before which none of its keys expire. Sorting the times of all keys would cost more. */
export class Expiry {
  /** A tree of minimums. The root is at 1, the children of i at 2i and 2i + 1, and the blocks in the second half. */
  #dueAtMs: Float64Array = new Float64Array(2).fill(NEVER)

  /** Ensures that the slot's block is due at this time or earlier. */
  lower(slot: number, dueAtMs: number): void {
    const block = slot >>> BLOCK_SHIFT
    while (block >= this.#blocks) this.#enlarge()
    if (dueAtMs < this.#dueAtMs[this.#blocks + block]!) this.set(slot, dueAtMs)
  }

  /** Returns the first slot of a block that is due, or `undefined`. */
  due(byMs: number): number | undefined {
    if (this.#dueAtMs[1]! > byMs) return undefined
    let node = 1
    while (node < this.#blocks) node = 2 * node + (this.#dueAtMs[2 * node]! > byMs ? 1 : 0)
    return (node - this.#blocks) << BLOCK_SHIFT
  }

  set(slot: number, dueAtMs: number): void {
    let node = this.#blocks + (slot >>> BLOCK_SHIFT)
    this.#dueAtMs[node] = dueAtMs
    for (node >>>= 1; node > 0; node >>>= 1) {
      const sooner = Math.min(this.#dueAtMs[2 * node]!, this.#dueAtMs[2 * node + 1]!)
      if (this.#dueAtMs[node] === sooner) return
      this.#dueAtMs[node] = sooner
    }
  }

  get #blocks(): number {
    return this.#dueAtMs.length / 2
  }

  #enlarge(): void {
    const leaves = this.#dueAtMs.slice(this.#blocks)
    this.#dueAtMs = new Float64Array(4 * leaves.length).fill(NEVER)
    leaves.forEach((dueAtMs, block) => {
      this.set(block << BLOCK_SHIFT, dueAtMs)
    })
  }
}
