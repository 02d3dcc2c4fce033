import { type Duration, parseDuration } from '../duration.ts'
import { SlidegateError, show } from '../errors.ts'
import { declareLimit, type LimitOptions, MAX_UNITS } from './declare.ts'
import type { Kind, Limit, LogParams } from './limit.ts'
import {
  append,
  at,
  emptyLog,
  firstAbove,
  MAX_RECORDS,
  merge,
  STAMP,
  subtract,
  TOTAL,
  totalUpTo,
  trim,
  type WindowLog,
} from './window-log.ts'

export interface SlidingWindowOptions extends LimitOptions {
  /**
   * The step in which the window slides: whole milliseconds, at most the window. Default: the finest of 1,
   * 2, 5, 10, 20, 50, ... ms with which the log stays within 65,536 records. At the grain of 1 ms a charge
   * counts for exactly the window; at a coarser one until its whole grain has left the window, so for less
   * than a grain longer, never shorter. Limits whose precision changes, by this option or by their numbers,
   * begin with an empty log.
   */
  readonly precision?: Duration
}

/**
 * At most `limit` units in any window of this length, wherever it begins: exact, not estimated. A log of
 * stamps and running totals: 12 bytes a record, and some slack.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_window`, `invalid_precision`, `invalid_name`
 */
export function slidingWindow(options: SlidingWindowOptions): Limit {
  return declareLimit(slidingWindowKind, options, (limit, windowMs) => {
    const finest = finestPrecision(limit, windowMs)
    const { precision } = options
    if (precision === undefined) return finest
    const asked = parsePrecision(precision, windowMs)
    if (recordsOf(limit, windowMs, asked) > MAX_RECORDS) {
      throw new SlidegateError(
        'invalid_precision',
        `the precision is ${show(precision)}, for which the log could need more than ${MAX_RECORDS} records; ${finest} ms fits`,
        precision,
      )
    }
    return asked
  })
}

function parsePrecision(precision: unknown, windowMs: number): number {
  const ms = typeof precision === 'string' ? parseDuration(precision) : precision
  if (typeof ms !== 'number' || !Number.isInteger(ms) || ms < 1 || ms > windowMs) {
    throw new SlidegateError(
      'invalid_precision',
      `the precision is ${show(precision)}; it must be whole milliseconds from 1 to the window's ${windowMs}`,
      precision,
    )
  }
  return ms
}

function recordsOf(limit: number, windowMs: number, precisionMs: number): number {
  return Math.min(limit, Math.ceil(windowMs / precisionMs) + 1)
}

function finestPrecision(limit: number, windowMs: number): number {
  for (let decade = 1; ; decade *= 10) {
    for (const step of [1, 2, 5]) {
      if (recordsOf(limit, windowMs, decade * step) <= MAX_RECORDS) return decade * step
    }
  }
}

export const slidingWindowKind: Kind<WindowLog> = {
  tag: 'w',

  logName: (limit) => `w${limit.precisionMs}`,

  params(limits: readonly Limit[]): LogParams {
    const precision = limits[0]!.precisionMs
    const longest = limits.reduce((a, b) => (b.windowMs > a.windowMs ? b : a))
    return {
      precision,
      records: recordsOf(longest.limit, longest.windowMs, precision),
      // A stamp is the start of its grain, so the last charge of a grain may be made up to precision - 1 later.
      windows: limits.map((limit) => limit.windowMs + precision - 1),
      limits: limits.map((limit) => limit.limit),
    }
  },

  create: emptyLog,

  newest: (log) => log.stamp,

  restamp(log, params, nowMs) {
    merge(log, grainOf(nowMs, params.precision))
    log.leasedUntil = Math.min(log.leasedUntil, nowMs + log.leaseMs)
  },

  check(log, params, nowMs, used) {
    for (let i = 0; i < params.windows.length; i++) {
      used[i] = log.total - totalUpTo(log, nowMs - spanOf(log, params.windows[i]!, nowMs))
    }
  },

  commit(log, params, nowMs, units, leaseMs) {
    trim(log, nowMs)
    if (leaseMs > 0) {
      const inForce = nowMs < log.leasedUntil + log.keepMs
      log.leaseMs = inForce ? Math.max(log.leaseMs, leaseMs) : leaseMs
      log.leasedUntil = Math.max(log.leasedUntil, nowMs + leaseMs)
    }
    for (let i = 0; i < params.windows.length; i++) {
      log.keepMs = Math.max(log.keepMs, params.windows[i]! + log.leaseMs)
    }
    append(log, grainOf(nowMs, params.precision), Math.min(units, MAX_UNITS), params.records)
  },

  retryAfter(log, params, i, nowMs, cost) {
    const limit = params.limits[i]!
    if (cost > limit) return Number.POSITIVE_INFINITY
    // Enough has left the window when the record that holds this unit has.
    const index = firstAbove(log, TOTAL, log.total + cost - limit - 1)
    return expiryOf(log, params.windows[i]!, at(log, index, STAMP)) - nowMs
  },

  resetAfter: (log, params, i, nowMs) => Math.max(0, expiryOf(log, params.windows[i]!, log.stamp) - nowMs),

  refund(log, params, nowMs, atMs, units) {
    const stamp = grainOf(atMs, params.precision)
    return stamp <= nowMs - log.keepMs ? 0 : subtract(log, stamp, units)
  },

  expiresAt: (log) => log.stamp + log.keepMs,
}

/** For how long a charge counts in this window, as seen from now. */
function spanOf(log: WindowLog, windowMs: number, nowMs: number): number {
  const leased = nowMs < log.leasedUntil + windowMs
  return Math.min(log.keepMs, leased ? windowMs + log.leaseMs : windowMs)
}

/** When a charge made at `stamp` stops counting in this window. */
function expiryOf(log: WindowLog, windowMs: number, stamp: number): number {
  const lease = Math.min(log.leaseMs, Math.max(0, log.leasedUntil - stamp))
  return stamp + Math.min(log.keepMs, windowMs + lease)
}

/** The start of the grain that a time is in. Exact for times, which stay below 2^48; a remainder takes longer. */
function grainOf(ms: number, precision: number): number {
  return Math.floor(ms / precision) * precision
}
