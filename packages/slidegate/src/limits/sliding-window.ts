// Sliding windows: their options, and which kind keeps their log.

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
   * The step in which the window slides: whole milliseconds, at most the window.
   *
   * At 1 ms a charge counts for exactly the window. At a coarser precision it counts for less than a grain longer, never
   * shorter. A limit whose precision changes begins with an empty log: set it if a small limit may become large.
   *
   * Default: the finest of 1, 2, 5, 10, 20, 50, ... ms with which the log of a limit sixteen times as large stays within
   * 65,536 records. That is 1 ms for limits up to 4,096, or windows up to 65 s.
   */
  readonly precision?: Duration
  /**
   * How the log is stored. All are exact. Default: `packed`.
   *
   * - `packed`: 12 bytes per request, any cost, by far the fastest.
   * - `zset`: in Redis a sorted set of request ids, about 120 bytes per unit, fewer up to 128 of them. A request that is repeated
   *   with its `requestId` within the window gets the first answer and is charged once. `list` returns who used the limit.
   * - `stream`: in Redis a stream, about 45 bytes per request. Other programs can follow admissions with
   *   XREAD: entries `<ms>-<n>` of `id`, `cost` and `total`, the running total of units. A refunded request
   *   vanishes without a message. If more entries count than the limit, 128 to 1,024, only the newest can be
   *   refunded. A refund, or a clock that was set back, replaces the stream: consumer groups are lost, and the clock also
   *   lowers ids.
   *
   * `zset` and `stream` are for limits up to 10,000, at a precision of 1 ms. Each window has a log of its own,
   * and refunds return whole requests.
   */
  readonly log?: 'packed' | 'zset' | 'stream'
}

/**
 * At most `limit` units in any window of this length, wherever it begins.
 *
 * Exact, not estimated. A log of stamps and running totals: 12 bytes a record, and some slack.
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

/** Logs of entries are small, and of the finest precision. */
function checkEntries(limit: number, precision: unknown, log: string): void {
  if (limit > MAX_ENTRIES) {
    throw new SlidegateError(
      'invalid_limit',
      `the limit is ${limit}; with the log '${log}' it must be at most ${MAX_ENTRIES}, with 'packed' it may be larger`,
      limit,
    )
  }
  if (precision === undefined || precision === 1 || precision === '1ms') return
  throw new SlidegateError(
    'invalid_precision',
    `the precision is ${show(precision)}; with the log '${log}' it is 1 ms`,
    precision,
  )
}

/** The default precision suits limits this many times as large: a limit can grow and keep its log. */
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
    `the precision is ${show(precision)}, for which the log could need more than ${MAX_RECORDS} records; ${finest(limit)} ms fits`,
    precision,
  )
}
