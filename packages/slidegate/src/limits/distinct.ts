// Limits on distinct values: their options, and the choice of the kind that stores them.

import { parseWindow } from '../runtime/duration.ts'
import { checkDeclaration, declareLimit, type LimitOptions, parseFlag, parseLimit } from './declare.ts'
import { distinctSketchKind, MAX_VALUES, tenthOf } from './distinct-sketch.ts'
import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { Limit } from './limit.ts'

export interface DistinctOptions extends LimitOptions {
  /** Maximum distinct values per window: 1 to 10,000, or to 1,000,000 with `approximate`. */
  readonly limit: number
  /**
   * Estimates the number of values, to use at most 160 kB of Redis per key. For limits from thousands to a million. Default:
   * false.
   *
   * - Redis counts with HyperLogLog. Its standard error is 0.81%, so a key may be allowed about 2% more or fewer values than its
   *   limit. The memory store keeps the values and counts exactly.
   * - When a key reaches its limit, even known values are denied until values leave the window.
   * - A value counts for 1 to 1.1 windows: the window slides in steps of a tenth.
   * - `remaining` is one too low in the decision on a known value. `list` returns no values.
   */
  readonly approximate?: boolean
}

/**
 * Limits the distinct values in any window of this length.
 *
 * For example the accounts that an address logs in to, or the addresses from which an account is used. Exact unless {@link
 * DistinctOptions.approximate}. A value counts if a request with it was admitted within the window. A known value costs nothing,
 * a new one costs one unit.
 *
 * Needs its own limiter, without other limits, dimensions or costs. Each request has a value: `limiter.consume(key, { value
 * })`. A refund doesn't remove the value.
 *
 * Stored in Redis as a sorted set of values, about 120 bytes each, or as sketches. A value longer than 128 bytes, or with
 * unprintable characters, is stored as its SHA-256.
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
