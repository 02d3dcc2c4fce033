// The most frequent keys in bounded memory: Filtered Space-Saving.

import { detached } from '../../../replay/src/text.ts'
import { keyHash } from './keys.ts'

/** How often a word has occurred: between `count - error` and `count` times. */
interface Counted {
  /** The label, `=` and the word. The prefix keeps V8 from using the value of a numeric word as its hash. */
  readonly word: string
  readonly count: number
  readonly error: number
}

/** The counted words in a stream, as plain JSON. Any other word occurred at most `floor` times. */
export interface Summary {
  readonly floor: number
  readonly counted: readonly Counted[]
}

/** The slot of a word without a counter. */
export const NONE = -1

/** Number of filter cells, and of hash table chains, for each counter. */
const CELLS = 16
const CHAINS = 2

/**
 * Counts the most frequent words in a stream, in bounded memory.
 *
 * Filtered Space-Saving by Homem and Carvalho, "Finding top-k elements in data streams" (Information Sciences
 * 180, 2010), based on Metwally, Agrawal and El Abbadi (ICDT 2005). Counters are in a min-heap. A word
 * without a counter is counted in a cell of a filter, which it shares with other words. When the cell reaches
 * the lowest counter, the word takes over that counter. The cell's previous count becomes the word's error,
 * and the counter's count goes to the evicted word's cell. Rare words therefore need cells, but no counters.
 * With m counters, every word that makes up more than 1/m of the stream has a counter, and no count is off by
 * more than 1/m of the stream.
 */
export class SpaceSaving {
  readonly #capacity: number
  readonly #words: string[] = []
  readonly #labels: string[] = []
  /** Indexed by slot. */
  readonly #hashes: Int32Array
  readonly #counts: Uint32Array
  readonly #errors: Uint32Array
  /** The next slot in the same chain. */
  readonly #next: Int32Array
  /** The slots as a heap, and the position of each slot in the heap. */
  readonly #heap: Uint32Array
  readonly #placeOf: Uint32Array
  /** The first slot in each chain. */
  readonly #chains: Int32Array
  /** Indexed by hash: how often a word without a counter may have occurred. */
  readonly #cells: Uint32Array
  readonly #taken: (slot: number) => void

  /**
   * @param capacity a power of two
   * @param taken called when a slot passes to another word
   */
  constructor(capacity: number, taken: (slot: number) => void = () => {}) {
    this.#capacity = capacity
    this.#taken = taken
    this.#hashes = new Int32Array(capacity)
    this.#counts = new Uint32Array(capacity)
    this.#errors = new Uint32Array(capacity)
    this.#next = new Int32Array(capacity)
    this.#heap = new Uint32Array(capacity)
    this.#placeOf = new Uint32Array(capacity)
    this.#chains = new Int32Array(CHAINS * capacity).fill(NONE)
    this.#cells = new Uint32Array(CELLS * capacity)
  }

  /**
   * Counts a word, and returns its slot or {@link NONE}.
   *
   * @param hash the {@link keyHash} of the label and the word
   * @param label distinguishes identical words; must not contain `=`
   */
  add(word: string, hash: number = keyHash(word), label = ''): number {
    let slot = this.#chains[this.#chainOf(hash)]!
    while (slot !== NONE && !this.#isAt(slot, word, hash, label)) slot = this.#next[slot]!
    if (slot === NONE) {
      slot = this.#slotFor(hash)
      if (slot === NONE) return NONE
      this.#words[slot] = detached(word)
      this.#labels[slot] = label
    }
    this.#counts[slot]!++
    this.#sink(this.#placeOf[slot]!)
    return slot
  }

  /** Returns the word in a slot, prefixed with its label and `=`. */
  wordAt(slot: number): string {
    return `${this.#labels[slot]}=${this.#words[slot]}`
  }

  summary(): Summary {
    const isFull = this.#words.length === this.#capacity
    return {
      floor: isFull ? this.#counts[this.#heap[0]!]! : 0,
      counted: this.#words.map((_, slot) => this.#counted(slot)),
    }
  }

  /** Returns a summary of the most frequent words only. A short summary is cheaper to create and to send. */
  greatest(most: number): Summary {
    const size = this.#words.length
    if (size <= most) return this.summary()
    const floor = this.#counts.slice(0, size).sort()[size - most - 1]!
    const counted: Counted[] = []
    for (let slot = 0; slot < size; slot++) if (this.#counts[slot]! > floor) counted.push(this.#counted(slot))
    return { floor, counted }
  }

  #counted(slot: number): Counted {
    return {
      word: this.wordAt(slot),
      count: this.#counts[slot]!,
      error: this.#errors[slot]!,
    }
  }

  #isAt(slot: number, word: string, hash: number, label: string): boolean {
    return this.#hashes[slot] === hash && this.#words[slot] === word && this.#labels[slot] === label
  }

