// Finds the slot of a key, in a map that grows piece by piece.

import { mapKey, textHash } from '../../runtime/hash.ts'
import { randomInt32 } from '../../runtime/platform.ts'

/** Keys that one map holds; with more, there are several. */
const MOST_IN_ONE = 16_384

const SHARD_BITS = 7

/**
 * Keys and their slots. A `Map` that is full stops the process while it makes itself anew, twice as large:
 * with a million keys for 50 ms. So many keys are spread over 128 maps, each of which does so on its own.
 */
export class KeyMap {
  /** All keys, or those that have not been asked for since there are shards: they move when they are. */
  #first: Map<string, number> | undefined = new Map()
  #shards: readonly Map<string, number>[] | undefined
  /** Nobody who chooses keys knows which of them fall into one shard. Drawn when there are shards. */
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

  /** Only for a key that is not held. */
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

  /** Only for a key that is held. */
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

/** By all that a key is: keys that begin or end alike are spread, too. */
function shardOf(shards: readonly Map<string, number>[], key: string, seed: number): Map<string, number> {
  return shards[Math.imul(textHash(key, seed), 0x9e3779b1) >>> (32 - SHARD_BITS)]!
}
