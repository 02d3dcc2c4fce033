export interface Caller {
  readonly key: string
  readonly denied: number
}

/**
 * Counts by caller, for those with the most. Exact as long as there are no more callers than `capacity`;
 * beyond it the half with the least counts is forgotten, now and then, so that only callers who come rarely
 * can be missed.
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

  /** Those with the most first; where two have as many, by key. */
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
