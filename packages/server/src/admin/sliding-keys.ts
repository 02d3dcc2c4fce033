// Counts the busiest keys of the last minutes, in two halves of a window.

import { COARSE, HyperLogLog } from './hyperloglog.ts'
import { keyHash } from './keys.ts'
import { SpaceSaving, type Summary } from './space-saving.ts'

/** The number that keys are ranked by. */
export type Ranking = 'requests' | 'denials'

/** Counts of a limiter's keys in one process, as plain JSON. */
export interface TopCounts {
  /** How far back the counts go. */
  readonly spanMs: number
  readonly summaries: readonly Summary[]
  /** An encoded {@link HyperLogLog} of the keys. */
  readonly callers: string
}

/** The number of a limiter's callers, and the busiest ones. Plain JSON of a few KB. */
export interface CallerSketch {
  readonly requests: number
  readonly top: readonly Summary[]
  /** An encoded {@link HyperLogLog} with fewer registers. */
  readonly sketch: string
}

/** The number of busiest keys in a sketch. */
const GREATEST = 16

/** Keys with a counter, per limiter and half of the window. */
const COUNTERS = 512

/** The window slides by halves, so it covers between one and two of them. */
export const HALF_MS = 150_000

/** Counts of one half of the window. */
class Half {
  readonly requests = new SpaceSaving(COUNTERS)
  /** Created at the first denial. */
  denials: SpaceSaving | undefined
  readonly callers = new HyperLogLog()
  count = 0
}

/** Counts the keys of the last minutes. */
export class SlidingKeys {
  #former: Half | undefined
  #current = new Half()
  #since: number
  #begun: number

  constructor(nowMs: number) {
    this.#since = nowMs
    this.#begun = nowMs
  }

  /** Counts a request. Add each of its keys afterwards. */
  count(nowMs: number): void {
    this.#goOnTo(nowMs)
    this.#current.count++
  }

  add(key: string, dimension: string, isDenied: boolean): void {
    const half = this.#current
    const hash = dimension === '' ? keyHash(key) : keyHash(key, keyHash(dimension))
    half.callers.add(hash)
    half.requests.add(key, hash, dimension)
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
