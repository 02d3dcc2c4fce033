// Declares sliding windows, and selects the kind of log that stores them.

import { SlidegateError, show } from '../errors.ts'
import { type Duration, parseDuration } from '../runtime/duration.ts'
import { declareLimit, finestPrecision, type LimitOptions, parseLimitOptions, wrong } from './declare.ts'
import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { Kind, Limit } from './limit.ts'
import { fits, packedWindowKind } from './packed-window.ts'
import { MAX_RECORDS } from './window-log.ts'

export interface SlidingWindowOptions extends LimitOptions {
  /**
   * The step by which the window slides, in whole milliseconds. At most the window's length.
   *
   * With a precision above 1 ms, a charge may count for up to one step longer than the window, but never for less.
   * Changing the precision resets the counts, so set it now if the limit may grow a lot.
   *
   * Default: the finest of 1, 2, 5, 10, 20, 50, ... ms at which a limit sixteen times as large needs at most
   * 65,536 records. That is 1 ms for limits up to 4,096, or windows up to 65 s.
   */
  readonly precision?: Duration
  /**
   * How the log is stored. All logs are exact. Default: `packed`.
   *
   * - `packed`: 12 bytes per request of any cost, and by far the fastest.
   * - `zset`: in Redis, a sorted set of request ids. A request repeated with its `requestId` within the
   *   window is charged once and gets the first answer. `list` returns the admitted requests.
   * - `stream`: in Redis, a stream, which other programs can follow with XREAD. Entries `<ms>-<n>` have the
   *   fields `id`, `cost` and `total` (the running total of units). The stream is replaced after a
   *   refund, or if the clock was set back. Consumer groups are then lost, and after a clock change, new ids are
   *   lower. If a stream has more entries than the limit (clamped to between 128 and 1,024), only its newest entry
   *   can be refunded.
   *
   * `zset` and `stream` support limits up to 10,000, at a precision of 1 ms. Refunds return whole requests.
   */
  readonly log?: 'packed' | 'zset' | 'stream'
}

/**
 * Limits the units in any window of this length, wherever it starts. Exact, not estimated.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_duration`, `invalid_precision`, `invalid_name`
 */
export function slidingWindow(options: SlidingWindowOptions): Limit {
  const { limit, windowMs } = parseLimitOptions(options, { precision: true, log: true })
  const { precision, log = 'packed' } = options
  if (log !== 'packed' && log !== 'zset' && log !== 'stream') {
    throw wrong('the log', log, "'packed', 'zset' or 'stream'")
  }
  if (log !== 'packed') checkEntries(limit, precision, log)
  const precisionMs = log === 'packed' ? precisionOf(precision, limit, windowMs) : 1
  const made = { kind: KINDS[log], limit, windowMs, precisionMs }
  return declareLimit(made, slidingWindow, options, {
    ...{ kind: 'slidingWindow', limit, window: windowMs, log },
    ...(log === 'packed' && { precision: precisionMs }),
  })
}

const KINDS: Readonly<Record<NonNullable<SlidingWindowOptions['log']>, Kind>> = {
  packed: packedWindowKind,
  zset: entryWindowKind('z', 'request'),
  stream: entryWindowKind('x', 'record', 'x'),
}

function checkEntries(limit: number, precision: unknown, log: string): void {
  if (limit > MAX_ENTRIES) {
    const right = `with log: '${log}' it must be at most ${MAX_ENTRIES}; use log: 'packed' for more`
    throw new SlidegateError('invalid_limit', `the limit is ${limit}; ${right}`, limit)
  }
  if (precision === undefined || precision === 1 || precision === '1ms') return
  const right = `with log: '${log}' it must be 1 ms`
  throw new SlidegateError('invalid_precision', `the precision is ${show(precision)}; ${right}`, precision)
}

/** With the default precision, a limit can later be raised by this factor. */
const ROOM = 16

function precisionOf(precision: unknown, limit: number, windowMs: number): number {
  const finest = (most: number) => finestPrecision((precisionMs) => fits(most, windowMs, precisionMs))
  if (precision === undefined) return finest(ROOM * limit)
  const ms = parseDuration(precision)
  if (ms === undefined || ms < 1 || ms > windowMs) {
    const right = `whole milliseconds from 1 to ${windowMs} (the window)`
    throw wrong('the precision', precision, right, 'invalid_precision')
  }
  if (fits(limit, windowMs, ms)) return ms
  const reason = `which could need more than ${MAX_RECORDS} records; use ${finest(limit)} ms or more`
  throw new SlidegateError('invalid_precision', `the precision is ${show(precision)}, ${reason}`, precision)
}
