// Detects jumps of the store's clock.

import type { FailureReports } from '../events.ts'

/** Jumps of up to this size aren't reported. */
const TOLERANCE_MS = 1000

/** Steps are treated as one if their times and sizes differ by at most this. */
const SAME_STEP_MS = 1000

/**
 * Watches one clock.
 *
 * An answer was decided between the call and its arrival, which bounds how far the store's clock is ahead of this process's
 * monotonic clock. If the bounds of two answers don't overlap, the clock was set in between.
 */
export class ClockWatch {
  #lastAtMs = Number.NaN
  #leastAheadMs = Number.NEGATIVE_INFINITY
  #mostAheadMs = Number.POSITIVE_INFINITY

  /** Returns by how many milliseconds the clock was set since the last answer. Negative if it was set back. */
  stepAt(atMs: number, sentAtMs: number, nowMs: number): number {
    // Many answers fall into the same millisecond.
    if (atMs === this.#lastAtMs) return 0
    this.#lastAtMs = atMs
    const leastAheadMs = atMs - nowMs
    const mostAheadMs = atMs + 1 - sentAtMs
    let stepMs = 0
    if (leastAheadMs > this.#mostAheadMs + TOLERANCE_MS) stepMs = leastAheadMs - this.#mostAheadMs
    else if (mostAheadMs < this.#leastAheadMs - TOLERANCE_MS) stepMs = mostAheadMs - this.#leastAheadMs
    this.#leastAheadMs = leastAheadMs
    this.#mostAheadMs = mostAheadMs
    return Math.round(stepMs)
  }
}

/** Reports steps once, even if several parts of a Cluster detect the same step. */
export class ClockSteps {
  readonly #reports: FailureReports
  #atMs = Number.NEGATIVE_INFINITY
  #byMs = 0

  constructor(reports: FailureReports) {
    this.#reports = reports
  }

  report(byMs: number, nowMs: number): void {
    const isSame = nowMs - this.#atMs < SAME_STEP_MS && Math.abs(byMs - this.#byMs) < SAME_STEP_MS
    this.#atMs = nowMs
    this.#byMs = byMs
    if (isSame) return
    this.#reports.counts.clockSteps++
    this.#reports.emit('clockStep', { byMs })
  }
}
