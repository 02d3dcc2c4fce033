/**
 * Limits per calendar hour, day, week or month, in any time zone. Needs the package `temporal-polyfill`.
 *
 * @module
 */
export type { CalendarUnit, CalendarWindowOptions } from './limits/calendar.ts'
export { calendarWindow } from './limits/calendar-window.ts'
