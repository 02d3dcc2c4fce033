// The circuit breaker: stops requests to a failing store.

import type { BreakerOptions } from '../stores/store.ts'

/** Requests are counted in periods of this length. Only the current and the previous period matter. */
const STRETCH_MS = 250

const FIRST_PAUSE_MS = 100

export interface BreakerListener {
  opened(error: unknown): void
  closed(): void
}

/** Stops requests to a failing store, except for occasional attempts. Based on "Release It!" by M. Nygard. */
export class Breaker {
  readonly #options: Required<BreakerOptions>
  readonly #listener: BreakerListener
  /** The latest pause between attempts. 0 while the breaker is closed. */
  #pauseMs = 0
  /** When the next attempt may start. During an attempt: the time from which the attempt counts as lost. */
  #nextAtMs = 0
  #isAttempting = false
  #outages = 0
  #sinceMs: number
  #asked = 0
  #failed = 0
  #askedBefore = 0
  #failedBefore = 0

  constructor(options: Required<BreakerOptions>, listener: BreakerListener, nowMs: number) {
    this.#options = options
    this.#listener = listener
    this.#sinceMs = nowMs
  }

  /** The current outage's number. 0 while the breaker is closed. The result of an attempt from an earlier outage is ignored. */
  get outage(): number {
    return this.#pauseMs === 0 ? 0 : this.#outages
  }

  /** Whether a request may be sent. If the breaker is open, `true` makes the request an attempt, whose result must be reported. */
  admits(nowMs: number): boolean {
    if (this.#pauseMs === 0) return true
    if (nowMs < this.#nextAtMs) return false
    this.#isAttempting = true
    this.#nextAtMs = nowMs + this.#options.maxBackoffMs
    return true
  }

  /** Milliseconds until the next attempt. 0 while the breaker is closed or an attempt is in flight. */
  pauseAt(nowMs: number): number {
    return this.#pauseMs === 0 || this.#isAttempting ? 0 : Math.max(0, Math.ceil(this.#nextAtMs - nowMs))
  }

  /** @param isAttempt whether the request was an attempt in this outage; earlier requests don't close the breaker */
  succeeded(nowMs: number, isAttempt: boolean): void {
    if (this.#pauseMs === 0) {
      this.#count(nowMs, 0)
    } else if (isAttempt) {
      this.#pauseMs = 0
      this.#startStretch(nowMs, 0)
      this.#listener.closed()
    }
  }

  failed(nowMs: number, error: unknown, isAttempt: boolean): void {
    if (this.#pauseMs === 0) {
      this.#count(nowMs, 1)
      if (!this.#isTooMuch()) return
      this.#outages++
      this.#open(nowMs, FIRST_PAUSE_MS)
      this.#listener.opened(error)
    } else if (isAttempt) {
      this.#open(nowMs, 2 * this.#pauseMs)
    }
  }

  /** Call this if the attempt didn't reach the store, so that another can start. */
  notAsked(nowMs: number): void {
    if (!this.#isAttempting) return
    this.#isAttempting = false
    this.#nextAtMs = nowMs
  }

  #count(nowMs: number, failures: number): void {
    const passedMs = nowMs - this.#sinceMs
    const isOver = passedMs > STRETCH_MS && this.#asked >= this.#options.minRequests
    // Scales the counts to one period, so that a long period doesn't outweigh recent counts.
    if (isOver) this.#startStretch(nowMs, STRETCH_MS / passedMs)
    this.#asked++
    this.#failed += failures
  }

  #startStretch(nowMs: number, share: number): void {
    this.#askedBefore = this.#asked * share
    this.#failedBefore = this.#failed * share
    this.#asked = 0
    this.#failed = 0
    this.#sinceMs = nowMs
  }

  #isTooMuch(): boolean {
    const { minRequests, failureRate } = this.#options
    const asked = this.#asked + this.#askedBefore
    return asked >= minRequests && this.#failed + this.#failedBefore >= failureRate * asked
  }

  #open(nowMs: number, pauseMs: number): void {
    this.#pauseMs = Math.min(pauseMs, this.#options.maxBackoffMs)
    this.#nextAtMs = nowMs + this.#pauseMs * (0.5 + Math.random() / 2)
    this.#isAttempting = false
  }
}
