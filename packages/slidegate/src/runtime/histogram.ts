// Counts values in buckets.

import { checkThat } from '../errors.ts'

/** How many values fell into each bucket. */
export interface HistogramCounts {
  /** Upper bounds, ascending and inclusive. */
  readonly bounds: readonly number[]
  /** Values per bucket, not cumulative. An extra bucket at the end counts values above the last bound. */
  readonly counts: readonly number[]
  /** The sum of all values. */
  readonly sum: number
}

/** Counts values in predefined buckets, without allocating. */
export class Histogram {
  readonly #bounds: readonly number[]
  /** The last item is the sum. If it were a field, V8 might allocate a number on each change. */
  readonly #counts: Float64Array

  /**
   * @param bounds upper bounds of the buckets, finite and ascending
   * @throws {SlidegateError} `invalid_option`
   */
  constructor(bounds: readonly number[]) {
    const isAscending =
      Array.isArray(bounds) &&
      bounds.every((bound, i) => Number.isFinite(bound) && !(bound <= bounds[i - 1]!))
    checkThat(isAscending, 'bounds', bounds, 'an array of ascending numbers')
    this.#bounds = [...bounds]
    this.#counts = new Float64Array(bounds.length + 2)
  }

  /** Counts a value. */
  observe(value: number): void {
    const bounds = this.#bounds
    let i = 0
    while (i < bounds.length && value > bounds[i]!) i++
    this.#counts[i]!++
    this.#counts[bounds.length + 1]! += value
  }

  /** Returns a copy of the counts. */
  read(): HistogramCounts {
    const bounds = this.#bounds
    const counts = Array.from(this.#counts.subarray(0, bounds.length + 1))
    return { bounds, counts, sum: this.#counts[bounds.length + 1]! }
  }
}
