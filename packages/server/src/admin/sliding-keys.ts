// Counts the busiest keys in the last few minutes, in a window of two halves.

import type { Decision } from 'slidegate'
import { type KeyCounts, SlotCounts } from './history/key-counts.ts'
import { WatchedKeys } from './history/watched-keys.ts'
import { COARSE, HyperLogLog } from './hyperloglog.ts'
import { hashOf } from './keys.ts'
import { NONE, SpaceSaving, type Summary } from './space-saving.ts'

/** The count by which keys are ranked. */
export type Ranking = 'requests' | 'denials'

/** Counts for a limiter's keys in one process, as plain JSON. */
export interface TopCounts {
  /** How far back the counts go. */
  readonly spanMs: number
  readonly summaries: readonly Summary[]
  /** An encoded {@link HyperLogLog} of the keys. */
  readonly callers: string
}

/** The number of a limiter's callers, and the busiest callers. A few KB of plain JSON. */
export interface CallerSketch {
  readonly requests: number
  readonly top: readonly Summary[]
  /** An encoded {@link HyperLogLog} with fewer registers. */
  readonly sketch: string
}

/** The number of keys in a sketch. */
const GREATEST = 16

/** Number of keys with a counter in each half of a limiter's window. */
const COUNTERS = 512

/** Length of half a window, in milliseconds. The window slides by half its length, so it covers one to two halves. */
export const HALF_MS = 150_000

/** The counts in one half of the window. */
class Half {
  readonly minute = new SlotCounts(COUNTERS)
  readonly requests = new SpaceSaving(COUNTERS, (slot) => this.minute.clear(slot))
  /** Created at the first denial. */
  denials: SpaceSaving | undefined
  readonly callers = new HyperLogLog()
  count = 0
}

/** Counts the keys in the last few minutes. */
export class SlidingKeys {
  readonly watched = new WatchedKeys()
  #former: Half | undefined
  #current = new Half()
  #since: number
  #begun: number

  constructor(nowMs: number) {
    this.#since = nowMs
    this.#begun = nowMs
  }

  /** Counts a request. Call `add` for each of its keys afterwards. */
  count(nowMs: number): void {
    this.#goOnTo(nowMs)
    this.#current.count++
  }

  /** @param isDenied whether a limit or ban in this dimension denied the request */
  add(key: string, dimension: string, decision: Decision, isDenied: boolean): void {
    const half = this.#current
    const hash = hashOf(key, dimension)
    half.callers.add(hash)
    const slot = half.requests.add(key, hash, dimension)
    if (slot !== NONE) half.minute.add(slot, decision, isDenied)
    if (!this.watched.isEmpty) this.watched.add(key, dimension, hash, decision, isDenied)
    if (!isDenied) return
    half.denials ??= new SpaceSaving(COUNTERS)
    half.denials.add(key, hash, dimension)
  }

  counts(by: Ranking, nowMs: number): TopCounts {
    const halves = this.#halves(nowMs)
    return {
      spanMs: Math.round(nowMs - this.#since),
      summaries: halves.flatMap((half) => half[by]?.summary() ?? []),
      callers: HyperLogLog.union(halves.map(({ callers }) => callers)).text(),
    }
  }

  callers(nowMs: number): CallerSketch {
    const halves = this.#halves(nowMs)
    return {
      requests: halves.reduce((sum, half) => sum + half.count, 0),
      top: halves.map(({ requests }) => requests.greatest(GREATEST)),
      sketch: HyperLogLog.union(halves.map(({ callers }) => callers.folded(COARSE))).text(),
    }
  }

  /** Returns the counts for each key since the last call. Counts for evicted keys may be too low. */
  takeMinute(nowMs: number): ReadonlyMap<string, KeyCounts> {
    const words = new Map<string, KeyCounts>()
    for (const { minute, requests } of this.#halves(nowMs)) {
      minute.takeTo(words, (slot) => requests.wordAt(slot))
    }
    this.watched.takeTo(words)
    return words
  }

  #halves(nowMs: number): readonly Half[] {
    this.#goOnTo(nowMs)
    return this.#former === undefined ? [this.#current] : [this.#former, this.#current]
  }

  #goOnTo(nowMs: number): void {
    const passedMs = nowMs - this.#begun
    if (passedMs < HALF_MS) return
    this.#former = passedMs < 2 * HALF_MS ? this.#current : undefined
    this.#since = this.#former === undefined ? nowMs : this.#begun
    this.#begun = passedMs < 2 * HALF_MS ? this.#begun + HALF_MS : nowMs
    this.#current = new Half()
  }
}
