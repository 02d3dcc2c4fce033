/** The time in whole milliseconds since the epoch. */
export type Clock = () => number

const { hrtime } = process

/** Milliseconds since some time in the past. Of the monotonic clocks of Node this is read in the least time. */
function elapsedMs(): number {
  const [seconds, nanoseconds] = hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}

const ORIGIN_MS: number = performance.timeOrigin + performance.now() - elapsedMs()

/**
 * The clock of this process: anchored to the wall clock once, then monotonic, so that setting the machine's
 * clock neither frees nor locks anybody.
 */
export const monotonicClock: Clock = () => Math.floor(ORIGIN_MS + elapsedMs())
