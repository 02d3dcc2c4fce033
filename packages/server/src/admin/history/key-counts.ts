// Counts the requests for individual keys in the current minute.

import type { Decision } from 'slidegate'

/** A key's counts in one minute. */
export interface KeyCounts {
  /** Dimension, `=` and key. */
  readonly word: string
  readonly allowed: number
  readonly denied: number
  /** Units charged to allowed requests. */
  readonly units: number
  /** 2: watched by operators. 1: blocked. 0: any other key. */
  readonly rank: number
}

/** The columns in each slot: allowed, denied, units. */
const WIDTH = 3

export class SlotCounts {
  readonly #counts: Float64Array

  constructor(slots: number) {
    this.#counts = new Float64Array(WIDTH * slots)
  }

  add(slot: number, { allowed, cost }: Decision, isDenied: boolean): void {
    const row = WIDTH * slot
    if (allowed) {
      this.#counts[row]!++
      this.#counts[row + 2]! += cost
    } else if (isDenied) this.#counts[row + 1]!++
  }

  clear(slot: number): void {
    this.#counts.fill(0, WIDTH * slot, WIDTH * (slot + 1))
  }

  /** Returns the counts in a slot since the last call. Undefined if there were no requests. */
  take(slot: number): Pick<KeyCounts, 'allowed' | 'denied' | 'units'> | undefined {
    const [allowed, denied, units] = this.#counts.subarray(WIDTH * slot)
    if (allowed === 0 && denied === 0) return undefined
    this.clear(slot)
    return { allowed: allowed!, denied: denied!, units: units! }
  }

  /** Moves each slot's counts to `words`, under the slot's word. */
  takeTo(words: Map<string, KeyCounts>, wordAt: (slot: number) => string): void {
    for (let slot = 0; slot < this.#counts.length / WIDTH; slot++) {
      const counts = this.take(slot)
      if (counts === undefined) continue
      const word = wordAt(slot)
      const known = words.get(word)
      words.set(word, {
        word,
        allowed: counts.allowed + (known?.allowed ?? 0),
        denied: counts.denied + (known?.denied ?? 0),
        units: counts.units + (known?.units ?? 0),
        rank: 0,
      })
    }
  }
}
