import { onTestFinished, vi } from 'vitest'

/** The start of a minute, and of an hour. */
export const START = Date.UTC(2026, 0, 1)

/** Sets the clock that packages read as `Date`, until the test is over; timers go by the real one. */
export function setDate(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: ms })
  onTestFinished(() => {
    vi.useRealTimers()
  })
}
