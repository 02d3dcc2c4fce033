// Histograms, handed to OpenTelemetry when it collects.
import type { Attributes, Histogram } from '@opentelemetry/api'
import type { HistogramCounts } from '../runtime/histogram.ts'

/** Values that are recorded of one histogram in one go at most. */
const MOST = 1000

/** A bucket's lower bound is not part of it. */
const LEAST_SHARE = 0.001

/**
 * OpenTelemetry asks for counters and gauges when it collects. Histograms it takes value by value, each at many
 * times the cost of a decision. So values are counted in buckets as they come, and when it collects, what has come since is
 * recorded: as many values in each bucket, and of the same sum. Where they are more than 1,000, it is a thousand in the
 * same shares; what that rounds off is recorded later.
 */
export class ReplayedHistogram {
  readonly #histogram: Histogram
  readonly #attributes: Attributes
  /** What 1 of the histogram is in the unit of the counts. */
  readonly #unit: number
  #recorded: HistogramCounts | undefined
  /** Parts of values that are still to be recorded, by bucket. */
  readonly #rest: number[] = []

  /** @param recorded what is not recorded, for it was counted before */
  constructor(histogram: Histogram, attributes: Attributes, unit: number, recorded?: HistogramCounts) {
    this.#histogram = histogram
    this.#attributes = attributes
    this.#unit = unit
    this.#recorded = recorded
  }

  /** Records what is new in these counts. */
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

/** A value in each bucket, the same share of the way through each, so that all together have the sum of those that were counted. */
function valuesOf(bounds: readonly number[], counts: readonly number[], sum: number): number[] {
  const lows = [0, ...bounds]
  const widths = lows.map((low, i) => (bounds[i] ?? low) - low)
  const lowest = lows.reduce((total, low, i) => total + counts[i]! * low, 0)
  const width = widths.reduce((total, width, i) => total + counts[i]! * width, 0)
  const above = counts.at(-1)!
  // Those above all bounds have the rest of the sum, whatever the others are taken for.
  const share = above > 0 ? 0.5 : Math.min(1, Math.max(LEAST_SHARE, (sum - lowest) / width))
  const values = lows.map((low, i) => Math.min(bounds[i] ?? low, low + share * widths[i]!))
  const greatest = bounds.at(-1) ?? 0
  const beyond = above > 0 ? (sum - lowest - share * width) / above : 0
  values[bounds.length] = greatest + Math.max(beyond, greatest * LEAST_SHARE)
  return values
}
