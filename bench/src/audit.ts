import assert from 'node:assert/strict'
import type { Decision } from 'slidegate'

/**
 * Records the decisions on one key, then checks each decision's usage against a count.
 *
 * All requests have a cost of 1 and are admitted. Recording writes to two typed arrays, which is cheap compared with a
 * decision. `verify` runs outside of the measurement.
 */
export class Audit {
  readonly #limit: number
  readonly #windowMs: number
  #atMs = new Float64Array(1024)
  #remaining = new Float64Array(1024)
  #answers = 0
  /** The number of verified answers. Answers are kept while they can be in a later answer's window. */
  #verified = 0

  constructor(limit: number, windowMs: number) {
    this.#limit = limit
    this.#windowMs = windowMs
  }

  record({ atMs, remaining }: Decision): void {
    if (this.#answers === this.#atMs.length) this.#grow()
    this.#atMs[this.#answers] = atMs
    this.#remaining[this.#answers++] = remaining
  }

  verify(): void {
    let oldest = 0
    for (let i = 0; i < this.#answers; i++) {
      const atMs = this.#atMs[i]!
      while (this.#atMs[oldest]! <= atMs - this.#windowMs) oldest++
      if (i < this.#verified) continue
      const used = this.#limit - this.#remaining[i]!
      assert.equal(used, i - oldest + 1, `units used at ${atMs}: reported by the decision, and counted`)
    }
    this.#atMs.copyWithin(0, oldest, this.#answers)
    this.#remaining.copyWithin(0, oldest, this.#answers)
    this.#answers -= oldest
    this.#verified = this.#answers
  }

  #grow(): void {
    const [atMs, remaining] = [this.#atMs, this.#remaining]
    this.#atMs = new Float64Array(2 * atMs.length)
    this.#remaining = new Float64Array(2 * atMs.length)
    this.#atMs.set(atMs)
    this.#remaining.set(remaining)
  }
}
