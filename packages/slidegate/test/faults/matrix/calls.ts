import type { Source, StoreUnavailableReason } from '../../../src/index.ts'
import type { Admission } from '../../processes/fullest-window.ts'

/** Who answered a call, or why nobody did. */
export type Told = Source | StoreUnavailableReason

const MAX_CALLS = 32_768

/** What became of calls, outside the heap, whose growth is measured. */
export class Calls {
  #size = 0
  readonly #keys: string[] = []
  readonly #told: Told[] = []
  readonly #startMs = new Float64Array(MAX_CALLS)
  readonly #endMs = new Float64Array(MAX_CALLS)
  readonly #atMs = new Float64Array(MAX_CALLS)
  readonly #keyOf = new Uint8Array(MAX_CALLS)
  readonly #toldOf = new Uint8Array(MAX_CALLS)
  readonly #isAllowed = new Uint8Array(MAX_CALLS)

  get size(): number {
    return this.#size
  }

  add(key: string, startMs: number, endMs: number, told: Told, isAllowed: boolean, atMs: number): void {
    if (this.#size === MAX_CALLS) return
    const i = this.#size++
    this.#keyOf[i] = numberOf(this.#keys, key)
    this.#toldOf[i] = numberOf(this.#told, told)
    this.#startMs[i] = startMs
    this.#endMs[i] = endMs
    this.#isAllowed[i] = isAllowed ? 1 : 0
    this.#atMs[i] = atMs
  }

  /** How long calls took that ended in this time by `performance.now()`, or later. */
  durationsMs(fromMs: number, toMs: number = Number.POSITIVE_INFINITY): number[] {
    return this.#ended(fromMs, toMs).map((i) => this.#endMs[i]! - this.#startMs[i]!)
  }

  /** How many of these were told what. */
  told(fromMs: number, toMs: number = Number.POSITIVE_INFINITY): Map<Told, number> {
    const counts = new Map<Told, number>()
    for (const i of this.#ended(fromMs, toMs)) {
      const told = this.#told[this.#toldOf[i]!]!
      counts.set(told, (counts.get(told) ?? 0) + 1)
    }
    return counts
  }

  /** From when on the store has answered, of calls that ended after this; but for one in a hundred, which is the machine's doing. */
  answeredSinceMs(fromMs: number): number {
    const store = this.#told.indexOf('store')
    const ended = this.#ended(fromMs, Number.POSITIVE_INFINITY)
    let sinceMs = Number.POSITIVE_INFINITY
    let others = 0
    for (let count = 1; count <= ended.length; count++) {
      const i = ended[ended.length - count]!
      if (this.#toldOf[i] !== store) others++
      else if (others * 100 <= count) sinceMs = this.#endMs[i]!
    }
    return sinceMs
  }

  /** What the store has admitted, by key. */
  admissions(): Map<string, Admission[]> {
    const store = this.#told.indexOf('store')
    const byKey = new Map<string, Admission[]>(this.#keys.map((key) => [key, []]))
    for (let i = 0; i < this.#size; i++) {
      if (this.#toldOf[i] !== store || this.#isAllowed[i] === 0) continue
      byKey.get(this.#keys[this.#keyOf[i]!]!)!.push({ atMs: this.#atMs[i]!, cost: 1 })
    }
    return byKey
  }

  #ended(fromMs: number, toMs: number): number[] {
    const found: number[] = []
    for (let i = 0; i < this.#size; i++) {
      if (this.#endMs[i]! >= fromMs && this.#endMs[i]! < toMs) found.push(i)
    }
    return found
  }
}

function numberOf<T>(list: T[], entry: T): number {
  const index = list.indexOf(entry)
  return index >= 0 ? index : list.push(entry) - 1
}
