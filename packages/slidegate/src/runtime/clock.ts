// Clocks. The clock of this process never steps.

import { elapsedMs } from './platform.ts'

/** The time in whole milliseconds since the epoch. */
export type Clock = () => number

/** The wall-clock time at which the monotonic clock was 0. */
let originMs: number | undefined

/**
 * The clock of this process: set by the wall clock once, then monotonic.
 *
 * Changing the machine's clock neither frees nor blocks any key.
 */
export const monotonicClock: Clock = () => {
  originMs ??= performance.timeOrigin + performance.now() - elapsedMs()
  return Math.floor(originMs + elapsedMs())
}
