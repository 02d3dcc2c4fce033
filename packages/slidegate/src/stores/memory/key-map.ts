// Maps keys to slots, without the pause that a large `Map` causes when it grows: 50 ms for a million keys.

import { mapKey, textHash } from '../../runtime/hash.ts'
import { randomInt32 } from '../../runtime/platform.ts'

/** Maximum keys in one map. More keys are spread over several maps. */
const MOST_IN_ONE = 16_384

const SHARD_BITS = 7

export class KeyMap {
  /** The only map, until its keys are spread over several maps. */
  #only: Map<string, number> | undefined = new Map()
  #shards: readonly Map<string, number>[] = []
  /** Random, so that callers can't choose keys that all land in one shard. */
  #seed = 0
  size = 0

  get(text: string): number | undefined {
    const key = mapKey(text)
    return this.#mapOf(key).get(key)
  }

  /** Adds a key that isn't in the map. */
  add(text: string, slot: number): void {
    if (this.size++ === MOST_IN_ONE && this.#only !== undefined) this.#spread(this.#only)
    const key = mapKey(text)
    this.#mapOf(key).set(key, slot)
  }

  /** Deletes a key that is in the map. */
  delete(text: string): void {
    const key = mapKey(text)
    this.size--
    this.#mapOf(key).delete(key)
  }

  #spread(only: ReadonlyMap<string, number>): void {
    this.#seed = randomInt32()
    this.#shards = Array.from({ length: 2 ** SHARD_BITS }, () => new Map())
    this.#only = undefined
    for (const [key, slot] of only) this.#mapOf(key).set(key, slot)
  }

  /** Returns the map for a key. Hashes the whole key, because many keys may start or end with the same text. */
  #mapOf(key: string): Map<string, number> {
    if (this.#only !== undefined) return this.#only
    return this.#shards[Math.imul(textHash(key, this.#seed), 0x9e3779b1) >>> (32 - SHARD_BITS)]!
  }
}
