import { type Admission, fullestWindow } from '../audit/fullest-window.ts'
import type { Told } from './calls.ts'
import type { Recorder } from './traffic.ts'

const LONGEST_MS = 10_000

/** What became of calls for as long as it takes: what is old is counted, checked and forgotten. */
export class RecentCalls implements Recorder {
  readonly told: Map<Told, number> = new Map()
  /** Units beyond the limit, of the fullest window so far. */
  over = 0
  readonly #limit: number
  readonly #windowMs: number
  /** What was admitted before is of no use any more: the store does not know of it. */
  #fromMs = 0
  readonly #admissions = new Map<string, Admission[]>()
  /** How many calls took so many milliseconds. */
  readonly #durations = new Uint32Array(LONGEST_MS + 1)

  constructor(limit: number, windowMs: number) {
    this.#limit = limit
    this.#windowMs = windowMs
  }

  add(key: string, startMs: number, endMs: number, told: Told, isAllowed: boolean, atMs: number): void {
    this.told.set(told, (this.told.get(told) ?? 0) + 1)
    this.#durations[Math.min(LONGEST_MS, Math.ceil(endMs - startMs))]!++
    if (!isAllowed || (told !== 'store' && told !== 'lease')) return
    const admissions = this.#admissions.get(key)
    if (admissions === undefined) this.#admissions.set(key, [{ atMs, cost: 1 }])
    else admissions.push({ atMs, cost: 1 })
  }

  /** The store has lost what it knew, between these times. */
  lost(fromMs: number, toMs: number): void {
    this.#checkUntil(fromMs)
    this.#fromMs = toMs
    this.#admissions.clear()
  }

  check(): void {
    this.#checkUntil(Number.POSITIVE_INFINITY)
    // What may still be in one window with what comes.
    const keptMs = Date.now() - 5 * this.#windowMs
    for (const [key, admissions] of this.#admissions) {
      const kept = admissions.filter(({ atMs }) => atMs > keptMs)
      if (kept.length === 0) this.#admissions.delete(key)
      else this.#admissions.set(key, kept)
    }
  }

  percentileMs(percent: number): number {
    const all = this.#durations.reduce((sum, count) => sum + count, 0)
    let below = 0
    return this.#durations.findIndex((count) => {
      below += count
      return below * 100 >= all * percent
    })
  }

  #checkUntil(toMs: number): void {
    for (const admissions of this.#admissions.values()) {
      const known = admissions.filter(({ atMs }) => atMs > this.#fromMs && atMs < toMs)
      this.over = Math.max(this.over, fullestWindow(known, this.#windowMs) - this.#limit)
    }
  }
}
