import { parseWindow } from '../duration.ts'
import { checkDeclaration, declareLimit, type LimitOptions, nameOf, parseLimit } from './declare.ts'
import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { Limit } from './limit.ts'

export interface DistinctOptions extends LimitOptions {
  /** Different values per window: an integer from 1 to 10,000. */
  readonly limit: number
}

/**
 * At most `limit` different values in any window of this length: accounts that an address logs in to, addresses from
 * which an account is used. Exact, not estimated. A value counts for as long as it was brought by an admitted request
 * within the window: a known one takes no more room, a new one takes one unit.
 *
 * It needs a limiter of its own: no other limit, no dimensions, no cost. Each request says which value:
 * `limiter.consume(key, { value })`. A refund takes no value back: it was seen.
 *
 * In Redis a sorted set of values, about 120 bytes each. A value longer than 128 bytes, or with others than printable
 * characters, is stored as its SHA-256.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_window`, `invalid_name`
 */
export function distinct(options: DistinctOptions): Limit {
  checkDeclaration(options, '{ limit, window }', { limit: true, window: true, name: true, shadow: true })
  const limit = parseLimit(options.limit, 'the limit', MAX_ENTRIES)
  const windowMs = parseWindow(options.window)
  const declared = { kind: distinctKind, limit, windowMs, precisionMs: 1 }
  const madeOf = { kind: 'distinct', limit, window: windowMs }
  return declareLimit(declared, madeOf, options, nameOf(limit, windowMs))
}

const distinctKind = entryWindowKind('d', 'value')
