// The process's clock, which never jumps, and the validation of callers' clocks.

import { checkThat, invalidOption, show } from '../errors.ts'
import { elapsedMs } from './platform.ts'

/** The time in whole milliseconds since the epoch. */
export type Clock = () => number

/** The wall-clock time when the monotonic clock was 0. */
let originMs: number | undefined

/** This process's clock: set from the wall clock once, then monotonic. Changes to the wall clock have no effect. */
export const monotonicClock: Clock = () => {
  originMs ??= performance.timeOrigin + performance.now() - elapsedMs()
  return Math.floor(originMs + elapsedMs())
}

/** The latest time that fits in a log (6 bytes). */
const MAX_TIME_MS: number = 2 ** 47

export function checkClock(clock: unknown): void {
  checkThat(clock === undefined || typeof clock === 'function', 'clock', clock, 'a function')
}

export function readClock(clock: Clock): number {
  const time: unknown = clock()
  const nowMs = typeof time === 'number' ? Math.floor(time) : Number.NaN
  if (!(nowMs >= 0 && nowMs <= MAX_TIME_MS)) {
    throw invalidOption(`the clock returned ${show(time)}; it must be milliseconds since the epoch`, time)
  }
  return nowMs
}
