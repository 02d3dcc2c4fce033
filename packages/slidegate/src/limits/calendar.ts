// Finds the start and end of hours, days, weeks and months in a time zone.

import * as Instant from 'temporal-polyfill/fns/Instant'
import * as PlainDate from 'temporal-polyfill/fns/PlainDate'
import * as ZonedDateTime from 'temporal-polyfill/fns/ZonedDateTime'
import { type NameOptions, wrong } from './declare.ts'

/** The units of calendar windows. */
export type CalendarUnit = 'hour' | 'day' | 'week' | 'month'

/** Options for `calendarWindow`. */
export interface CalendarWindowOptions extends NameOptions {
  /** Units allowed per window, an integer from 1 to 2^40. */
  readonly limit: number
  /**
   * The length of a window: local hours, days, ISO weeks (from Monday) or months.
   *
   * A change to the local clock, such as the start of daylight saving time, ends an hour, and makes a day shorter or
   * longer. The limit's `windowMs` is nominal: 24 hours for a day, 31 days for a month. A default name looks like
   * `10000-per-month`.
   */
  readonly unit: CalendarUnit
  /**
   * An IANA time zone such as `Europe/Berlin`, or an offset such as `+05:30`. Default: `UTC`. Uses this
   * process's time zone data.
   *
   * The Redis server's clock determines the current window. If it differs from this process's clock by more than two windows,
   * requests fail as if the store were unavailable, with the reason `invalid_state`.
   */
  readonly timeZone?: string
}

const HOUR_MS = 3_600_000

const NOMINAL_MS: Readonly<Record<CalendarUnit, number>> = {
  hour: HOUR_MS,
  day: 24 * HOUR_MS,
  week: 7 * 24 * HOUR_MS,
  month: 31 * 24 * HOUR_MS,
}

/** How many windows on each side of the current one are sent to Redis. */
const AROUND = 2

/** Maximum number of windows in the cache. */
const MAX_KNOWN = 64

export function isUnit(value: unknown): value is CalendarUnit {
  return typeof value === 'string' && Object.hasOwn(NOMINAL_MS, value)
}

interface Window {
  readonly startMs: number
  /** Exclusive. */
  readonly endMs: number
}

/**
 * The windows of a local calendar, without gaps. Finding one is slow, so they are cached.
 *
 * - An hour starts at each full hour of the local clock, and whenever that clock is changed. A change by half an hour
 *   leaves one hour with only 30 minutes.
 * - A day starts at the first local time of its date. If the clock is later set back across midnight, the day continues. Weeks
 *   start on Monday, and months start on their first day. A date that the time zone skips has no window.
 */
export class Calendar {
  readonly unit: CalendarUnit
  /** The time zone in its IANA spelling, or an offset. */
  readonly timeZone: string
  readonly nominalMs: number
  /** Cached windows, most recently found first. */
  #known: readonly Window[] = []
  #edges: readonly number[] = []

  constructor(unit: CalendarUnit, timeZone: unknown) {
    this.unit = unit
    this.timeZone = parseTimeZone(timeZone)
    this.nominalMs = NOMINAL_MS[unit]
  }

  /** Returns the start of the window that contains an instant. Never returns a time before the epoch. */
  startOf(ms: number): number {
    return this.#windowAt(ms).startMs
  }

  endOf(ms: number): number {
    return this.#windowAt(ms).endMs
  }

  /** Returns the edges of the window at an instant and of its neighbors. These are the two before and the two after. */
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
    const known = this.#known.find(({ startMs, endMs }) => ms >= startMs && ms < endMs)
    if (known !== undefined) return known
    const local = Instant.toZonedDateTimeISO(Instant.fromEpochMilliseconds(ms), this.timeZone)
    const { startMs, endMs } = this.unit === 'hour' ? hourAt(local) : dateWindowAt(local, this.unit)
    const window = { startMs: Math.max(0, startMs), endMs }
    this.#known = [window, ...this.#known.slice(0, MAX_KNOWN - 1)]
    return window
  }
}

function hourAt(local: ZonedDateTime.Record): Window {
  const ms = local.epochMilliseconds
  const hourMs = ms - (local.minute * 60_000 + local.second * 1000 + local.millisecond)
  // Adds 1 ms, because a search for the previous change skips a change at exactly this instant.
  const after = ZonedDateTime.addMilliseconds(local, 1)
  const setMs = ZonedDateTime.getTimeZoneTransition(after, 'previous')?.epochMilliseconds
  const nextSetMs = ZonedDateTime.getTimeZoneTransition(local, 'next')?.epochMilliseconds
  return {
    startMs: Math.max(hourMs, setMs ?? hourMs),
    endMs: Math.min(hourMs + HOUR_MS, nextSetMs ?? Number.POSITIVE_INFINITY),
  }
}

function dateWindowAt(local: ZonedDateTime.Record, unit: 'day' | 'week' | 'month'): Window {
  const ms = local.epochMilliseconds
  let date = FIRST[unit](ZonedDateTime.toPlainDate(local))
  let startMs = beginningOf(date, local.timeZoneId)
  for (;;) {
    date = NEXT[unit](date, 1)
    const endMs = beginningOf(date, local.timeZoneId)
    if (endMs > ms) return { startMs, endMs }
    // The local clock was set back across midnight after the next date had started. That date doesn't start again.
    startMs = endMs
  }
}

const day = (date: PlainDate.Record) => date
const FIRST = { day, week: PlainDate.startOfWeek, month: PlainDate.startOfMonth }
const NEXT = { day: PlainDate.addDays, week: PlainDate.addWeeks, month: PlainDate.addMonths }

function beginningOf(date: PlainDate.Record, timeZone: string): number {
  return PlainDate.toZonedDateTime(date, timeZone).epochMilliseconds
}

/** @throws {SlidegateError} `invalid_duration` if the time zone is unknown */
function parseTimeZone(timeZone: unknown): string {
  // Temporal would also accept a date with a time zone.
  if (typeof timeZone === 'string' && /^([A-Za-z][A-Za-z0-9_+/-]*|[+-]\d\d:\d\d)$/.test(timeZone)) {
    try {
      return Instant.toZonedDateTimeISO(Instant.fromEpochMilliseconds(0), timeZone).timeZoneId
    } catch {
      // The error is thrown below.
    }
  }
  const right = "an IANA name such as 'Europe/Berlin', or an offset such as '+05:30'"
  throw wrong('the time zone', timeZone, right, 'invalid_duration')
}
