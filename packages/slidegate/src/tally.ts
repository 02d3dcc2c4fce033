import type { StoreUnavailableReason } from './errors.ts'
import type { Outcome } from './stores/store.ts'

/** What has gone wrong since the limiter was made. Numbers, never keys: they may be exported as metrics. */
export interface LimiterStats {
  /** What was asked of the store without an answer, by the reason; with `down` it was not even asked. */
  readonly storeErrors: Readonly<Record<StoreUnavailableReason, number>>
  /** Requests that were answered without the store, by the `source` of their decisions; those of each part of a Cluster. */
  readonly withoutStore: Readonly<Record<'failOpen' | 'failClosed' | 'fallback', number>>
  /** How often the store was given up for a while: the breaker has opened. On a Cluster, those of all its parts. */
  readonly breakerOpened: number
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

  /** Requests were told these, by somebody else than the store. */
  count(answers: readonly Outcome[]): void {
    for (const answer of answers) {
      const source = answer !== undefined && 'source' in answer ? answer.source : undefined
      if (source === 'failOpen' || source === 'failClosed' || source === 'fallback')
        this.withoutStore[source]++
    }
  }

  stats(): LimiterStats {
    const { storeErrors, withoutStore, opened } = this
    return { storeErrors: { ...storeErrors }, withoutStore: { ...withoutStore }, breakerOpened: opened }
  }
}
