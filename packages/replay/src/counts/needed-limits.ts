// Finds the lowest sliding window limit under which a given share of callers is never denied. Also runs in browsers.

import { FullestWindow } from './fullest-window.ts'

/** The lowest limit under which this share of callers would never be denied. */
export interface Need {
  /** From 0 to 1. */
  readonly share: number
  readonly limit: number
}

const SHARES = [0.9, 0.95, 0.99, 0.999, 1]

/**
 * Finds the limits that callers need. Sorts `fullest` in place.
 *
 * A sliding window never denies a caller whose own fullest window is within the limit.
 *
 * @param fullest the units in each caller's fullest window
 */
export function needsOf(fullest: Float64Array): Need[] {
  fullest.sort()
  return SHARES.map((share) => ({ share, limit: fullest[Math.ceil(share * fullest.length) - 1] ?? 1 }))
}

/** The limits that callers need, for one window length. */
export interface NeedsOfWindow {
  readonly windowMs: number
  readonly callers: number
  /** False if there were too many callers to count all of them. */
  readonly exact: boolean
  readonly needs: readonly Need[]
}

const CAPACITY = 500_000

/** Collects each caller's fullest windows, from requests in chronological order. */
export class NeededLimits {
  readonly #windows: readonly FullestWindow[]
  readonly #windowsMs: readonly number[]
  readonly #capacity: number
  /** For each caller, the units in its fullest window of each length. */
  readonly #callers = new Map<string, Float64Array>()
  #isFull = false

  /** @param capacity maximum number of callers */
  constructor(windowsMs: readonly number[], capacity: number = CAPACITY) {
    this.#windowsMs = Array.from(new Set(windowsMs)).sort((a, b) => a - b)
    this.#windows = this.#windowsMs.map((windowMs) => new FullestWindow(windowMs))
    this.#capacity = capacity
  }

  add(key: string, timeMs: number, cost?: number): void {
    let fullest = this.#callers.get(key)
    if (fullest === undefined) {
      this.#isFull = this.#callers.size >= this.#capacity
      if (this.#isFull) return
      fullest = new Float64Array(this.#windows.length)
      this.#callers.set(key, fullest)
    }
    for (let i = 0; i < this.#windows.length; i++) {
      fullest[i] = Math.max(fullest[i]!, this.#windows[i]!.add(key, timeMs, cost))
    }
  }

  /** Returns the needs for each window length, shortest first. Returns an empty array if there were no requests. */
  read(): NeedsOfWindow[] {
    const { size } = this.#callers
    if (size === 0) return []
    return this.#windowsMs.map((windowMs, i) => ({
      windowMs,
      callers: size,
      exact: !this.#isFull && this.#windows[i]!.forgotten === 0,
      needs: needsOf(Float64Array.from(this.#callers.values(), (fullest) => fullest[i]!)),
    }))
  }
}
