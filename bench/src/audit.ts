import assert from 'node:assert/strict'
import type { Decision } from 'slidegate'

/**
 * Writes down what was answered for one key (requests of cost 1, all admitted) and afterwards counts for each
 * answer what had truly been admitted in its window: a limiter that forgets is not a fast one. Writing down
 * is two stores to typed arrays, little beside any decision; counting is done when nothing is measured.
 */
export class Audit {
  readonly #limit: number
  readonly #windowMs: number
  #atMs = new Float64Array(1024)
  #remaining = new Float64Array(1024)
  #answers = 0
  /** Answers that have been verified already; kept while they are in the window of those to come. */
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
      assert.equal(used, i - oldest + 1, `units used at ${atMs}, by the answer and by the count of answers`)
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
