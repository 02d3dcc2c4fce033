// Sorts the requests in a log by time. Also runs in browsers.

import TinyQueue from 'tinyqueue'
import type { LoggedRequest } from './parse-line.ts'

interface ReorderOptions {
  /** Maximum age of a late request, relative to the newest request. */
  readonly boundMs: number
  /** Maximum number of held requests. If there are more, the oldest is released early. */
  readonly capacity: number
}

/** If time jumps ahead by more than this, later lines must confirm it. Jumps of at most `boundMs` need no confirmation. */
export const LEAP_MS = 86_400_000

/** Number of consecutive lines that confirm a jump. */
export const LEAP_LINES = 100

/**
 * Sorts the requests in a log by time.
 *
 * Servers write a line when a request ends, and several servers may share a file, so lines are slightly out
 * of order. The buffer holds a request until another request is newer by more than the bound. Requests that are
 * late by more than the bound are rejected.
 *
 * A single wrong time in the future would cause all later requests to be rejected. Therefore, a jump of more than a
 * day counts only after `LEAP_LINES` consecutive lines confirm it, as happens after a pause in the log. Until
 * then, requests after the jump are held. If the log starts with a wrong time, a time that is more than a day older replaces
 * it, unless requests have been released already.
 */
export class ReorderBuffer {
  readonly #held = new TinyQueue<LoggedRequest>([], (a, b) => a.timeMs - b.timeMs || a.line - b.line)
  readonly #boundMs: number
  readonly #leapMs: number
  readonly #capacity: number
  #released: LoggedRequest[] = []
  #releasedMs = Number.NEGATIVE_INFINITY
  #newestMs = Number.NEGATIVE_INFINITY
  #leaps = 0
  #leastLeapMs = Number.POSITIVE_INFINITY
  /** Requests released early because the buffer was full. */
  releasedEarly = 0

  constructor({ boundMs, capacity }: ReorderOptions) {
    this.#boundMs = boundMs
    this.#leapMs = Math.max(LEAP_MS, boundMs)
    this.#capacity = capacity
  }

  /** Adds a request, in file order. Returns false if it is too late. */
  push(request: LoggedRequest): boolean {
    this.#observe(request.timeMs)
    if (request.timeMs < this.#newestMs - this.#boundMs || request.timeMs < this.#releasedMs) return false
    this.#held.push(request)
    while (this.#held.length > 0 && this.#held.peek()!.timeMs < this.#newestMs - this.#boundMs)
      this.#release()
    if (this.#held.length > this.#capacity) {
      this.#release()
      this.releasedEarly++
    }
    return true
  }

  /** Number of requests that {@link take} returns. */
  get released(): number {
    return this.#released.length
  }

  /** Requests released since the last call, in chronological order. */
  take(): LoggedRequest[] {
    const released = this.#released
    this.#released = []
    return released
  }

  /** Releases all held requests at the end of the log. */
  drain(): void {
    while (this.#held.length > 0) this.#release()
  }

  #release(): void {
    const request = this.#held.pop()!
    this.#releasedMs = request.timeMs
    this.#released.push(request)
  }

  #observe(timeMs: number): void {
    const isFirst = this.#newestMs === Number.NEGATIVE_INFINITY
    const hasReleased = this.#releasedMs !== Number.NEGATIVE_INFINITY
    if (isFirst || (!hasReleased && timeMs < this.#newestMs - this.#leapMs)) {
      this.#newestMs = timeMs
    } else if (timeMs > this.#newestMs + this.#leapMs) {
      this.#leastLeapMs = Math.min(this.#leastLeapMs, timeMs)
      this.#leaps++
      if (this.#leaps < LEAP_LINES) return
      this.#newestMs = this.#leastLeapMs
    } else {
      this.#newestMs = Math.max(this.#newestMs, timeMs)
    }
    this.#leaps = 0
    this.#leastLeapMs = Number.POSITIVE_INFINITY
  }
}
