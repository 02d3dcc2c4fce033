import TinyQueue from 'tinyqueue'

/** A key that was found at its limit. */
interface Parked {
  readonly slot: number
  /** Its place in the order of use. */
  readonly order: number
  readonly opensAtMs: number
}

/**
 * Keys that were found at their limit while room was made, until they are used again: so that no search
 * meets them twice. They wait by when they open, and thereafter by when they were used.
 *
 * All of them were used before any that is not here: the least recently used is the one that is parked, and
 * whoever is used leaves.
 */
export class Parking {
  /** What of the queues still holds; the rest has been used again, or parked anew. */
  readonly #waiting = new Map<number, Parked>()
  #closed: TinyQueue<Parked> = new TinyQueue([], opensSooner)
  #opened: TinyQueue<Parked> = new TinyQueue([], usedSooner)
  #orders = 0

  /** Only for the least recently used key. */
  park(slot: number, opensAtMs: number): void {
    const parked = { slot, order: this.#waiting.get(slot)?.order ?? this.#orders++, opensAtMs }
    this.#waiting.set(slot, parked)
    this.#closed.push(parked)
    // What no longer holds stays in the queues until it is due; that must not become the larger part of them.
    if (this.#closed.length + this.#opened.length > 2 * this.#waiting.size + 64) {
      const holds = (held: Parked) => this.#holds(held)
      this.#closed = new TinyQueue(this.#closed.data.filter(holds), opensSooner)
      this.#opened = new TinyQueue(this.#opened.data.filter(holds), usedSooner)
    }
  }

  leave(slot: number): void {
    if (this.#waiting.size > 0) this.#waiting.delete(slot)
  }

  /** Of those that may no longer be at their limit the least recently used one; 0 where there is none. */
  open(nowMs: number): number {
    for (let parked = this.#closed.peek(); parked !== undefined; parked = this.#closed.peek()) {
      const holds = this.#holds(parked)
      if (holds && parked.opensAtMs > nowMs) break
      this.#closed.pop()
      if (holds) this.#opened.push(parked)
    }
    while (this.#opened.length > 0 && !this.#holds(this.#opened.peek()!)) this.#opened.pop()
    return this.#opened.peek()?.slot ?? 0
  }

  /** When the first of them opens; 0 where there is none. */
  get opensAtMs(): number {
    return this.#closed.peek()?.opensAtMs ?? 0
  }

  #holds(parked: Parked): boolean {
    return this.#waiting.get(parked.slot) === parked
  }
}

function opensSooner(a: Parked, b: Parked): number {
  return a.opensAtMs - b.opensAtMs
}

function usedSooner(a: Parked, b: Parked): number {
  return a.order - b.order
}
