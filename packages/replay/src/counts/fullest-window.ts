// The fullest window of any key, by the times of the requests alone. Runs in browsers, too.

/** What was admitted of one key and is still within the window: how many units at which time. */
interface Recent {
  times: number[]
  units: number[]
  /** Index of the oldest that is within the window; those before it have left it. */
  head: number
  within: number
}

const FIRST_PRUNING = 10_000

/** Instants that are held at most, of all keys: some 200 MB. */
const CAPACITY = 5_000_000

/**
 * How many units the fullest window of any key holds, over all half-open windows of that length: the
 * true answer, from the times of the requests alone. Requests are added in the order of time.
 *
 * Holds what lies within the window, and forgets keys without any. Where that is more than there is room for, half of it
 * is forgotten, of the keys with the fewest units: if one of those becomes the busiest after all, the answer may be too low.
 */
export class FullestWindow {
  readonly #windowMs: number
  readonly #recent = new Map<string, Recent>()
  readonly #capacity: number
  #pruneAt = FIRST_PRUNING
  /** Instants of all keys, those included that have left the window and stand there still. */
  #held = 0
  #fullest = 0
  /** Keys that were forgotten for want of room. */
  forgotten = 0

  constructor(windowMs: number, capacity: number = CAPACITY) {
    this.#windowMs = windowMs
    this.#capacity = capacity
  }

  get count(): number {
    return this.#fullest
  }

  /** Tells how many units the key's window holds that ends now. */
  add(key: string, timeMs: number, cost = 1): number {
    const recent = this.#recentOf(key, timeMs)
    const last = recent.times.length - 1
    if (recent.times[last] === timeMs) {
      recent.units[last]! += cost
    } else {
      recent.times.push(timeMs)
      recent.units.push(cost)
      this.#held++
    }
    recent.within += cost
    while (timeMs - recent.times[recent.head]! >= this.#windowMs) {
      recent.within -= recent.units[recent.head]!
      recent.head++
    }
    if (recent.head > 32 && 2 * recent.head > recent.times.length) {
      this.#held -= recent.head
      recent.times = recent.times.slice(recent.head)
      recent.units = recent.units.slice(recent.head)
      recent.head = 0
    }
    if (recent.within > this.#fullest) this.#fullest = recent.within
    if (this.#held > this.#capacity) this.#makeRoom(timeMs)
    return recent.within
  }

  #recentOf(key: string, timeMs: number): Recent {
    let recent = this.#recent.get(key)
    if (recent === undefined) {
      if (this.#recent.size >= this.#pruneAt) this.#prune(timeMs)
      recent = { times: [], units: [], head: 0, within: 0 }
      this.#recent.set(key, recent)
    }
    return recent
  }

  /** Doubling the next pruning's mark keeps the work of all prunings below that of the adding. */
  #prune(timeMs: number): void {
    for (const [key, { times }] of this.#recent) {
      if (timeMs - times[times.length - 1]! >= this.#windowMs) this.#forget(key, times)
    }
    this.#pruneAt = Math.max(FIRST_PRUNING, 2 * this.#recent.size)
  }

  #makeRoom(timeMs: number): void {
    this.#prune(timeMs)
    const byRequests = Array.from(this.#recent).sort(([, a], [, b]) => a.within - b.within)
    for (const [key, { times }] of byRequests) {
      if (2 * this.#held <= this.#capacity) return
      this.#forget(key, times)
      this.forgotten++
    }
  }

  #forget(key: string, times: readonly number[]): void {
    this.#held -= times.length
    this.#recent.delete(key)
  }
}
