// Sliding windows: their options, and which kind keeps their log.

import { SlidegateError, show } from '../errors.ts'
import { type Duration, parseDuration, parseWindow } from '../runtime/duration.ts'
import {
  checkDeclaration,
  declareLimit,
  finestPrecision,
  type LimitOptions,
  nameOf,
  parseLimit,
} from './declare.ts'
import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { Kind, Limit } from './limit.ts'
import { fits, packedWindowKind } from './packed-window.ts'
import { MAX_RECORDS } from './window-log.ts'

export interface SlidingWindowOptions extends LimitOptions {
  /**
   * The step in which the window slides: whole milliseconds, at most the window. Default: the finest of 1,
   * 2, 5, 10, 20, 50, ... ms with which the log of a limit sixteen times as large stays within 65,536 records: 1 ms for
   * limits up to 4,096, or windows up to 65 s. At the grain of 1 ms a charge counts for exactly the window. At a coarser
   * one it counts until its whole grain has left the window: for less than a grain longer, never shorter. A limit whose
   * precision changes begins with an empty log; declare it where the numbers of a limit may change from small to large.
   */
  readonly precision?: Duration
  /**
   * How the log is kept. All are exact, and mean the same:
   * - `packed`, the default: 12 bytes per request, any cost, by far the fastest.
   * - `zset`: in Redis a sorted set of request ids, about 120 bytes per unit, fewer up to 128 of them. A request that
   *   comes again with its `requestId` within the window is answered as the first time and charged once, and `list`
   *   shows who has used the limit.
   * - `stream`: in Redis a stream, about 45 bytes per request, so that other programs can follow admissions with
   *   XREAD: entries `<ms>-<n>` of `id`, `cost` and `total`, the running total of units. A request that is returned
   *   vanishes without a message. If more entries count than the limit, 128 to 1,024, only the newest can be
   *   returned. After the clock was set back the stream begins anew, with lower ids. Consumer groups do not outlive that, nor a refund.
   *
   * The latter two are for limits up to 10,000, at the precision of 1 ms. Each of their windows has a log of its own,
   * and they take back only whole requests.
   */
  readonly log?: 'packed' | 'zset' | 'stream'
}

/**
 * At most `limit` units in any window of this length, wherever it begins: exact, not estimated. A log of
 * stamps and running totals: 12 bytes a record, and some slack.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_window`, `invalid_precision`, `invalid_name`
 */
export function slidingWindow(options: SlidingWindowOptions): Limit {
  checkDeclaration(options, '{ limit, window }', {
    limit: true,
    window: true,
    name: true,
    shadow: true,
    precision: true,
    log: true,
  })
  const { precision, log = 'packed' } = options
  const limit = parseLimit(options.limit)
  const windowMs = parseWindow(options.window)
  if (log !== 'packed' && log !== 'zset' && log !== 'stream') {
    throw new SlidegateError(
      'invalid_limit',
      `the log is ${show(log)}; it must be 'packed', 'zset' or 'stream'`,
      log,
    )
  }
  const kind = KINDS[log]
  if (log !== 'packed') checkEntries(limit, precision, log)
  const precisionMs = log === 'packed' ? precisionOf(precision, limit, windowMs) : 1
  return declareLimit(
    { kind, limit, windowMs, precisionMs },
    slidingWindow,
    {
      kind: 'slidingWindow',
      limit,
      window: windowMs,
      log,
      ...(log === 'packed' && { precision: precisionMs }),
    },
    options,
    nameOf(limit, windowMs),
  )
}

const KINDS: Readonly<Record<NonNullable<SlidingWindowOptions['log']>, Kind>> = {
  packed: packedWindowKind,
  zset: entryWindowKind('z', 'request'),
  stream: entryWindowKind('x', 'record', 'x'),
}

/** What is kept one by one is kept as it was, and not too much of it. */
function checkEntries(limit: number, precision: unknown, log: string): void {
  if (limit > MAX_ENTRIES) {
    throw new SlidegateError(
      'invalid_limit',
      `the limit is ${limit}; with the log '${log}' it must be at most ${MAX_ENTRIES}, with 'packed' it may be larger`,
      limit,
    )
  }
  if (precision !== undefined && precision !== 1 && precision !== '1ms') {
    throw new SlidegateError(
      'invalid_precision',
      `the precision is ${show(precision)}; with the log '${log}' it is 1 ms`,
      precision,
    )
  }
}

/** The default precision suits limits so many times as large: a limit can grow and keep its log. */
const ROOM = 16

function precisionOf(precision: unknown, limit: number, windowMs: number): number {
  if (precision === undefined)
    return finestPrecision((precisionMs) => fits(ROOM * limit, windowMs, precisionMs))
  const asked = parsePrecision(precision, windowMs)
  if (!fits(limit, windowMs, asked)) {
    const finest = finestPrecision((precisionMs) => fits(limit, windowMs, precisionMs))
    throw new SlidegateError(
      'invalid_precision',
      `the precision is ${show(precision)}, for which the log could need more than ${MAX_RECORDS} records; ${finest} ms fits`,
      precision,
    )
  }
  return asked
}

function parsePrecision(precision: unknown, windowMs: number): number {
  const ms = parseDuration(precision)
  if (ms === undefined || ms < 1 || ms > windowMs) {
    throw new SlidegateError(
      'invalid_precision',
      `the precision is ${show(precision)}; it must be whole milliseconds from 1 to the window's ${windowMs}`,
      precision,
    )
  }
  return ms
}
