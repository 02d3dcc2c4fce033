// Checks and reads a clock passed by the caller.

import { invalidOption, show } from '../errors.ts'
import type { Clock } from '../runtime/clock.ts'

/** The latest time that fits in a log (6 bytes). */
const MAX_TIME_MS: number = 2 ** 47

/** @throws {SlidegateError} `invalid_option` if it is neither a clock nor undefined */
export function checkClock(clock: unknown): void {
  if (clock !== undefined && typeof clock !== 'function') {
    throw invalidOption(`clock is ${show(clock)}; it must be a function`, clock)
  }
}

/** Reads the caller's clock, in whole milliseconds. */
export function readClock(clock: Clock): number {
  const told: unknown = clock()
  const nowMs = typeof told === 'number' ? Math.floor(told) : Number.NaN
  if (!(nowMs >= 0 && nowMs <= MAX_TIME_MS)) {
    throw invalidOption(`the clock returned ${show(told)}; it must be milliseconds since the epoch`, told)
  }
  return nowMs
}
