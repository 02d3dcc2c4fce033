import type { Source, StoreUnavailableReason } from '../../../src/index.ts'
import type { Admission } from '../../processes/fullest-window.ts'

/** The source of a decision, or the reason why there was none. */
export type CallOutcome = Source | StoreUnavailableReason

const MAX_CALLS = 32_768

/** Results of calls. They are kept outside the heap, because its growth is measured. */
export class Calls {
  #size = 0
  readonly #keys: string[] = []
  readonly #outcomes: CallOutcome[] = []
  readonly #startMs = new Float64Array(MAX_CALLS)
  readonly #endMs = new Float64Array(MAX_CALLS)
  readonly #atMs = new Float64Array(MAX_CALLS)
  readonly #keyOf = new Uint8Array(MAX_CALLS)
  readonly #outcomeOf = new Uint8Array(MAX_CALLS)
  readonly #isAllowed = new Uint8Array(MAX_CALLS)

  get size(): number {
    return this.#size
  }

  add(
    key: string,
    startMs: number,
    endMs: number,
    outcome: CallOutcome,
    isAllowed: boolean,
    atMs: number,
  ): void {
    if (this.#size === MAX_CALLS) return
    const i = this.#size++
    this.#keyOf[i] = numberOf(this.#keys, key)
    this.#outcomeOf[i] = numberOf(this.#outcomes, outcome)
    this.#startMs[i] = startMs
    this.#endMs[i] = endMs
    this.#isAllowed[i] = isAllowed ? 1 : 0
    this.#atMs[i] = atMs
  }

  /** Returns the durations of calls that ended in this interval of `performance.now()`. */
  durationsMs(fromMs: number, toMs: number = Number.POSITIVE_INFINITY): number[] {
    return this.#ended(fromMs, toMs).map((i) => this.#endMs[i]! - this.#startMs[i]!)
  }

  /** Counts calls in this interval by their result. */
  outcomes(fromMs: number, toMs: number = Number.POSITIVE_INFINITY): Map<CallOutcome, number> {
    const counts = new Map<CallOutcome, number>()
    for (const i of this.#ended(fromMs, toMs)) {
      const outcome = this.#outcomes[this.#outcomeOf[i]!]!
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
    }
    return counts
  }

  /**
   * Returns the time from which the store has answered calls.
   * Ignores one call in a hundred, which the machine may have delayed.
   */
  answeredSinceMs(fromMs: number): number {
    const store = this.#outcomes.indexOf('store')
    const ended = this.#ended(fromMs, Number.POSITIVE_INFINITY)
    let sinceMs = Number.POSITIVE_INFINITY
    let others = 0
    for (let count = 1; count <= ended.length; count++) {
      const i = ended[ended.length - count]!
      if (this.#outcomeOf[i] !== store) others++
      else if (others * 100 <= count) sinceMs = this.#endMs[i]!
    }
    return sinceMs
  }

  /** Returns the admissions by the store, by key. */
  admissions(): Map<string, Admission[]> {
    const store = this.#outcomes.indexOf('store')
    const byKey = new Map<string, Admission[]>(this.#keys.map((key) => [key, []]))
    for (let i = 0; i < this.#size; i++) {
      if (this.#outcomeOf[i] !== store || this.#isAllowed[i] === 0) continue
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
