import { parseWindow, startOf } from '../duration.ts'
import { SlidegateError, show } from '../errors.ts'
import { Calendar, type CalendarUnit } from './calendar.ts'
import {
  checkDeclaration,
  declareLimit,
  type LimitOptions,
  MAX_UNITS,
  type NameOptions,
  nameOf,
  parseLimit,
} from './declare.ts'
import type { Kind, Limit, LogParams } from './limit.ts'
import { Row, RowLogs } from './row-logs.ts'

/** Windows of equal length. */
export interface EqualWindowOptions extends LimitOptions {
  /**
   * When windows begin: `epoch`, the default, at whole multiples of their length since 1970-01-01T00:00Z; `first-hit`
   * with the first charge after the one before has ended, for each key on its own.
   */
  readonly align?: 'epoch' | 'first-hit'
  readonly timeZone?: never
}

/** Windows of a calendar. */
export interface CalendarWindowOptions extends NameOptions {
  /** Units admitted per window: an integer from 1 to 2^40. */
  readonly limit: number
  /**
   * The windows are local hours, days, ISO weeks (which begin on Mondays) or months. Where the local clock is set, an hour
   * ends and a day is shorter or longer than others; `windowMs` is nominal: 24 hours to a day, 31 days to a month. Default
   * name: like `10000-per-month`.
   */
  readonly align: CalendarUnit
  /**
   * An IANA name such as `Europe/Berlin`; its rules are those that this process knows. With Redis the time is that of
   * Redis: where it is more than two windows from that of this process, requests fail as if the store were unavailable, of
   * reason `state`. Default: `UTC`.
   */
  readonly timeZone?: string
  readonly window?: never
}

/** Windows of one length, or those of a calendar. */
export type FixedWindowOptions = EqualWindowOptions | CalendarWindowOptions

/**
 * At most `limit` units in each window, by the store's clock: one number per key. The windows are of one length, aligned
 * to the epoch or to the first hit, or those of a calendar:
 *
 * ```ts
 * fixedWindow({ limit: 100, window: '1m' })
 * fixedWindow({ limit: 100, window: '1m', align: 'first-hit' })
 * fixedWindow({ limit: 10_000, align: 'month', timeZone: 'Europe/Berlin' })
 * ```
 *
 * At worst `2 * limit` pass within the length of one window, around the edge between two: with 100 a minute, 100 at
 * 0:59.9 and 100 more at 1:00.0. Of a calendar's windows that is the length of the shortest. From the first hit on it is
 * `2 * limit - 1`, since that hit comes a whole window before the edge.
 *
 * Limits of the same windows share their count; those of another length, alignment or time zone begin with an empty one.
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
    timeZone: true,
  })
  const { align = 'epoch' } = options
  const limit = parseLimit(options.limit)
  if (isUnit(align)) return calendarWindow(options, align, limit)
  if (align !== 'epoch' && align !== 'first-hit') {
    throw new SlidegateError(
      'invalid_limit',
      `align is ${show(align)}; it must be 'epoch', 'first-hit', 'hour', 'day', 'week' or 'month'`,
      align,
    )
  }
  if (options.timeZone !== undefined) {
    throw new SlidegateError(
      'invalid_window',
      `the time zone is ${show(options.timeZone)}; it must be left out, unless align is 'hour', 'day', 'week' or 'month'`,
      options.timeZone,
    )
  }
  const windowMs = parseWindow(options.window)
  return declareLimit(
    { kind: fixedWindowKind, limit, windowMs, precisionMs: windowMs, rule: align },
    { kind: 'fixedWindow', limit, window: windowMs, align },
    options,
    nameOf(limit, windowMs),
  )
}

function calendarWindow(
  { window, timeZone = 'UTC', ...options }: FixedWindowOptions,
  unit: CalendarUnit,
  limit: number,
): Limit {
  if (window !== undefined) {
    throw new SlidegateError(
      'invalid_window',
      `the window is ${show(window)}; it must be left out where align is ${show(unit)}`,
      window,
    )
  }
  const rule = new Calendar(unit, timeZone)
  const { nominalMs } = rule
  return declareLimit(
    { kind: calendarWindowKind, limit, windowMs: nominalMs, precisionMs: nominalMs, rule },
    { kind: 'fixedWindow', limit, align: unit, timeZone: rule.timeZone },
    options,
    `${limit}-per-${unit}`,
  )
}

/** The units charged in one window, and when the first of them were. */
class Counter extends Row {
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

interface FixedWindowParams extends LogParams {
  /** Where the windows are those of a calendar. Else they are of the length `precision`, */
  readonly calendar?: Calendar
  /** and begin with the first charge, where this is true. */
  readonly fromFirstHit?: boolean
}

const fixedWindowKind: Kind<Counter, FixedWindowParams> = {
  tag: 'f',

  logName: ({ windowMs, rule }) => (rule === 'first-hit' ? `fhit${windowMs}` : `f${windowMs}`),

  params: (limits) => ({
    ...commonParams(limits),
    ...(limits[0]!.rule === 'first-hit' && { fromFirstHit: true }),
  }),

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

  admit(counter, params, nowMs, cost, used) {
    this.check(counter, params, nowMs, used)
    for (let i = 0; i < params.limits.length; i++) if (used[i]! + cost > params.limits[i]!) return false
    charge(counter, params, nowMs, cost)
    return true
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

/** Apart from the other, which need not be told the time. */
const calendarWindowKind: Kind<Counter, FixedWindowParams> = {
  ...fixedWindowKind,

  logName({ rule }) {
    const { unit, timeZone } = rule as Calendar
    return `f${unit}-${timeZone}`
  },

  params: (limits) => ({ ...commonParams(limits), calendar: limits[0]!.rule as Calendar }),

  // Redis knows no time zones.
  paramsAt({ calendar, ...params }, nowMs) {
    const edges = calendar!.edgesAround(nowMs)
    return { ...params, edges } as LogParams
  },
}

function commonParams(limits: readonly Limit[]): LogParams {
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

function isUnit(align: unknown): align is CalendarUnit {
  return align === 'hour' || align === 'day' || align === 'week' || align === 'month'
}
