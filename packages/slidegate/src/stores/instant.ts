import { invalidOption, show } from '../errors.ts'
import type { Clock } from '../runtime/clock.ts'

/**
 * How far the newest stamp may lie ahead of the clock. Up to here time is held still until the clock has
 * caught up; beyond it the clock was set back, and the log is restamped.
 */
export const MAX_AHEAD_MS = 1000

/** The latest time that a log can hold (6 bytes). */
const MAX_TIME_MS: number = 2 ** 47

/** `invalid_option` unless it is a clock, or none was handed in. */
export function checkClock(clock: unknown): void {
  if (clock !== undefined && typeof clock !== 'function') {
    throw invalidOption(`clock is ${show(clock)}; it must be a function`, clock)
  }
}

/** Reads a clock that was handed in, in whole milliseconds. */
export function readClock(clock: Clock): number {
  const told: unknown = clock()
  const nowMs = typeof told === 'number' ? Math.floor(told) : Number.NaN
  if (!(nowMs >= 0 && nowMs <= MAX_TIME_MS)) {
    throw invalidOption(`the clock says ${show(told)}; it must be milliseconds since the epoch`, told)
  }
  return nowMs
}
