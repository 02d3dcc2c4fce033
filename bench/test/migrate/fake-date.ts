import { onTestFinished, vi } from 'vitest'

/** The start of a minute, and of an hour. */
export const START = Date.UTC(2026, 0, 1)

/** Sets `Date` until the end of the test. Timers use the real clock. */
export function setDate(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: ms })
  onTestFinished(() => {
    vi.useRealTimers()
  })
}
