// Rows of numbers outside the heap.

/** Rows of a full chunk: 2^14, unless they are so wide that fewer do. */
const CHUNK_SHIFT = 14

/** Rows that the first chunk begins with. */
const FIRST_ROWS = 64

const NO_DOUBLES = new Float64Array(0)
const NO_INTS = new Int32Array(0)

const NONE = -1

/**
 * Rows of numbers, each known by its own number: 0, 1, 2 and so on. They lie next to each other and outside the heap: no
 * garbage collection looks at them, and a row is one line of the processor's cache or two.
 *
 * Rows come in chunks, so that what grows is never copied as a whole; a chunk of which no row is in use is let
 * go of. A row reads and writes as `doubles[row >>> shift]`, from `(row & mask) * width` on; `ints` is the same
 * memory as integers of 32 bits, from twice there on.
 */
export class Slab {
  readonly width: number
  readonly shift: number
  readonly mask: number
  readonly doubles: Float64Array[] = []
  readonly ints: Int32Array[] = []
  /** Rows in use. */
  rows = 0
  /** Per chunk: rows in use, rows that ever were, and the first of those that are free again. */
  readonly #live: number[] = []
  readonly #begun: number[] = []
  readonly #free: number[] = []
  /** Chunks with room. The last one gives the new rows, so that others can run empty. */
  readonly #open: number[] = []

  /** `width` is in doubles. */
  constructor(width: number, shift: number = CHUNK_SHIFT) {
    this.width = width
    this.shift = shift
    this.mask = 2 ** shift - 1
  }

  /** Bytes in use. */
  get bytes(): number {
    return 8 * this.width * this.rows
  }

  /** A row that nobody else has. It holds zeros, or what was there before. */
  create(): number {
    this.rows++
    if (this.#open.length === 0) this.#open.push(this.#live.length)
    const chunk = this.#open[this.#open.length - 1]!
    if (chunk === this.#live.length || this.doubles[chunk]!.length === 0) this.#begin(chunk)
    let row = this.#free[chunk]!
    if (row !== NONE) {
      this.#free[chunk] = this.ints[chunk]![2 * (row & this.mask) * this.width]!
    } else {
      const place = this.#begun[chunk]!++
      if (place * this.width === this.doubles[chunk]!.length) this.#enlarge(chunk)
      row = chunk * (this.mask + 1) + place
    }
    if (++this.#live[chunk]! > this.mask) this.#open.pop()
    return row
  }

  delete(row: number): void {
    this.rows--
    const chunk = row >>> this.shift
    if (this.#live[chunk]!-- > this.mask) this.#open.unshift(chunk)
    // The one that gives the new rows is kept: a single row may come and go.
    if (this.#live[chunk] === 0 && chunk !== this.#open[this.#open.length - 1]) {
      this.doubles[chunk] = NO_DOUBLES
      this.ints[chunk] = NO_INTS
      return
    }
    this.ints[chunk]![2 * (row & this.mask) * this.width] = this.#free[chunk]!
    this.#free[chunk] = row
  }

  #begin(chunk: number): void {
    this.#live[chunk] = 0
    this.#begun[chunk] = 0
    this.#free[chunk] = NONE
    this.#use(
      chunk,
      new Float64Array(this.width * (chunk === 0 ? Math.min(FIRST_ROWS, this.mask + 1) : this.mask + 1)),
    )
  }

  #enlarge(chunk: number): void {
    const doubles = new Float64Array(2 * this.doubles[chunk]!.length)
    doubles.set(this.doubles[chunk]!)
    this.#use(chunk, doubles)
  }

  #use(chunk: number, doubles: Float64Array): void {
    this.doubles[chunk] = doubles
    this.ints[chunk] = new Int32Array(doubles.buffer)
  }
}
