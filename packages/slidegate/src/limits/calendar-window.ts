// A kind of limit: a count per calendar window, such as a local day.
//
// Redis doesn't know time zones, but its clock decides which window is current. So an op contains the start and end
// times of the current window, the two windows before it and the two after it. If the two clocks differ by more than
// two windows, the script rejects the op.

import { Calendar, type CalendarWindowOptions, isUnit } from './calendar.ts'
import { registerKind } from './declaration.ts'
import { checkDeclaration, declareLimit, paramsOf, parseLimit, wrong } from './declare.ts'
import { type Counter, type FixedWindowParams, fixedWindowKind } from './fixed-window.ts'
import type { Kind, Limit } from './limit.ts'

/**
 * Limits each calendar window to `limit` units, by the store's clock.
 *
 * Stores one number per key. In the worst case, `2 * limit` units are admitted around the edge between two windows, within the
 * length of the shorter one. Limits with the same unit and time zone share their count. Importing `slidegate/calendar` also lets
 * this process read such limits from overrides and from clients of `serveStore`.
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
  const made = { kind: calendarWindowKind, limit, windowMs: nominalMs, precisionMs: nominalMs, rule }
  const given = { kind: 'calendarWindow', limit, unit, timeZone: rule.timeZone }
  return declareLimit(made, calendarWindow, options, given, `${limit}-per-${unit}`)
}

const calendarWindowKind: Kind<Counter, FixedWindowParams> = {
  ...fixedWindowKind,

  logName({ rule }) {
    const { unit, timeZone } = rule as Calendar
    // A colon would separate parts of the key.
    return `f${unit}-${timeZone.replace(':', '')}`
  },

  params: (limits) => ({ ...paramsOf(limits, limits[0]!.windowMs), calendar: limits[0]!.rule as Calendar }),

  words({ calendar, limits }, nowMs) {
    const edges = calendar!.edgesAround(nowMs)
    return [0, edges.length, ...limits, ...edges]
  },

  hasTimedWords: true,
}

registerKind('calendarWindow', calendarWindow)
