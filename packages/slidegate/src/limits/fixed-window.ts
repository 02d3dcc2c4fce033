import { declareLimit, type LimitOptions, MAX_UNITS } from './declare.ts'
import type { Kind, Limit } from './limit.ts'

export type FixedWindowOptions = LimitOptions

/**
 * At most `limit` units in each window of this length, the windows aligned to the epoch by the store's
 * clock: one number per key. At worst `2 * limit` pass within the length of one window, around the edge
 * between two: with 100 a minute, 100 at 0:59.9 and 100 more at 1:00.0.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_window`, `invalid_name`
 */
export function fixedWindow(options: FixedWindowOptions): Limit {
  return declareLimit(fixedWindowKind, options, (_limit, windowMs) => windowMs)
}

/** The units charged in the window that began at `start`. */
interface FixedCounter {
  start: number
  units: number
}

const fixedWindowKind: Kind<FixedCounter> = {
  tag: 'f',

  logName: (limit) => `f${limit.windowMs}`,

  params: (limits) => ({
    precision: limits[0]!.windowMs,
    records: 1,
    windows: limits.map((limit) => limit.windowMs),
    limits: limits.map((limit) => limit.limit),
  }),

  create: () => ({ start: 0, units: 0 }),

  newest: (counter) => counter.start,

  restamp(counter, params, nowMs) {
    counter.start = startOf(nowMs, params.precision)
  },

  check(counter, params, nowMs, used) {
    const units = counter.start === startOf(nowMs, params.precision) ? counter.units : 0
    for (let i = 0; i < params.limits.length; i++) used[i] = units
  },

  commit(counter, params, nowMs, units) {
    const start = startOf(nowMs, params.precision)
    if (counter.start !== start) {
      counter.start = start
      counter.units = 0
    }
    counter.units = Math.min(counter.units + units, MAX_UNITS)
  },

  retryAfter(_counter, params, i, nowMs, cost) {
    return cost > params.limits[i]! ? Number.POSITIVE_INFINITY : params.precision - (nowMs % params.precision)
  },

  resetAfter(counter, params, _i, nowMs) {
    const start = startOf(nowMs, params.precision)
    return counter.units > 0 && counter.start === start ? start + params.precision - nowMs : 0
  },

  refund(counter, params, nowMs, atMs, units) {
    const isGone = nowMs >= counter.start + params.precision
    if (isGone || startOf(atMs, params.precision) !== counter.start) return 0
    const returned = Math.min(units, counter.units)
    counter.units -= returned
    if (counter.units === 0) counter.start = 0
    return returned
  },

  expiresAt: (counter, params) => counter.start + params.precision,
}

function startOf(nowMs: number, windowMs: number): number {
  return nowMs - (nowMs % windowMs)
}
