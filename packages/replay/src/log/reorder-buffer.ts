// Puts the requests of a log into the order of time. Runs in browsers, too.

import TinyQueue from 'tinyqueue'
import type { LoggedRequest } from './parse-line.ts'

interface ReorderOptions {
  /** How much older than the newest a request may be and still take its place in time. */
  readonly boundMs: number
  /** Requests held at most; beyond it the oldest is released before its time. */
  readonly capacity: number
}

/** A leap ahead of the newest time by more than this, or by more than the bound, is doubted. */
export const LEAP_MS = 86_400_000

/** So many lines in a row must make such a leap before it is believed. */
export const LEAP_LINES = 100

/**
 * Puts the requests of a log into the order of time. Servers write lines when requests end, several write
 * into one file: lines are out of order, but not by much. A request is held until one comes that is more
 * than the bound newer; whatever comes later than that is too late.
 *
 * A single absurd time in the future would make all that follow it too late. So a leap of more than a day is
 * believed only when `LEAP_LINES` lines in a row make it, as they do after a pause; until then such requests are
 * held like all others, and decided at their time. A log may begin with the absurd line: as long as nothing
 * was released, a time more than a day before the newest takes its place.
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
  /** Requests released before their time because the buffer was full. */
  releasedEarly = 0

  constructor({ boundMs, capacity }: ReorderOptions) {
    this.#boundMs = boundMs
    this.#leapMs = Math.max(LEAP_MS, boundMs)
    this.#capacity = capacity
  }

  /** Takes a request in, the lines in the order of the file; false for one that is too late. */
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

  /** How many requests {@link take} would hand out. */
  get released(): number {
    return this.#released.length
  }

  /** The requests released since the last call, in order of time. */
  take(): LoggedRequest[] {
    const released = this.#released
    this.#released = []
    return released
  }

  /** At the end of the log: releases all that is still held. */
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
