// Calls a function periodically.

/** Calls a function periodically. Returns a function that stops it. */
export type Every = (ms: number, run: () => void) => () => void

/** Uses a timer that doesn't keep the process alive. */
export const everyByTimer: Every = (ms, run) => {
  const timer = setInterval(run, ms)
  timer.unref()
  return () => clearInterval(timer)
}
