// A kind of limit: one count per fixed window.

import { SlidegateError, show } from '../errors.ts'
import { parseWindow, startOf } from '../runtime/duration.ts'
import type { Calendar } from './calendar.ts'
import {
  checkDeclaration,
  declareLimit,
  type LimitOptions,
  MAX_UNITS,
  nameOf,
  parseLimit,
} from './declare.ts'
import type { Kind, Limit, LogParams } from './limit.ts'
import { Row, RowLogs, rowOf } from './logs.ts'

/** The options of {@link fixedWindow}. */
export interface FixedWindowOptions extends LimitOptions {
  /**
   * When windows begin: `epoch`, the default, at whole multiples of their length since 1970-01-01T00:00Z; `first-hit`
   * with the first charge after the one before has ended, for each key on its own.
   */
  readonly align?: 'epoch' | 'first-hit'
}

/**
 * At most `limit` units in each window, by the store's clock: one number per key. The windows are of one length, aligned
 * to the epoch or to the first hit. For windows of a calendar, see `calendarWindow` of `slidegate/calendar`.
 *
 * ```ts
 * fixedWindow({ limit: 100, window: '1m' })
 * fixedWindow({ limit: 100, window: '1m', align: 'first-hit' })
 * ```
 *
 * At worst `2 * limit` pass within the length of one window, around the edge between two: with 100 a minute, 100 at
 * 0:59.9 and 100 more at 1:00.0. From the first hit on it is `2 * limit - 1`, since that hit comes a whole window before
 * the edge.
 *
 * Limits of the same windows share their count; those of another length or alignment begin with an empty one.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_window`, `invalid_name`
 */
export function fixedWindow(options: FixedWindowOptions): Limit {
  checkDeclaration(options, '{ limit, window }', {
    limit: true,
    window: true,
    name: true,
    shadow: true,
    align: true,
  })
  const { align = 'epoch' } = options
  const limit = parseLimit(options.limit)
  if (align !== 'epoch' && align !== 'first-hit') {
    throw new SlidegateError(
      'invalid_limit',
      `align is ${show(align)}; it must be 'epoch' or 'first-hit'. For hours, days, weeks and months use calendarWindow() of slidegate/calendar`,
      align,
    )
  }
  const windowMs = parseWindow(options.window)
  return declareLimit(
    { kind: fixedWindowKind, limit, windowMs, precisionMs: windowMs, rule: align },
    fixedWindow,
    { kind: 'fixedWindow', limit, window: windowMs, align },
    options,
    nameOf(limit, windowMs),
  )
}

/** The units charged in one window, and when the first of them were. */
export class Counter extends Row {
  get since(): number {
    return this.numbers[this.at]!
  }
  set since(since: number) {
    this.numbers[this.at] = since
  }

  get units(): number {
    return this.numbers[this.at + 1]!
  }
  set units(units: number) {
    this.numbers[this.at + 1] = units
  }
}

export interface FixedWindowParams extends LogParams {
  /** Where the windows are those of a calendar. Else they are of the length `precision`, */
  readonly calendar?: Calendar
  /** and begin with the first charge, where this is true. */
  readonly fromFirstHit?: boolean
}

export const fixedWindowKind: Kind<Counter, FixedWindowParams> = {
  tag: 'f',

  logName: ({ windowMs, rule }) => (rule === 'first-hit' ? `fhit${windowMs}` : `f${windowMs}`),

  params: (limits) => ({
    ...commonParams(limits),
    ...(limits[0]!.rule === 'first-hit' && { fromFirstHit: true }),
  }),

  words: ({ precision, fromFirstHit, limits }) => [precision, fromFirstHit ? 1 : 0, ...limits],

  read(next, { fromFirstHit }, nowMs) {
    const units = next()
    return rowOf(new Counter(), [fromFirstHit ? next() : nowMs, units])
  },

  createLogs: () => new RowLogs(2, new Counter()),

  newest: (counter) => counter.since,

  restamp(counter, _params, nowMs) {
    counter.since = nowMs
  },

  check(counter, params, nowMs, used) {
    const units = isOpen(counter, params, nowMs) ? counter.units : 0
    for (let i = 0; i < params.limits.length; i++) used[i] = units
  },

  commit(counter, params, nowMs, { units }) {
    charge(counter, params, nowMs, units)
  },

  retryAfter(counter, params, i, nowMs, cost) {
    return cost > params.limits[i]! ? Number.POSITIVE_INFINITY : endOf(params, counter.since) - nowMs
  },

  resetAfter(counter, params, _i, nowMs) {
    return isOpen(counter, params, nowMs) ? endOf(params, counter.since) - nowMs : 0
  },

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

export function commonParams(limits: readonly Limit[]): LogParams {
  return {
    precision: limits[0]!.windowMs,
    records: 1,
    windows: limits.map((limit) => limit.windowMs),
    limits: limits.map((limit) => limit.limit),
  }
}

/** Whether what it holds is of the window of now. */
function isOpen(counter: Counter, params: FixedWindowParams, nowMs: number): boolean {
  return counter.units > 0 && counter.since >= earliestStart(params, nowMs)
}

function charge(counter: Counter, params: FixedWindowParams, nowMs: number, units: number): void {
  if (!isOpen(counter, params, nowMs)) {
    counter.since = nowMs
    counter.units = 0
  }
  counter.units = Math.min(counter.units + units, MAX_UNITS)
}

/** When the window of now began; from the first hit on, the earliest that it may have. */
function earliestStart({ calendar, fromFirstHit, precision }: FixedWindowParams, nowMs: number): number {
  if (calendar !== undefined) return calendar.startOf(nowMs)
  return fromFirstHit ? nowMs - precision + 1 : startOf(nowMs, precision)
}

/** When the window that was first charged at `since` ends. */
function endOf({ calendar, fromFirstHit, precision }: FixedWindowParams, since: number): number {
  if (calendar !== undefined) return calendar.endOf(since)
  return (fromFirstHit ? since : startOf(since, precision)) + precision
}
