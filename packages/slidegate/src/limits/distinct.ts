// Limits on distinct values: their options, and which kind keeps their log.

import { parseWindow } from '../runtime/duration.ts'
import { checkDeclaration, declareLimit, type LimitOptions, parseFlag, parseLimit } from './declare.ts'
import { distinctSketchKind, MAX_VALUES, tenthOf } from './distinct-sketch.ts'
import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { Limit } from './limit.ts'

export interface DistinctOptions extends LimitOptions {
  /** Different values per window: an integer from 1 to 10,000; to 1,000,000 with `approximate`. */
  readonly limit: number
  /**
   * Estimates the number of values in at most 160 kB of Redis per key. For limits of thousands to a million. Default: false.
   *
   * - Redis counts by HyperLogLog. Its standard error is 0.81%, so a key may be allowed about 2% more values than its limit,
   *   or fewer. The memory store keeps the values and counts them exactly.
   * - A key at its limit is denied altogether, known values included, until values leave the window.
   * - A value counts for 1 to 1.1 windows: the window slides in steps of a tenth.
   * - `remaining` is one too low in the decision on a known value. `list` returns no values.
   */
  readonly approximate?: boolean
}

/**
 * At most `limit` different values in any window of this length.
 *
 * For example accounts that an address logs in to, or addresses from which an account is used. Exact unless
 * {@link DistinctOptions.approximate}. A value counts while an admitted request had it within the window: a known value takes no
 * more room, a new one takes one unit.
 *
 * It needs a limiter of its own: no other limit, no dimensions, no cost. Each request has a value:
 * `limiter.consume(key, { value })`. A refund takes no value back: it was seen.
 *
 * In Redis a sorted set of values, about 120 bytes each, or sketches. A value longer than 128 bytes, or with others than printable
 * characters, is stored as its SHA-256.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_duration`, `invalid_name`
 */
export function distinct(options: DistinctOptions): Limit {
  checkDeclaration(options, '{ limit, window }', { limit: true, window: true, approximate: true })
  const { approximate = false } = options
  parseFlag(approximate, 'approximate')
  const limit = parseLimit(options.limit, 'the limit', approximate ? MAX_VALUES : MAX_ENTRIES)
  const windowMs = parseWindow(options.window)
  const kind = approximate ? distinctSketchKind : distinctKind
  const made = { kind, limit, windowMs, precisionMs: approximate ? tenthOf(windowMs) : 1 }
  const given = { kind: 'distinct', limit, window: windowMs, ...(approximate && { approximate }) }
  return declareLimit(made, distinct, options, given)
}

const distinctKind = entryWindowKind('d', 'value')
