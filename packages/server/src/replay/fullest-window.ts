/** The admitted requests of one key that are still within the window: how many at which time. */
interface Recent {
  times: number[]
  counts: number[]
  /** Index of the oldest that is within the window; those before it have left it. */
  head: number
  within: number
}

const FIRST_PRUNING = 10_000

/**
 * How many requests the fullest window of any key holds, over all half-open windows of that length: the
 * true answer, from the times of the requests alone. Requests are added in the order of time.
 *
 * Holds what lies within the window, and forgets keys without any.
 */
export class FullestWindow {
  readonly #windowMs: number
  readonly #recent = new Map<string, Recent>()
  #pruneAt = FIRST_PRUNING
  #fullest = 0

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  get count(): number {
    return this.#fullest
  }

  add(key: string, timeMs: number): void {
    const recent = this.#recentOf(key, timeMs)
    const last = recent.times.length - 1
    if (recent.times[last] === timeMs) {
      recent.counts[last]!++
    } else {
      recent.times.push(timeMs)
      recent.counts.push(1)
    }
    recent.within++
    while (timeMs - recent.times[recent.head]! >= this.#windowMs) {
      recent.within -= recent.counts[recent.head]!
      recent.head++
    }
    if (recent.head > 32 && 2 * recent.head > recent.times.length) {
      recent.times = recent.times.slice(recent.head)
      recent.counts = recent.counts.slice(recent.head)
      recent.head = 0
    }
    if (recent.within > this.#fullest) this.#fullest = recent.within
  }

  #recentOf(key: string, timeMs: number): Recent {
    let recent = this.#recent.get(key)
    if (recent === undefined) {
      if (this.#recent.size >= this.#pruneAt) this.#prune(timeMs)
      recent = { times: [], counts: [], head: 0, within: 0 }
      this.#recent.set(key, recent)
    }
    return recent
  }

  /** Doubling the next pruning's mark keeps the work of all prunings below that of the adding. */
  #prune(timeMs: number): void {
    for (const [key, { times }] of this.#recent) {
      if (timeMs - times[times.length - 1]! >= this.#windowMs) this.#recent.delete(key)
    }
    this.#pruneAt = Math.max(FIRST_PRUNING, 2 * this.#recent.size)
  }
}
