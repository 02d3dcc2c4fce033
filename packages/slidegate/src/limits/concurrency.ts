// Concurrency limits: their options, on a log of entries that are held.

import { type Duration, parseWindow } from '../runtime/duration.ts'
import { checkDeclaration, declareLimit, type NameOptions, parseLimit } from './declare.ts'
import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { Limit } from './limit.ts'

/** How many units can be held at once, and when a lost holder's units are freed. */
export interface ConcurrencyOptions extends NameOptions {
  /** Units held at the same time: an integer from 1 to 10,000. */
  readonly limit: number
  /**
   * How long units are held without a renewal, from 10 ms to 366 days. `acquire` renews its units each third of it. A shorter
   * time frees the units of a crashed process sooner, and asks more of the store.
   */
  readonly ttl: Duration
}

/**
 * At most `limit` units at the same time: requests under way, connections, jobs.
 *
 * Exact: units are held until they are released, or until `ttl` has passed since the last renewal. So a crashed process holds
 * nothing for ever. A late release never frees another holder's units.
 *
 * Use `limiter.acquire`. With `consume`, units are held for `ttl`, or until the decision is refunded.
 * `retryAfterMs` is when enough is free if nobody renews or releases.
 *
 * In Redis a sorted set of holders, about 120 bytes each.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_duration` (for `ttl`), `invalid_name`
 */
export function concurrency(options: ConcurrencyOptions): Limit {
  checkDeclaration(options, '{ limit, ttl }', { limit: true, ttl: true })
  const limit = parseLimit(options.limit, 'the limit', MAX_ENTRIES)
  const windowMs = parseWindow(options.ttl, 'ttl')
  const made = { kind: concurrencyKind, limit, windowMs, precisionMs: 1 }
  return declareLimit(made, concurrency, options, { kind: 'concurrency', limit, ttl: windowMs })
}

const concurrencyKind = entryWindowKind('k', 'holder')
