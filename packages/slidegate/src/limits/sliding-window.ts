// Sliding windows: their options, and the choice of the kind that stores them.

import { SlidegateError, show } from '../errors.ts'
import { type Duration, parseDuration, parseWindow } from '../runtime/duration.ts'
import {
  checkDeclaration,
  declareLimit,
  finestPrecision,
  type LimitOptions,
  parseLimit,
  wrong,
} from './declare.ts'
import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { Kind, Limit } from './limit.ts'
import { fits, packedWindowKind } from './packed-window.ts'
import { MAX_RECORDS } from './window-log.ts'

export interface SlidingWindowOptions extends LimitOptions {
  /**
   * The step in which the window slides, in whole milliseconds. At most the window.
   *
   * At 1 ms, a charge counts for exactly the window. With a coarser precision it counts up to one grain longer, never shorter.
   * Changing it resets the counts, so set it now if the limit may grow a lot.
   *
   * Default: the finest of 1, 2, 5, 10, 20, 50, ... ms with which a limit sixteen times as large needs at most 65,536 records.
   * That is 1 ms for limits up to 4,096, or windows up to 65 s.
   */
  readonly precision?: Duration
  /**
   * How the log is stored. All are exact. Default: `packed`.
   *
   * - `packed`: 12 bytes per request, any cost, and by far the fastest.
   * - `zset`: in Redis a sorted set of request ids, about 120 bytes per unit, or less for up to 128 units. A request repeated
   *   with its `requestId` within the window is charged once and gets the first answer. `list` returns the admitted requests.
   * - `stream`: in Redis a stream, about 45 bytes per request. Other programs can follow admissions with XREAD: entries
   *   `<ms>-<n>` of `id`, `cost` and `total`, the running total of units. A refunded request vanishes without a message. Once
   *   more entries count than the limit, raised to at least 128 and capped at 1,024, only the newest can be refunded. A refund,
   *   or setting the clock back, replaces the stream: consumer groups are lost, and after a clock change new ids are lower.
   *
   * `zset` and `stream` support limits up to 10,000, at a precision of 1 ms. Each window length has its own log, and refunds
   * return whole requests.
   */
  readonly log?: 'packed' | 'zset' | 'stream'
}

/**
 * Limits the units in any window of this length, wherever it starts.
 *
 * Exact, not estimated: the log keeps stamps and running totals, about 12 bytes per record.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_duration`, `invalid_precision`, `invalid_name`
 */
export function slidingWindow(options: SlidingWindowOptions): Limit {
  const names = { limit: true, window: true, precision: true, log: true } as const
  checkDeclaration(options, '{ limit, window }', names)
  const { precision, log = 'packed' } = options
  const limit = parseLimit(options.limit)
  const windowMs = parseWindow(options.window)
  if (log !== 'packed' && log !== 'zset' && log !== 'stream') {
    throw wrong('the log', log, "'packed', 'zset' or 'stream'")
  }
  if (log !== 'packed') checkEntries(limit, precision, log)
  const precisionMs = log === 'packed' ? precisionOf(precision, limit, windowMs) : 1
  const given = { kind: 'slidingWindow', limit, window: windowMs, log }
  return declareLimit(
    { kind: KINDS[log], limit, windowMs, precisionMs },
    slidingWindow,
    options,
    log === 'packed' ? { ...given, precision: precisionMs } : given,
  )
}

const KINDS: Readonly<Record<NonNullable<SlidingWindowOptions['log']>, Kind>> = {
  packed: packedWindowKind,
  zset: entryWindowKind('z', 'request'),
  stream: entryWindowKind('x', 'record', 'x'),
}

/** Logs that keep entries are small and have the finest precision. */
function checkEntries(limit: number, precision: unknown, log: string): void {
  if (limit > MAX_ENTRIES) {
    throw new SlidegateError(
      'invalid_limit',
      `the limit is ${limit}; with log: '${log}' it must be at most ${MAX_ENTRIES}; use log: 'packed' for more`,
      limit,
    )
  }
  if (precision === undefined || precision === 1 || precision === '1ms') return
  throw new SlidegateError(
    'invalid_precision',
    `the precision is ${show(precision)}; with log: '${log}' it must be 1 ms`,
    precision,
  )
}

/** The default precision fits limits this many times as large, so a limit can grow. */
const ROOM = 16

function precisionOf(precision: unknown, limit: number, windowMs: number): number {
  const finest = (most: number) => finestPrecision((precisionMs) => fits(most, windowMs, precisionMs))
  if (precision === undefined) return finest(ROOM * limit)
  const ms = parseDuration(precision)
  if (ms === undefined || ms < 1 || ms > windowMs) {
    const right = `whole milliseconds from 1 to the window's ${windowMs}`
    throw wrong('the precision', precision, right, 'invalid_precision')
  }
  if (fits(limit, windowMs, ms)) return ms
  throw new SlidegateError(
    'invalid_precision',
    `the precision is ${show(precision)}, which could need more than ${MAX_RECORDS} records; use ${finest(limit)} ms or more`,
    precision,
  )
}
