// Maps keys to slots, and grows in pieces.

import { mapKey, textHash } from '../../runtime/hash.ts'
import { randomInt32 } from '../../runtime/platform.ts'

/** Maximum keys in one map. More keys are spread over several maps. */
const MOST_IN_ONE = 16_384

const SHARD_BITS = 7

/**
 * Maps keys to slots.
 *
 * A full `Map` blocks the process while it doubles: for 50 ms with a million keys. So large numbers of keys are spread over 128
 * maps.
 */
export class KeyMap {
  /** All keys, or those that haven't moved to a shard yet. A key moves when it is used. */
  #first: Map<string, number> | undefined = new Map()
  #shards: readonly Map<string, number>[] | undefined
  /** Random, so that callers who choose keys can't fill one shard. */
  #seed = 0
  size = 0

  get(text: string): number | undefined {
    const key = mapKey(text)
    return this.#shards === undefined ? this.#first!.get(key) : this.#find(key, this.#shards)
  }

  #find(key: string, shards: readonly Map<string, number>[]): number | undefined {
    const shard = shardOf(shards, key, this.#seed)
    const slot = shard.get(key)
    if (slot !== undefined || this.#first === undefined) return slot
    const moved = this.#first.get(key)
    if (moved !== undefined) {
      shard.set(key, moved)
      this.#deleteFirst(key)
    }
    return moved
  }

  /** Adds a key that isn't in the map. */
  add(text: string, slot: number): void {
    const key = mapKey(text)
    this.size++
    if (this.#shards === undefined) {
      this.#first!.set(key, slot)
      if (this.#first!.size === MOST_IN_ONE) {
        this.#seed = randomInt32()
        this.#shards = Array.from({ length: 2 ** SHARD_BITS }, () => new Map())
      }
    } else {
      shardOf(this.#shards, key, this.#seed).set(key, slot)
    }
  }

  /** Deletes a key that is in the map. */
  delete(text: string): void {
    const key = mapKey(text)
    this.size--
    const isInShard = this.#shards !== undefined && shardOf(this.#shards, key, this.#seed).delete(key)
    if (!isInShard) this.#deleteFirst(key)
  }

  #deleteFirst(key: string): void {
    if (this.#first === undefined) return
    this.#first.delete(key)
    if (this.#shards !== undefined && this.#first.size === 0) this.#first = undefined
  }
}

/** Uses the whole key, so that keys with equal beginnings or ends are spread, too. */
function shardOf(shards: readonly Map<string, number>[], key: string, seed: number): Map<string, number> {
  return shards[Math.imul(textHash(key, seed), 0x9e3779b1) >>> (32 - SHARD_BITS)]!
}
