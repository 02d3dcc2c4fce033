// Counts requests and denials by caller.

interface CallerCounts {
  requests: number
  denied: number
  /** Units in the caller's fullest window, by limit. */
  readonly fullest: number[]
}

/** Ranges of window usage, as percentages of the limit. `to` is exclusive, but exactly 100 is a separate range. */
export const BANDS: readonly { readonly from: number; readonly to: number }[] = [
  ...[0, 10, 25, 50, 75, 90].map((from, i, all) => ({ from, to: all[i + 1] ?? 100 })),
  { from: 100, to: 100 },
  { from: 100, to: 125 },
  { from: 125, to: 150 },
  { from: 150, to: 200 },
  { from: 200, to: Number.POSITIVE_INFINITY },
]

/** Maximum number of callers with separate counts. */
const CAPACITY = 500_000

export class Callers {
  readonly #counts = new Map<string, CallerCounts>()
  readonly #limits: number
  readonly #capacity: number
  /** Requests from callers that have no separate counts. */
  uncounted = 0

  constructor(limits: number, capacity: number = CAPACITY) {
    this.#limits = limits
    this.#capacity = capacity
  }

  get size(): number {
    return this.#counts.size
  }

  admitted(key: string, within: readonly number[]): void {
    const counts = this.#of(key)
    if (counts === undefined) return
    counts.requests++
    for (let i = 0; i < this.#limits; i++) counts.fullest[i] = Math.max(counts.fullest[i]!, within[i]!)
  }

  denied(key: string): void {
    const counts = this.#of(key)
    if (counts === undefined) return
    counts.requests++
    counts.denied++
  }

  get(key: string): Readonly<CallerCounts> | undefined {
    return this.#counts.get(key)
  }

  /** Number of callers with at least one denial. */
  get deniedCount(): number {
    let count = 0
    for (const { denied } of this.#counts.values()) if (denied > 0) count++
    return count
  }

  /** Returns the number of callers in each of the {@link BANDS}, by their fullest window. */
  byBand(limitIndex: number, limit: number): number[] {
    const counts = Array<number>(BANDS.length).fill(0)
    for (const { fullest } of this.#counts.values()) {
      const units = fullest[limitIndex]!
      if (units > 0) counts[bandOf((100 * units) / limit)]!++
    }
    return counts
  }

  #of(key: string): CallerCounts | undefined {
    let counts = this.#counts.get(key)
    if (counts === undefined) {
      if (this.#counts.size >= this.#capacity) {
        this.uncounted++
        return undefined
      }
      counts = { requests: 0, denied: 0, fullest: Array(this.#limits).fill(0) }
      this.#counts.set(key, counts)
    }
    return counts
  }
}

function bandOf(percent: number): number {
  return BANDS.findIndex(({ from, to }) => percent < to || (from === to && percent === to))
}

export interface Caller {
  readonly key: string
  readonly denied: number
}

/**
 * Finds the callers with the most denials.
 *
 * The result is exact for up to `capacity` callers. With more callers, the half with the lowest counts is dropped from
 * time to time, so callers with few denials can be missed.
 */
export class TopCallers {
  readonly #counts = new Map<string, number>()
  readonly #capacity: number

  constructor(capacity = 500_000) {
    this.#capacity = capacity
  }

  add(key: string): void {
    const count = this.#counts.get(key) ?? 0
    if (count === 0 && this.#counts.size >= this.#capacity) this.#forgetHalf()
    this.#counts.set(key, count + 1)
  }

  /** Sorts by descending count, then by key. */
  top(count: number): Caller[] {
    return Array.from(this.#counts, ([key, denied]) => ({ key, denied }))
      .sort((a, b) => b.denied - a.denied || (a.key < b.key ? -1 : 1))
      .slice(0, count)
  }

  #forgetHalf(): void {
    const byCount = Array.from(this.#counts).sort(([, a], [, b]) => a - b)
    for (const [key] of byCount.slice(0, Math.ceil(byCount.length / 2))) this.#counts.delete(key)
  }
}
