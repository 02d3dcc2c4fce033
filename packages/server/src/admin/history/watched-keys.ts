// Exact counts for keys that operators watch, and for blocked keys.

import type { Decision } from 'slidegate'
import { hashOf, isConcealed, shortKey } from '../keys.ts'
import { type KeyCounts, SlotCounts } from './key-counts.ts'

/** The maximum number of watched keys per limiter. */
export const MAX_WATCHED = 8

/** The maximum number of blocked keys that a process counts per limiter. */
const MAX_BLOCKED = 8

/** Longer keys are truncated. */
const MAX_KEY_LENGTH = 64

type Conceal = (key: string) => string

/** A limiter's watched keys, in their stored form. */
export interface WatchedOfLimiter {
  readonly keys: readonly (readonly [dimension: string, key: string])[]
  /** Hashes keys, if only hashes are stored. */
  readonly conceal?: Conceal | undefined
}

interface KnownKey {
  readonly key: string
  readonly dimension: string
  readonly hash: number
}

/** Counts the requests for a limiter's watched and blocked keys, in this process. */
export class WatchedKeys {
  /** By slot: watched keys first, then blocked ones. */
  readonly #keys: (KnownKey | undefined)[] = new Array(MAX_WATCHED + MAX_BLOCKED).fill(undefined)
  readonly #counts = new SlotCounts(MAX_WATCHED + MAX_BLOCKED)
  /** The index of the blocked key to replace next. */
  #next = 0
  /** Whether no keys are watched or blocked, in which case `add` has nothing to do. */
  isEmpty = true
  #hasWatched = false
  #conceal: Conceal | undefined

  /** Sets the keys that operators watch. Keys that were already watched keep their counts. */
  watch({ keys, conceal }: WatchedOfLimiter = { keys: [] }): void {
    const wanted = keys.slice(0, MAX_WATCHED).map(([dimension, key]) => keyOf(key, dimension))
    for (let slot = 0; slot < MAX_WATCHED; slot++) {
      const known = this.#keys[slot]
      const at = known === undefined ? -1 : wanted.findIndex((each) => isSame(each, known))
      if (at === -1) this.#set(slot, undefined)
      else wanted.splice(at, 1)
    }
    for (const key of wanted) this.#set(this.#keys.indexOf(undefined), key)
    this.#conceal = conceal
    this.#hasWatched = keys.length > 0
  }

  /** Counts the requests for a blocked key from now on, until no more arrive. */
  block(key: string, dimension: string): void {
    const blocked = keyOf(key, dimension)
    if (this.#keys.slice(MAX_WATCHED).some((each) => each !== undefined && isSame(each, blocked))) return
    this.#set(MAX_WATCHED + this.#next, blocked)
    this.#next = (this.#next + 1) % MAX_BLOCKED
  }

  add(key: string, dimension: string, hash: number, decision: Decision, isDenied: boolean): void {
    const asked = { key, dimension, hash }
    const stored = this.#hasWatched ? storedKey(key, this.#conceal) : key
    const watched = stored === key ? asked : keyOf(stored, dimension)
    for (let slot = 0; slot < this.#keys.length; slot++) {
      const known = this.#keys[slot]
      if (known === undefined) continue
      if (isSame(known, slot < MAX_WATCHED ? watched : asked)) this.#counts.add(slot, decision, isDenied)
    }
  }

  /** Adds the counts since the last call to `words`. Drops blocked keys that were idle. */
  takeTo(words: Map<string, KeyCounts>): void {
    for (let slot = this.#keys.length - 1; slot >= 0; slot--) {
      const known = this.#keys[slot]
      if (known === undefined) continue
      const isWatched = slot < MAX_WATCHED
      const word = `${known.dimension}=${known.key}`
      const counts = this.#counts.take(slot)
      if (counts !== undefined) words.set(word, { word, ...counts, rank: isWatched ? 2 : 1 })
      else if (!isWatched) this.#set(slot, undefined)
    }
  }

  #set(slot: number, key: KnownKey | undefined): void {
    this.#keys[slot] = key
    this.#counts.clear(slot)
    this.isEmpty = this.#keys.every((each) => each === undefined)
  }
}

/** Returns a key in its stored form: hashed or truncated. */
export function storedKey(given: string, conceal: Conceal | undefined): string {
  const key = shortKey(given)
  if (conceal === undefined) return shortKey(key, MAX_KEY_LENGTH)
  return isConcealed(key) ? key : conceal(key)
}

function keyOf(key: string, dimension: string): KnownKey {
  return { key, dimension, hash: hashOf(key, dimension) }
}

function isSame(a: KnownKey, b: KnownKey): boolean {
  return a.hash === b.hash && a.key === b.key && a.dimension === b.dimension
}
