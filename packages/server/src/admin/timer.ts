// Calls a function again and again: by a timer, or by a test.

/** Calls a function again and again; answers what ends that. */
export type Every = (ms: number, run: () => void) => () => void

/** By a timer that keeps no process alive. */
export const everyByTimer: Every = (ms, run) => {
  const timer = setInterval(run, ms)
  timer.unref()
  return () => clearInterval(timer)
}
