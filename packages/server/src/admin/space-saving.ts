/** How often a word came: `count` at most, and `count - error` at least. */
export interface Counted {
  readonly word: string
  readonly count: number
  readonly error: number
}

/** What is kept of a stream, as plain JSON. A word that is not in it came `floor` times at most. */
export interface Summary {
  readonly floor: number
  readonly counted: readonly Counted[]
}

/**
 * The most frequent words of a stream, in bounded memory: Space-Saving, of Metwally, Agrawal and El Abbadi, "Efficient
 * Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005. With m counters, every word that makes up more
 * than 1/m of the stream is among them, and none is off by more than that. Counters are in a heap, the least on top: that
 * one is given to a word that has none, and so its count is the newcomer's error.
 */
export class SpaceSaving {
  readonly #capacity: number
  readonly #slotOf = new Map<string, number>()
  readonly #words: string[] = []
  /** By slot. */
  readonly #counts: Float64Array
  readonly #errors: Float64Array
  /** Slots as a heap, and where in it each is. */
  readonly #heap: Uint32Array
  readonly #placeOf: Uint32Array

  constructor(capacity: number) {
    this.#capacity = capacity
    this.#counts = new Float64Array(capacity)
    this.#errors = new Float64Array(capacity)
    this.#heap = new Uint32Array(capacity)
    this.#placeOf = new Uint32Array(capacity)
  }

  add(word: string): void {
    const slot = this.#slotOf.get(word) ?? this.#slotFor(word)
    this.#counts[slot]!++
    this.#sink(this.#placeOf[slot]!)
  }

  summary(): Summary {
    const isFull = this.#words.length === this.#capacity
    return {
      floor: isFull ? this.#counts[this.#heap[0]!]! : 0,
      counted: this.#words.map((word, slot) => ({
        word,
        count: this.#counts[slot]!,
        error: this.#errors[slot]!,
      })),
    }
  }

  #slotFor(word: string): number {
    let slot = this.#words.length
    if (slot === this.#capacity) {
      slot = this.#heap[0]!
      this.#slotOf.delete(this.#words[slot]!)
      this.#errors[slot] = this.#counts[slot]!
    } else {
      // It begins with nothing, less than all others have: on top.
      this.#place(slot, slot)
      this.#rise(slot)
    }
    this.#words[slot] = word
    this.#slotOf.set(word, slot)
    return slot
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
 * Several streams as one: of other times or other processes. Bounds add up, and where a word is not counted the floor is
 * what it may have come there (Agarwal et al., "Mergeable Summaries", PODS 2012). First those that have certainly come most.
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
