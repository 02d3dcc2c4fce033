import assert from 'node:assert/strict'
import type { Decision } from 'slidegate'

/**
 * Writes down what was answered for one key (requests of cost 1, all admitted) and afterwards counts for each
 * answer what had truly been admitted in its window: a limiter that forgets is not a fast one.
 */
export class Audit {
  readonly #limit: number
  readonly #windowMs: number
  #atMs: number[] = []
  #remaining: number[] = []
  /** Answers that have been verified already; kept while they are in the window of those to come. */
  #verified = 0

  constructor(limit: number, windowMs: number) {
    this.#limit = limit
    this.#windowMs = windowMs
  }

  record({ atMs, remaining }: Decision): void {
    this.#atMs.push(atMs)
    this.#remaining.push(remaining)
  }

  verify(): void {
    let oldest = 0
    for (let i = 0; i < this.#atMs.length; i++) {
      const atMs = this.#atMs[i]!
      while (this.#atMs[oldest]! <= atMs - this.#windowMs) oldest++
      if (i < this.#verified) continue
      const used = this.#limit - this.#remaining[i]!
      assert.equal(used, i - oldest + 1, `units used at ${atMs}, by the answer and by the count of answers`)
    }
    this.#atMs = this.#atMs.slice(oldest)
    this.#remaining = this.#remaining.slice(oldest)
    this.#verified = this.#atMs.length
  }
}
