// Entries by limiter name and key.

import { mapKey, textHash } from '../runtime/hash.ts'
import type { Part } from '../stores/store.ts'

/** Looks up the limiter, then the key. Joined into one string, they would have to be hashed each time. */
export class ByKey<Entry> {
  readonly #limiters = new Map<string, Map<string, Entry>>()

  get({ set, key }: Part): Entry | undefined {
    return this.#limiters.get(set.limiter)?.get(mapKey(key))
  }

  set({ set, key }: Part, entry: Entry): void {
    const keys = this.#limiters.get(set.limiter)
    if (keys === undefined) this.#limiters.set(set.limiter, new Map([[mapKey(key), entry]]))
    else keys.set(mapKey(key), entry)
  }

  delete({ set, key }: Part): void {
    const keys = this.#limiters.get(set.limiter)
    keys?.delete(mapKey(key))
    if (keys?.size === 0) this.#limiters.delete(set.limiter)
  }
}

/** Entries for the keys added most recently, up to a maximum. A ring finds the oldest entry faster than a Map does. */
export class KeyRing<Entry> {
  readonly #maxKeys: number
  readonly #entries = new ByKey<Entry>()
  readonly #parts: Part[] = []
  #oldest = 0

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
  }

  get(part: Part): Entry | undefined {
    return this.#entries.get(part)
  }

  /** Call this only for a key without an entry. */
  add(part: Part, entry: Entry): Entry {
    this.#entries.set(part, entry)
    if (this.#parts.length < this.#maxKeys) {
      this.#parts.push(part)
    } else {
      this.#entries.delete(this.#parts[this.#oldest]!)
      this.#parts[this.#oldest] = part
      this.#oldest = (this.#oldest + 1) % this.#maxKeys
    }
    return entry
  }
}

export function slotOf(key: string, slots: number): number {
  const hash = textHash(key, 0x811c9dc5)
  return (hash ^ (hash >>> 15)) & (slots - 1)
}
