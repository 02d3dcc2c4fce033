/** By less than this a clock may be off, or held back, without anybody being told. */
const TOLERANCE_MS = 1000

/**
 * Notices when the store's clock is set. An answer was decided between its sending and its arrival, so it tells within
 * what bounds the store's clock is ahead of this process's monotonic one; where the bounds of two answers do not meet, the
 * store's clock was set in between.
 */
export class ClockWatch {
  #lastAtMs = Number.NaN
  #leastAheadMs = Number.NEGATIVE_INFINITY
  #mostAheadMs = Number.POSITIVE_INFINITY

  /** Answers by how many milliseconds it was set since the last answer: forward, or back (below 0); 0 where it was not. */
  stepAt(atMs: number, sentAtMs: number, nowMs: number): number {
    // Many answers are of the same millisecond.
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
