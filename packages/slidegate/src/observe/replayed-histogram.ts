// Histograms that are passed to OpenTelemetry when it collects.
import type { Attributes, Histogram } from '@opentelemetry/api'
import type { HistogramCounts } from '../runtime/histogram.ts'

/** Maximum number of values recorded per collection. */
const MOST = 1000

/** Keeps values above the lower bound of their bucket, which isn't part of it. */
const LEAST_SHARE = 0.001

/**
 * Records counts in a histogram of OpenTelemetry when it collects.
 *
 * OpenTelemetry takes histograms value by value, each at many times the cost of a decision. So values are counted in buckets, and a
 * collection records the new ones: as many in each bucket, with the same sum. Of more than 1,000 it records 1,000 in the same
 * shares, and carries rounded parts over.
 */
export class ReplayedHistogram {
  readonly #histogram: Histogram
  readonly #attributes: Attributes
  /** Divides counted values to get recorded ones. */
  readonly #unit: number
  #recorded: HistogramCounts | undefined
  /** Parts of values carried over, by bucket. */
  readonly #rest: number[] = []

  /** @param recorded counts to leave out */
  constructor(histogram: Histogram, attributes: Attributes, unit: number, recorded?: HistogramCounts) {
    this.#histogram = histogram
    this.#attributes = attributes
    this.#unit = unit
    this.#recorded = recorded
  }

  /** Records the values since the last call. */
  record(counts: HistogramCounts): void {
    const recorded = this.#recorded
    this.#recorded = counts
    const added = counts.counts.map((count, i) => count - (recorded?.counts[i] ?? 0))
    const total = added.reduce((sum, count) => sum + count, 0)
    if (total === 0) return
    const values = valuesOf(counts.bounds, added, counts.sum - (recorded?.sum ?? 0))
    const share = Math.min(1, MOST / total)
    for (let i = 0; i < added.length; i++) {
      const due = (this.#rest[i] ?? 0) + added[i]! * share
      const whole = Math.floor(due)
      this.#rest[i] = due - whole
      for (let n = 0; n < whole; n++) this.#histogram.record(values[i]! / this.#unit, this.#attributes)
    }
  }
}

/** One value per bucket, at the same share of its width, so that they add up to the sum. */
function valuesOf(bounds: readonly number[], counts: readonly number[], sum: number): number[] {
  const lows = [0, ...bounds]
  const widths = lows.map((low, i) => (bounds[i] ?? low) - low)
  const lowest = lows.reduce((total, low, i) => total + counts[i]! * low, 0)
  const width = widths.reduce((total, width, i) => total + counts[i]! * width, 0)
  const above = counts.at(-1)!
  // Values above all bounds take the rest of the sum.
  const share = above > 0 ? 0.5 : Math.min(1, Math.max(LEAST_SHARE, (sum - lowest) / width))
  const values = lows.map((low, i) => Math.min(bounds[i] ?? low, low + share * widths[i]!))
  const greatest = bounds.at(-1) ?? 0
  const beyond = above > 0 ? (sum - lowest - share * width) / above : 0
  values[bounds.length] = greatest + Math.max(beyond, greatest * LEAST_SHARE)
  return values
}
