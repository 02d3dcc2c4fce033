/**
 * Windows of a calendar, in any time zone. Needs the package `temporal-polyfill`.
 *
 * @module
 */
export type { CalendarUnit } from './limits/calendar.ts'
export { type CalendarWindowOptions, calendarWindow } from './limits/calendar-window.ts'
