// A kind of limit: a count per window of a calendar, such as a local day.
//
// Redis knows no time zones, but its clock counts. So an op brings the edges of two windows before now, the present one and two after.
// If the clocks differ by more than that, the script rejects the op.

import { Calendar, type CalendarWindowOptions, isUnit } from './calendar.ts'
import { registerKind } from './declaration.ts'
import { checkDeclaration, declareLimit, paramsOf, parseLimit, wrong } from './declare.ts'
import { type Counter, type FixedWindowParams, fixedWindowKind } from './fixed-window.ts'
import type { Kind, Limit } from './limit.ts'

/**
 * Limits each window of a calendar to `limit` units.
 *
 * The clock is that of the store, and a key has one number.
 *
 * ```ts
 * calendarWindow({ limit: 10_000, unit: 'month', timeZone: 'Europe/Berlin' })
 * ```
 *
 * At worst `2 * limit` pass around the edge between two windows, within the length of the shortest. Limits of the same unit and
 * time zone share their count.
 *
 * Importing `slidegate/calendar` also lets this process read such limits from overrides, and from clients of `serveStore`.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_duration`, `invalid_name`
 */
export function calendarWindow(options: CalendarWindowOptions): Limit {
  checkDeclaration(options, '{ limit, unit }', { limit: true, unit: true, timeZone: true })
  const { unit, timeZone = 'UTC' } = options
  const limit = parseLimit(options.limit)
  if (!isUnit(unit)) throw wrong('the unit', unit, "'hour', 'day', 'week' or 'month'", 'invalid_duration')
  const rule = new Calendar(unit, timeZone)
  const { nominalMs } = rule
  return declareLimit(
    { kind: calendarWindowKind, limit, windowMs: nominalMs, precisionMs: nominalMs, rule },
    calendarWindow,
    options,
    { kind: 'calendarWindow', limit, unit, timeZone: rule.timeZone },
    `${limit}-per-${unit}`,
  )
}

/** The kind of fixed windows, with the edges of a calendar. */
const calendarWindowKind: Kind<Counter, FixedWindowParams> = {
  ...fixedWindowKind,

  logName({ rule }) {
    const { unit, timeZone } = rule as Calendar
    return `f${unit}-${timeZone}`
  },

  params: (limits) => ({ ...paramsOf(limits, limits[0]!.windowMs), calendar: limits[0]!.rule as Calendar }),

  words({ calendar, limits }, nowMs) {
    const edges = calendar!.edgesAround(nowMs)
    return [0, edges.length, ...limits, ...edges]
  },

  hasTimedWords: true,
}

registerKind('calendarWindow', calendarWindow)
