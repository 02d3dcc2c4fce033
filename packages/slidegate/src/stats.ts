import type { StoreUnavailableReason, WaitErrorReason } from './errors.ts'
import { Histogram, type HistogramCounts } from './runtime/histogram.ts'
import type { Outcome } from './stores/store.ts'

/**
 * What has gone wrong since the limiter was made, and how long was waited. Numbers, never keys: they may be exported
 * as metrics.
 */
export interface LimiterStats {
  /** What was asked of the store without an answer, by the reason; with `down` it was not even asked. */
  readonly storeErrors: Readonly<Record<StoreUnavailableReason, number>>
  /** Requests that were answered without the store, by the `source` of their decisions; those of each part of a Cluster. */
  readonly withoutStore: Readonly<Record<'failOpen' | 'failClosed' | 'fallback', number>>
  /** How often the store was given up for a while: the breaker has opened. On a Cluster, those of all its parts. */
  readonly breakerOpened: number
  /** Whether a breaker is open now: the store is not asked, or a part of a Cluster is not. */
  readonly isStoreDown: boolean
  /** How often the store's clock was set by more than a second. */
  readonly clockSteps: number
  /** Milliseconds that requests have waited that were admitted in the end, by `wait` or `schedule`. */
  readonly waits: HistogramCounts
  /** Those that were not, by the reason of their `WaitError`. */
  readonly waitErrors: Readonly<Record<WaitErrorReason, number>>
  /** Permits that are held now, by `acquire` or `schedule` in this process. */
  readonly permits: number
}

const WAITS_MS = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000]

/** What became of those who have waited. */
export class WaitCounts {
  /** Milliseconds that those have waited who were admitted. */
  readonly served: Histogram = new Histogram(WAITS_MS)
  readonly errors: Record<WaitErrorReason, number> = { full: 0, late: 0, aborted: 0, never: 0 }
}

/** Counts it. */
export class Tally {
  readonly storeErrors: Record<StoreUnavailableReason, number> = {
    timeout: 0,
    error: 0,
    down: 0,
    overload: 0,
    full: 0,
    state: 0,
  }
  readonly withoutStore = { failOpen: 0, failClosed: 0, fallback: 0 }
  opened = 0
  isDown = false
  clockSteps = 0
  readonly waits: WaitCounts = new WaitCounts()

  /** Requests were told these, by somebody else than the store. */
  count(answers: readonly Outcome[]): void {
    for (const answer of answers) {
      const source = answer !== undefined && 'source' in answer ? answer.source : undefined
      if (source === 'failOpen' || source === 'failClosed' || source === 'fallback')
        this.withoutStore[source]++
    }
  }

  stats(): Omit<LimiterStats, 'permits'> {
    const { storeErrors, withoutStore, opened, isDown, clockSteps, waits } = this
    return {
      storeErrors: { ...storeErrors },
      withoutStore: { ...withoutStore },
      breakerOpened: opened,
      isStoreDown: isDown,
      clockSteps,
      waits: waits.served.read(),
      waitErrors: { ...waits.errors },
    }
  }
}
