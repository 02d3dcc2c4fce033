import type { Limit } from '../../../src/index.ts'
import type { LogModel, Request } from './log-model.ts'

export interface Window {
  readonly startMs: number
  /** The first moment after the window. */
  readonly endMs: number
}

/** Returns the window of a moment, given the window that was charged last. */
export type WindowAt = (ms: number, last: Window | undefined) => Window

/** Windows aligned to multiples of their length since the epoch. */
export function epochWindows(lengthMs: number): WindowAt {
  return (ms) => {
    const startMs = ms - (ms % lengthMs)
    return { startMs, endMs: startMs + lengthMs }
  }
}

/** Windows that start with the first charge after the one before has ended. */
export function firstHitWindows(lengthMs: number): WindowAt {
  return (ms, last) =>
    last !== undefined && last.startMs <= ms && ms < last.endMs ? last : { startMs: ms, endMs: ms + lengthMs }
}

/** The most units that a log counts. */
const MOST_UNITS = 2 ** 46

/** Counts units in one window at a time. */
export class FixedModel implements LogModel {
  readonly #windowAt: WindowAt
  #window: Window | undefined
  /** Time of the first charge in the window. */
  #sinceMs = 0
  #units = 0

  constructor(windowAt: WindowAt) {
    this.#windowAt = windowAt
  }

  copy(): FixedModel {
    const copied = new FixedModel(this.#windowAt)
    copied.#window = this.#window
    copied.#sinceMs = this.#sinceMs
    copied.#units = this.#units
    return copied
  }

  newest(): number {
    return this.#window === undefined ? 0 : this.#sinceMs
  }

  restamp(nowMs: number): void {
    this.#window = this.#windowAt(nowMs, undefined)
    this.#sinceMs = nowMs
  }

  used(_limit: Limit, nowMs: number): number {
    return this.#counts(nowMs) ? this.#units : 0
  }

  need(_nowMs: number, request: Request): number {
    return request.units
  }

  charge(_limits: readonly Limit[], nowMs: number, { units }: Request): void {
    if (!this.#counts(nowMs)) {
      this.#units = 0
      this.#sinceMs = nowMs
    }
    this.#window = this.#windowAt(nowMs, this.#window)
    this.#units = Math.min(this.#units + units, MOST_UNITS)
  }

  refund(nowMs: number, atMs: number, { units }: Request): number {
    if (this.#window === undefined || nowMs >= this.#window.endMs) return 0
    if (atMs < this.#sinceMs || atMs >= this.#window.endMs) return 0
    const returned = Math.min(units, this.#units)
    this.#units -= returned
    if (this.#units === 0) this.#window = undefined
    return returned
  }

  #counts(nowMs: number): boolean {
    return this.#window !== undefined && this.#window.startMs <= nowMs && nowMs < this.#window.endMs
  }
}
