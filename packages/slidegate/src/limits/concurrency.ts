// Concurrency limits: their options, on a log of entries that are held.

import { type Duration, parseWindow } from '../runtime/duration.ts'
import { checkDeclaration, declareLimit, type NameOptions, nameOf, parseLimit } from './declare.ts'
import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { Limit } from './limit.ts'

/** How much may be held at the same time, and for how long by one who is lost. */
export interface ConcurrencyOptions extends NameOptions {
  /** Units that may be held at the same time: an integer from 1 to 10,000. */
  readonly limit: number
  /**
   * For how long units are held by one who is never heard of again, from 10 ms to 366 days. `acquire` renews what it
   * has taken each third of it: the shorter, the sooner is free what a process that died has held, and the more is
   * asked of the store.
   */
  readonly ttl: Duration
}

/**
 * At most `limit` units at the same time: requests under way, connections, jobs. Exact: who is admitted holds his
 * units until they are released, or for `ttl` after he has last renewed them, so that nothing is held for ever by a
 * process that died. A release that comes too late frees nobody else's.
 *
 * Ask with `limiter.acquire`. With `consume` units are held for `ttl`, or until the decision is refunded.
 * `retryAfterMs` is when enough is free if nobody renews or releases.
 *
 * In Redis a sorted set of holders, about 120 bytes each.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_window` (for `ttl`), `invalid_name`
 */
export function concurrency(options: ConcurrencyOptions): Limit {
  checkDeclaration(options, '{ limit, ttl }', { limit: true, ttl: true, name: true, shadow: true })
  const limit = parseLimit(options.limit, 'the limit', MAX_ENTRIES)
  const windowMs = parseWindow(options.ttl, 'ttl')
  const declared = { kind: concurrencyKind, limit, windowMs, precisionMs: 1 }
  const madeOf = { kind: 'concurrency', limit, ttl: windowMs }
  return declareLimit(declared, concurrency, madeOf, options, nameOf(limit, windowMs))
}

const concurrencyKind = entryWindowKind('k', 'holder')
