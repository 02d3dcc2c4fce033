/** The time in whole milliseconds since the epoch. */
export type Clock = () => number

const { timeOrigin } = performance

/**
 * The clock of this process: anchored to the wall clock once, then monotonic, so that setting the machine's
 * clock neither frees nor locks anybody.
 */
export const monotonicClock: Clock = () => Math.floor(timeOrigin + performance.now())
