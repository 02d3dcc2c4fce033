// Reads the clock that a caller passes.

import { invalidOption, show } from '../errors.ts'
import type { Clock } from '../runtime/clock.ts'

/** The latest time that a log can hold (6 bytes). */
const MAX_TIME_MS: number = 2 ** 47

/** Throws `invalid_option` unless it is a clock or undefined. */
export function checkClock(clock: unknown): void {
  if (clock !== undefined && typeof clock !== 'function') {
    throw invalidOption(`clock is ${show(clock)}; it must be a function`, clock)
  }
}

/** Reads a clock that was passed, in whole milliseconds. */
export function readClock(clock: Clock): number {
  const told: unknown = clock()
  const nowMs = typeof told === 'number' ? Math.floor(told) : Number.NaN
  if (!(nowMs >= 0 && nowMs <= MAX_TIME_MS)) {
    throw invalidOption(`the clock says ${show(told)}; it must be milliseconds since the epoch`, told)
  }
  return nowMs
}
