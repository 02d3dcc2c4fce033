import { Histogram } from '../metrics/histogram.ts'
import type { WaitErrorReason } from './wait-error.ts'

const MS = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000]

/** What became of those who have waited. */
export class WaitCounts {
  /** Milliseconds that those have waited who were admitted. */
  readonly served: Histogram = new Histogram(MS)
  readonly errors: Record<WaitErrorReason, number> = { full: 0, late: 0, aborted: 0, never: 0 }
}
