// The busiest keys of the last minutes, in two halves of a window.

import { COARSE, HyperLogLog } from './hyperloglog.ts'
import { keyHash } from './keys.ts'
import { SpaceSaving, type Summary } from './space-saving.ts'

/** What keys are ranked by. */
export type Ranking = 'requests' | 'denials'

/** What one process knows of the keys of a limiter, as plain JSON. */
export interface TopCounts {
  /** How far back it reaches. */
  readonly spanMs: number
  readonly summaries: readonly Summary[]
  /** Of {@link HyperLogLog}: which keys came. */
  readonly callers: string
}

/** Of a limiter, in some KB: how many keys came, and how often those that came most. As plain JSON. */
export interface CallerSketch {
  readonly requests: number
  readonly top: readonly Summary[]
  /** Of {@link HyperLogLog}, with fewer registers. */
  readonly sketch: string
}

/** Keys of these. */
const GREATEST = 16

/** Keys that are told apart, of each half of the window, of each limiter. */
const COUNTERS = 512

/** The window slides by halves: it reaches back between one and two of them. */
export const HALF_MS = 150_000

/** What is known of the keys of one half of the window. */
class Half {
  readonly requests = new SpaceSaving(COUNTERS)
  /** Made with the first denial. */
  denials: SpaceSaving | undefined
  readonly callers = new HyperLogLog()
  count = 0
}

/** The keys of the last minutes. */
export class SlidingKeys {
  #former: Half | undefined
  #current = new Half()
  #since: number
  #begun: number

  constructor(nowMs: number) {
    this.#since = nowMs
    this.#begun = nowMs
  }

  /** A request: each of its keys is added after it. */
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
