// Finds the fullest window of any key, from the requests' times. Also runs in browsers.

/** A key's units within the window, by time. */
interface Recent {
  times: number[]
  units: number[]
  /** Index of the oldest entry within the window. */
  head: number
  within: number
}

const FIRST_PRUNING = 10_000

/** Maximum number of stored times for all keys together (about 200 MB). */
const CAPACITY = 5_000_000

/**
 * Finds the highest usage of any key in any half-open window of this length.
 *
 * The result is exact, because it uses the time of each request. Requests must be added in chronological order.
 *
 * To bound memory, it drops keys without units in the window. If the remaining keys don't fit, it drops those
 * with the fewest units until half of the memory is free. If a dropped key becomes the busiest later, the
 * result may be too low.
 */
export class FullestWindow {
  readonly #windowMs: number
  readonly #recent = new Map<string, Recent>()
  readonly #capacity: number
  #pruneAt = FIRST_PRUNING
  /** Number of stored times, including expired ones. */
  #held = 0
  #fullest = 0
  /** Number of keys dropped because memory was full. */
  forgotten = 0

  constructor(windowMs: number, capacity: number = CAPACITY) {
    this.#windowMs = windowMs
    this.#capacity = capacity
  }

  get count(): number {
    return this.#fullest
  }

  /** Adds a request. Returns the key's units in the window that ends at the request's time. */
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

  /** Drops keys without units in the window. Runs again only once the number of keys has doubled. */
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
