// Clocks: the one of this process never steps.

import { elapsedMs } from './platform.ts'

/** The time in whole milliseconds since the epoch. */
export type Clock = () => number

/** When the clock was 0, by the wall clock as it was when the process began. */
let originMs: number | undefined

/**
 * The clock of this process: anchored to the wall clock once, then monotonic, so that setting the machine's
 * clock neither frees nor locks anybody.
 */
export const monotonicClock: Clock = () => {
  originMs ??= performance.timeOrigin + performance.now() - elapsedMs()
  return Math.floor(originMs + elapsedMs())
}
