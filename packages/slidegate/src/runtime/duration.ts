// Durations such as '10s'.

import { checkThat } from '../errors.ts'

/**
 * Milliseconds, or a whole number with a unit: `'250ms'`, `'10s'`, `'1m'`, `'1h'`, `'7d'`.
 *
 * A `string` variable, such as an environment variable, needs a cast:
 * `window: process.env.WINDOW as Duration`. The value is checked at run time.
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const

export const MIN_WINDOW_MS = 10
export const MAX_WINDOW_MS: number = 366 * UNIT_MS.d

export function isWindow(ms: number): boolean {
  return ms >= MIN_WINDOW_MS && ms <= MAX_WINDOW_MS
}

/** Parses a duration. Returns whole milliseconds, or `undefined` if the duration is invalid. */
export function parseDuration(duration: unknown): number | undefined {
  if (typeof duration === 'number') return Number.isSafeInteger(duration) ? duration : undefined
  if (typeof duration !== 'string') return undefined
  const match = /^(\d{1,15})(ms|s|m|h|d)$/.exec(duration)
  if (match === null) return undefined
  const ms = Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]
  return Number.isSafeInteger(ms) ? ms : undefined
}

const RIGHT = "whole milliseconds or a string such as '250ms', '10s', '1m', '1h' or '7d'"

/** Parses a window. @throws {SlidegateError} `invalid_duration` unless it is from 10 ms to 366 days */
export function parseWindow(window: unknown, what = 'the window'): number {
  const ms = parseDuration(window)
  checkThat(ms !== undefined, what, window, RIGHT, 'invalid_duration')
  checkThat(isWindow(ms), what, window, 'from 10ms to 366d', 'invalid_duration')
  return ms
}

/** Formats milliseconds in the largest unit that divides them: `60000` is `1m`, `90000` is `90s`. */
export function formatDuration(ms: number): string {
  const [unit, unitMs] = Object.entries(UNIT_MS).find(([, unitMs]) => ms % unitMs === 0)!
  return `${ms / unitMs}${unit}`
}

/** The start of the window that contains a time. Exact below 2^48, and faster than a remainder. */
export function startOf(ms: number, windowMs: number): number {
  return Math.floor(ms / windowMs) * windowMs
}
