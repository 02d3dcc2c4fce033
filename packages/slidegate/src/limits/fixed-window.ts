// A kind of limit: one count per fixed window.
//
// A log stores the units of one window and the time of the first charge in it. The units count only in that window.

import { startOf } from '../runtime/duration.ts'
import type { Calendar } from './calendar.ts'
import { declareLimit, type LimitOptions, MAX_UNITS, paramsOf, parseLimitOptions, wrong } from './declare.ts'
import type { Kind, Limit, LogParams } from './limit.ts'
import { RowLogs } from './logs.ts'

export interface FixedWindowOptions extends LimitOptions {
  /**
   * When windows start. Default: `epoch`.
   *
   * - `epoch`: at multiples of the window's length since 1970-01-01T00:00Z
   * - `first-hit`: at a key's first charge after its previous window has ended
   */
  readonly align?: 'epoch' | 'first-hit'
}

/**
 * Limits the units in each window, by the store's clock.
 *
 * Stores one number per key. In the worst case, `2 * limit` units are admitted within one window length,
 * around the end of a window. With `first-hit`, the maximum is `2 * limit - 1`. Limits with the same windows
 * share their count. For calendar windows, see `calendarWindow` in `slidegate/calendar`.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_duration`, `invalid_name`
 */
export function fixedWindow(options: FixedWindowOptions): Limit {
  const { limit, windowMs } = parseLimitOptions(options, { align: true })
  const { align = 'epoch' } = options
  if (align !== 'epoch' && align !== 'first-hit') {
    const calendars = 'For hours, days, weeks and months use calendarWindow() in slidegate/calendar'
    throw wrong('align', align, `'epoch' or 'first-hit'. ${calendars}`)
  }
  const made = { kind: fixedWindowKind, limit, windowMs, precisionMs: windowMs, rule: align }
  return declareLimit(made, fixedWindow, options, { kind: 'fixedWindow', limit, window: windowMs, align })
}

export interface Counter {
  /** When the first units of the window were charged. */
  since: number
  units: number
}

export interface FixedWindowParams extends LogParams {
  /** Set for calendar windows. Other windows have the length `precision`. */
  readonly calendar?: Calendar
  readonly fromFirstHit?: boolean
}

export const fixedWindowKind: Kind<Counter, FixedWindowParams> = {
  tag: 'f',
  logName: ({ windowMs, rule }) => (rule === 'first-hit' ? `fhit${windowMs}` : `f${windowMs}`),

  params: (limits) => ({
    ...paramsOf(limits, limits[0]!.windowMs),
    ...(limits[0]!.rule === 'first-hit' && { fromFirstHit: true }),
  }),

  words: ({ precision, fromFirstHit, limits }) => [precision, fromFirstHit ? 1 : 0, ...limits],

  read(next, { fromFirstHit }, nowMs) {
    const units = next()
    return { since: fromFirstHit ? next() : nowMs, units }
  },

  createLogs: () => new RowLogs<Counter>('since', 'units'),
  newest: (counter) => counter.since,

  restamp(counter, _params, nowMs) {
    counter.since = nowMs
  },

  check(counter, params, nowMs, used) {
    const units = isOpen(counter, params, nowMs) ? counter.units : 0
    for (let i = 0; i < params.limits.length; i++) used[i] = units
  },

  commit(counter, params, nowMs, { units }) {
    if (!isOpen(counter, params, nowMs)) {
      counter.since = nowMs
      counter.units = 0
    }
    counter.units = Math.min(counter.units + units, MAX_UNITS)
  },

  retryAfter: (counter, params, i, nowMs, cost) =>
    cost > params.limits[i]! ? Number.POSITIVE_INFINITY : endOf(params, counter.since) - nowMs,

  resetAfter: (counter, params, _i, nowMs) =>
    isOpen(counter, params, nowMs) ? endOf(params, counter.since) - nowMs : 0,

  refund(counter, params, nowMs, atMs, units) {
    const { since } = counter
    if (!isOpen(counter, params, nowMs) || atMs < since || atMs >= endOf(params, since)) return 0
    const returned = Math.min(units, counter.units)
    counter.units -= returned
    if (counter.units === 0) counter.since = 0
    return returned
  },

  expiresAt: (counter, params) => endOf(params, counter.since),
}

function isOpen(counter: Counter, params: FixedWindowParams, nowMs: number): boolean {
  return counter.units > 0 && counter.since >= earliestStart(params, nowMs)
}

/** When the current window began. With `first-hit`, the earliest time at which it could have begun. */
function earliestStart({ calendar, fromFirstHit, precision }: FixedWindowParams, nowMs: number): number {
  if (calendar !== undefined) return calendar.startOf(nowMs)
  return fromFirstHit ? nowMs - precision + 1 : startOf(nowMs, precision)
}

/** The end of the window whose first charge was at `since`. */
function endOf({ calendar, fromFirstHit, precision }: FixedWindowParams, since: number): number {
  if (calendar !== undefined) return calendar.endOf(since)
  return (fromFirstHit ? since : startOf(since, precision)) + precision
}
