// Limits on distinct values. A log has an entry per value, or sketches that estimate the number of values.
//
// For sketches, time is divided into sub-windows of a tenth of the window. Redis has a HyperLogLog per sub-window, with all values
// added since that sub-window began. The usage is the count of the oldest HyperLogLog whose sub-window still counts. The
// memory store keeps the values, each with the sub-window in which it was last seen. A sketch can't distinguish known
// values from new ones, so a key at its limit denies both.

import { startOf } from '../runtime/duration.ts'
import { mapKey } from '../runtime/hash.ts'
import { declareLimit, type LimitOptions, paramsOf, parseFlag, parseLimitOptions } from './declare.ts'
import { entryWindowKind, MAX_ENTRIES } from './entry-window.ts'
import type { Kind, Limit, LogParams } from './limit.ts'
import { ObjectLogs } from './logs.ts'

export interface DistinctOptions extends LimitOptions {
  /** Maximum distinct values per window: 1 to 10,000, or up to 1,000,000 with `approximate`. */
  readonly limit: number
  /**
   * Estimates the number of values, for limits up to a million. Default: false.
   *
   * Uses at most 160 kB of Redis memory per key. The standard error is 0.81%: about 2% more or fewer values may be allowed. A
   * value counts for 1 to 1.1 windows. A key at its limit is denied even for known values. In the decision on a known value,
   * `remaining` is one too low. `list` returns no values.
   */
  readonly approximate?: boolean
}

/**
 * Limits the distinct values in any window of this length.
 *
 * For example, it can limit how many accounts an address logs in to. The count is exact unless you set
 * {@link DistinctOptions.approximate}. A value counts if a request with it was admitted within the window. A
 * known value costs nothing; a new value costs one unit. A refund doesn't remove the value.
 *
 * Needs its own limiter, without other limits, dimensions or costs. Each request has a value: `limiter.consume(key, { value
 * })`. A value longer than 128 bytes, or with unprintable characters, is stored as its SHA-256.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_duration`, `invalid_name`
 */
export function distinct(options: DistinctOptions): Limit {
  const most = options?.approximate ? MAX_VALUES : MAX_ENTRIES
  const { limit, windowMs } = parseLimitOptions(options, { approximate: true }, most)
  const { approximate = false } = options
  parseFlag(approximate, 'approximate')
  const kind = approximate ? distinctSketchKind : distinctKind
  const made = { kind, limit, windowMs, precisionMs: approximate ? tenthOf(windowMs) : 1 }
  const given = { kind: 'distinct', limit, window: windowMs, ...(approximate && { approximate }) }
  return declareLimit(made, distinct, options, given)
}

const distinctKind = entryWindowKind('d', 'value')

/** Maximum limit, and maximum number of values that the memory store keeps per key. */
export const MAX_VALUES = 1_000_000

/** Sub-windows that count: the current one and the ten before it. */
const SUB_WINDOWS = 11

interface Values {
  /** When the newest sub-window began. */
  stamp: number
  /** The number of the newest sub-window. Setting the clock back doesn't change it. */
  turn: number
  /** The number of the sub-window in which each value was last added, oldest first. Keys are from {@link mapKey}. */
  turns: Map<string, number>
  /** The number of values per sub-window. The index is the sub-window's number modulo {@link SUB_WINDOWS}. */
  counts: number[]
}

/** The estimated memory for a value of typical length. */
const VALUE_BYTES = 160

const distinctSketchKind: Kind<Values> = {
  tag: 'e',
  logName: (limit) => `e${limit.windowMs}`,
  params: (limits) => paramsOf(limits, tenthOf(limits[0]!.windowMs)),
  most: () => MAX_VALUES,
  words: ({ precision, limits }) => [precision, limits[0]!],

  createLogs: () =>
    new ObjectLogs<Values>(
      () => ({ stamp: 0, turn: 0, turns: new Map(), counts: new Array(SUB_WINDOWS).fill(0) }),
      ({ turns }) => 256 + VALUE_BYTES * turns.size,
    ),

  newest: ({ stamp }) => stamp,

  restamp(values, { precision }, nowMs) {
    values.stamp = startOf(nowMs, precision)
  },

  check(values, params, nowMs, used) {
    used[0] = countSince(values, oldestAge(values, params, nowMs))
  },

  commit(values, params, nowMs, { entry }) {
    begin(values, params, nowMs)
    const { turns, counts, turn } = values
    const own = mapKey(entry)
    if (turns.has(own)) forget(values, own)
    else if (turns.size === MAX_VALUES) forget(values, turns.keys().next().value!)
    turns.set(own, turn)
    counts[turn % SUB_WINDOWS]! += 1
  },

  retryAfter(values, params, _i, nowMs, cost) {
    const limit = params.limits[0]!
    if (cost > limit) return Number.POSITIVE_INFINITY
    let age = oldestAge(values, params, nowMs) - 1
    while (age >= 0 && countSince(values, age) + cost > limit) age--
    return values.stamp + (SUB_WINDOWS - 1 - age) * params.precision - nowMs
  },

  resetAfter: ({ stamp, turns }, { precision }, _i, nowMs) =>
    turns.size === 0 ? 0 : Math.max(0, stamp + SUB_WINDOWS * precision - nowMs),

  refund: () => 0,
  expiresAt: ({ stamp }, { precision }) => stamp + SUB_WINDOWS * precision,
  entries: { are: 'value', find: () => undefined, renew: () => false, list: () => [] },
}

function tenthOf(windowMs: number): number {
  return Math.ceil(windowMs / 10)
}

/** The number of sub-windows from the newest stored one to the current one. */
function passed({ stamp }: Values, { precision }: LogParams, nowMs: number): number {
  return (startOf(nowMs, precision) - stamp) / precision
}

/** How many sub-windows before the newest one still count. Negative if even the newest one doesn't. */
function oldestAge(values: Values, params: LogParams, nowMs: number): number {
  return SUB_WINDOWS - 1 - passed(values, params, nowMs)
}

/** Counts the values in the newest sub-window and in the `age` sub-windows before it. */
function countSince({ counts, turn }: Values, age: number): number {
  let count = 0
  for (let back = 0; back <= age; back++) count += counts[(turn + SUB_WINDOWS - back) % SUB_WINDOWS]!
  return count
}

/** Makes the current sub-window the newest one, and drops values that no longer count. */
function begin(values: Values, params: LogParams, nowMs: number): void {
  values.turn += passed(values, params, nowMs)
  values.stamp = startOf(nowMs, params.precision)
  for (const [value, turn] of values.turns) {
    if (values.turn - turn < SUB_WINDOWS) return
    forget(values, value)
  }
}

function forget({ turns, counts }: Values, value: string): void {
  counts[turns.get(value)! % SUB_WINDOWS]! -= 1
  turns.delete(value)
}