  /** Returns a slot for a new word, or {@link NONE} if the word's cell counts it. */
  #slotFor(hash: number): number {
    let slot = this.#words.length
    if (slot < this.#capacity) {
      // A count of 0 is the lowest, so it belongs at the top of the heap.
      this.#place(slot, slot)
      this.#rise(slot)
    } else {
      const cell = this.#cellOf(hash)
      const before = this.#cells[cell]!
      slot = this.#heap[0]!
      if (before + 1 < this.#counts[slot]!) {
        this.#cells[cell] = before + 1
        return NONE
      }
      this.#forget(slot)
      this.#counts[slot] = before
      this.#errors[slot] = before
    }
    this.#hashes[slot] = hash
    const chain = this.#chainOf(hash)
    this.#next[slot] = this.#chains[chain]!
    this.#chains[chain] = slot
    return slot
  }

  #forget(slot: number): void {
    this.#taken(slot)
    const hash = this.#hashes[slot]!
    this.#cells[this.#cellOf(hash)] = Math.max(this.#cells[this.#cellOf(hash)]!, this.#counts[slot]!)
    const chain = this.#chainOf(hash)
    let at = this.#chains[chain]!
    if (at === slot) {
      this.#chains[chain] = this.#next[slot]!
      return
    }
    while (this.#next[at] !== slot) at = this.#next[at]!
    this.#next[at] = this.#next[slot]!
  }

  #chainOf(hash: number): number {
    return hash & (CHAINS * this.#capacity - 1)
  }

  #cellOf(hash: number): number {
    return hash & (CELLS * this.#capacity - 1)
  }

  #rise(from: number): void {
    const slot = this.#heap[from]!
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      if (this.#counts[this.#heap[above]!]! <= this.#counts[slot]!) break
      this.#place(this.#heap[above]!, place)
      place = above
    }
    this.#place(slot, place)
  }

  #sink(from: number): void {
    const size = this.#words.length
    const slot = this.#heap[from]!
    const count = this.#counts[slot]!
    let place = from
    for (;;) {
      let below = 2 * place + 1
      if (below >= size) break
      const right = below + 1
      if (right < size && this.#counts[this.#heap[right]!]! < this.#counts[this.#heap[below]!]!) below = right
      if (this.#counts[this.#heap[below]!]! >= count) break
      this.#place(this.#heap[below]!, place)
      place = below
    }
    this.#place(slot, place)
  }

  #place(slot: number, place: number): void {
    this.#heap[place] = slot
    this.#placeOf[slot] = place
  }
}

/**
 * Merges summaries of several streams, such as those from different times or processes.
 *
 * A word's bounds are added up. In a summary without the word, the upper bound is `floor` (Agarwal et al., "Mergeable
 * Summaries", PODS 2012). Sorts by the lower bound, highest first.
 */
export function merged(summaries: readonly Summary[]): readonly Counted[] {
  const floors = summaries.reduce((sum, { floor }) => sum + floor, 0)
  const sums = new Map<string, { count: number; error: number }>()
  for (const { floor, counted } of summaries) {
    for (const { word, count, error } of counted) {
      const sum = sums.get(word)
      if (sum === undefined) sums.set(word, { count: floors - floor + count, error: floors - floor + error })
      else {
        sum.count += count - floor
        sum.error += error - floor
      }
    }
  }
  const certain = ({ count, error }: { count: number; error: number }) => count - error
  return Array.from(sums, ([word, sum]) => ({ word, ...sum })).sort(
    (a, b) => certain(b) - certain(a) || b.count - a.count || (a.word < b.word ? -1 : 1),
  )
}
