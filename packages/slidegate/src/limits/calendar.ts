// Finds where hours, days, weeks and months of a time zone begin and end.

import * as Instant from 'temporal-polyfill/fns/Instant'
import * as PlainDate from 'temporal-polyfill/fns/PlainDate'
import * as ZonedDateTime from 'temporal-polyfill/fns/ZonedDateTime'
import { type NameOptions, wrong } from './declare.ts'

/** Windows that a calendar knows. */
export type CalendarUnit = 'hour' | 'day' | 'week' | 'month'

/** The options of calendarWindow. */
export interface CalendarWindowOptions extends NameOptions {
  /** Units admitted per window: an integer from 1 to 2^40. */
  readonly limit: number
  /**
   * The windows are local hours, days, ISO weeks (from Monday) or months. If the local clock is set, an hour ends, and a day
   * is shorter or longer than others. `windowMs` of the limit is nominal: 24 hours for a day, 31 days for a month. The
   * default name is like `10000-per-month`.
   */
  readonly unit: CalendarUnit
  /**
   * An IANA name such as `Europe/Berlin`, by the rules that this process has. Default: `UTC`.
   *
   * With Redis the time is that of Redis. If it is more than two windows from that of this process, requests fail as if the
   * store were unavailable, with the reason `invalid_state`.
   */
  readonly timeZone?: string
}

const HOUR_MS = 3_600_000

/** The nominal length of a window: months differ, and so do days and hours when the local clock is set. */
const NOMINAL_MS: Readonly<Record<CalendarUnit, number>> = {
  hour: HOUR_MS,
  day: 24 * HOUR_MS,
  week: 7 * 24 * HOUR_MS,
  month: 31 * 24 * HOUR_MS,
}

/** Windows before the current one, and after it, whose edges Redis gets. */
const AROUND = 2

/** Windows in the cache. */
const MAX_KNOWN = 64

export function isUnit(value: unknown): value is CalendarUnit {
  return typeof value === 'string' && Object.hasOwn(NOMINAL_MS, value)
}

/** From `startMs` on, before `endMs`. */
interface Window {
  readonly startMs: number
  readonly endMs: number
}

/**
 * The windows of a local calendar. They follow each other without a gap, however the local clock is set:
 *
 * - An hour begins with the full hour of the local clock, and when that clock is set. A change of half an hour leaves an hour of
 *   30 minutes.
 * - A day begins with the first local time of its date, and goes on if the clock is then set back over midnight. Weeks
 *   begin with their Mondays, months with their first days. A day that the zone has left out has no window.
 *
 * Windows are cached: finding one takes longer than a decision.
 */
export class Calendar {
  readonly unit: CalendarUnit
  /** As IANA spells it. */
  readonly timeZone: string
  /** The latest windows found, newest first. */
  #known: readonly Window[] = []
  #edges: readonly number[] = []

  /** @throws {SlidegateError} `invalid_duration` */
  constructor(unit: CalendarUnit, timeZone: unknown) {
    this.unit = unit
    this.timeZone = parseTimeZone(timeZone)
  }

  /** The nominal length of a window. */
  get nominalMs(): number {
    return NOMINAL_MS[this.unit]
  }

  /** The start of the window that an instant is in. None begins before the epoch. */
  startOf(ms: number): number {
    return this.#windowAt(ms).startMs
  }

  /** The end of the window that an instant is in, which is the start of the next one. */
  endOf(ms: number): number {
    return this.#windowAt(ms).endMs
  }

  /** The edges of the windows around an instant: of two before its own, of its own, and of two after it. */
  edgesAround(ms: number): readonly number[] {
    const startMs = this.startOf(ms)
    if (this.#edges[AROUND] === startMs) return this.#edges
    const edges = [startMs, this.endOf(ms)]
    for (let i = 0; i < AROUND; i++) {
      edges.unshift(this.#windowAt(Math.max(0, edges[0]! - 1)).startMs)
      edges.push(this.endOf(edges.at(-1)!))
    }
    this.#edges = edges
    return edges
  }

  #windowAt(ms: number): Window {
    const known = this.#known.find((window) => isIn(window, ms))
    if (known !== undefined) return known
    const local = Instant.toZonedDateTimeISO(Instant.fromEpochMilliseconds(ms), this.timeZone)
    const { startMs, endMs } = this.unit === 'hour' ? hourAt(local) : dateWindowAt(local, this.unit)
    const window = { startMs: Math.max(0, startMs), endMs }
    this.#known = [window, ...this.#known.slice(0, MAX_KNOWN - 1)]
    return window
  }
}

function isIn({ startMs, endMs }: Window, ms: number): boolean {
  return ms >= startMs && ms < endMs
}

/** The local hour, cut if the local clock is set within it. */
function hourAt(local: ZonedDateTime.Record): Window {
  const ms = local.epochMilliseconds
  const hourMs = ms - (local.minute * 60_000 + local.second * 1000 + local.millisecond)
  // "previous" leaves out a change at this very instant.
  const after = ZonedDateTime.addMilliseconds(local, 1)
  const setMs = ZonedDateTime.getTimeZoneTransition(after, 'previous')?.epochMilliseconds
  const nextSetMs = ZonedDateTime.getTimeZoneTransition(local, 'next')?.epochMilliseconds
  return {
    startMs: Math.max(hourMs, setMs ?? hourMs),
    endMs: Math.min(hourMs + HOUR_MS, nextSetMs ?? Number.POSITIVE_INFINITY),
  }
}

/** From the first date of the day, the week or the month to that of the next. */
function dateWindowAt(local: ZonedDateTime.Record, unit: 'day' | 'week' | 'month'): Window {
  const ms = local.epochMilliseconds
  let date = firstDateOf(ZonedDateTime.toPlainDate(local), unit)
  let startMs = beginningOf(date, local.timeZoneId)
  for (;;) {
    date = NEXT[unit](date, 1)
    const endMs = beginningOf(date, local.timeZoneId)
    if (endMs > ms) return { startMs, endMs }
    // The clock was set back over midnight: the next one has begun already.
    startMs = endMs
  }
}

const NEXT = { day: PlainDate.addDays, week: PlainDate.addWeeks, month: PlainDate.addMonths }

function firstDateOf(date: PlainDate.Record, unit: 'day' | 'week' | 'month'): PlainDate.Record {
  if (unit === 'day') return date
  return unit === 'week' ? PlainDate.startOfWeek(date) : PlainDate.startOfMonth(date)
}

/** The first instant at which the local date is this one or a later one. */
function beginningOf(date: PlainDate.Record, timeZone: string): number {
  return PlainDate.toZonedDateTime(date, timeZone).epochMilliseconds
}

/** @throws {SlidegateError} `invalid_duration` unless the time zone is known */
function parseTimeZone(timeZone: unknown): string {
  // Temporal accepts offsets and dates, too.
  if (typeof timeZone === 'string' && /^[A-Za-z][A-Za-z0-9_+/-]*$/.test(timeZone)) {
    try {
      return Instant.toZonedDateTimeISO(Instant.fromEpochMilliseconds(0), timeZone).timeZoneId
    } catch {
      // Reported below.
    }
  }
  throw wrong(
    'the time zone',
    timeZone,
    "one of the IANA, such as 'UTC' or 'Europe/Berlin'",
    'invalid_duration',
  )
}
