// Concurrency limits and reservations: logs with an entry per holder.

import { type Duration, parseWindow } from '../runtime/duration.ts'
import { checkDeclaration, declareLimit, type NameOptions, parseLimit } from './declare.ts'
import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { Limit } from './limit.ts'
import type { Log } from './limit-set.ts'

/** Options for a concurrency limit. */
export interface ConcurrencyOptions extends NameOptions {
  /** Maximum units held at the same time, an integer from 1 to 10,000. */
  readonly limit: number
  /**
   * How long units are held without a renewal, from 10 ms to 366 days. `acquire` renews them three times per `ttl`.
   *
   * A shorter time frees a crashed process's units sooner, but puts more load on the store.
   */
  readonly ttl: Duration
}

/**
 * Limits the units held at the same time: requests in flight, connections, jobs.
 *
 * Units are held until they are released, or until `ttl` after the last renewal. A late release never frees another holder's
 * units. Use `limiter.acquire`, or `consume` with a `requestId` to release. `retryAfterMs` is the time until enough
 * units are free if no unit is renewed or released before then.
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
const reservationKind = entryWindowKind('r', 'holder')

/** The log of a key's open reservations. A reservation lasts for `ttlMs`, or until there are 10,000 newer ones. */
export function reservationLog(ttlMs: number): Log {
  const params = { precision: 1, records: MAX_ENTRIES, windows: [ttlMs], limits: [MAX_ENTRIES] }
  return { name: `r${ttlMs}`, kind: reservationKind, role: 'reservations', shadow: false, params, serves: [] }
}
