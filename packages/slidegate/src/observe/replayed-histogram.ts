// Passes histograms to OpenTelemetry when it collects metrics.
import type { Attributes, Histogram } from '@opentelemetry/api'
import type { HistogramCounts } from '../runtime/histogram.ts'

/** Maximum number of values recorded per collection. */
const MOST = 1000

/** A fraction of a bucket's width. Recorded values exceed the bucket's exclusive lower bound by at least this much. */
const LEAST_SHARE = 0.001

/**
 * Records counts in an OpenTelemetry histogram when it collects metrics.
 *
 * OpenTelemetry records a histogram value by value, which costs many times as much as a decision. So values are counted in
 * buckets. Each collection records as many values per bucket as were counted since the last one, with the same
 * sum. If there are more than 1,000 new values, it records 1,000 in the same proportions and carries the fractions over.
 */
export class ReplayedHistogram {
  readonly #histogram: Histogram
  readonly #attributes: Attributes
  /** Counted values are divided by this number before they are recorded. */
  readonly #unit: number
  #recorded: HistogramCounts | undefined
  /** Fractions of values carried over, per bucket. */
  readonly #rest: number[] = []

  /** @param recorded counts that are already recorded */
  constructor(histogram: Histogram, attributes: Attributes, unit: number, recorded?: HistogramCounts) {
    this.#histogram = histogram
    this.#attributes = attributes
    this.#unit = unit
    this.#recorded = recorded
  }

  /** Records the values added since the last call. */
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

/** Returns one value per bucket, at the same fraction of each width. Multiplied by the counts, they add up to the sum. */
function valuesOf(bounds: readonly number[], counts: readonly number[], sum: number): number[] {
  const lows = [0, ...bounds]
  const widths = lows.map((low, i) => (bounds[i] ?? low) - low)
  const lowest = lows.reduce((total, low, i) => total + counts[i]! * low, 0)
  const width = widths.reduce((total, width, i) => total + counts[i]! * width, 0)
  const above = counts.at(-1)!
  // Values above all bounds make up the rest of the sum.
  const share = above > 0 ? 0.5 : Math.min(1, Math.max(LEAST_SHARE, (sum - lowest) / width))
  const values = lows.map((low, i) => Math.min(bounds[i] ?? low, low + share * widths[i]!))
  const greatest = bounds.at(-1) ?? 0
  const beyond = above > 0 ? (sum - lowest - share * width) / above : 0
  values[bounds.length] = greatest + Math.max(beyond, greatest * LEAST_SHARE)
  return values
}
