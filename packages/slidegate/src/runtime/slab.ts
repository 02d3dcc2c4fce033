// Rows of numbers outside the JavaScript heap.

/** The base-2 logarithm of the number of rows in a full chunk. Slabs with wide rows use smaller chunks. */
const CHUNK_SHIFT = 14

/** Initial number of rows in the first chunk. */
const FIRST_ROWS = 64

const NO_DOUBLES = new Float64Array(0)
const NO_INTS = new Int32Array(0)

const NONE = -1

/**
 * Rows of numbers. Each row has an index: 0, 1, 2 and so on.
 *
 * Rows are adjacent and outside the heap: the garbage collector doesn't scan them, and a row takes one or two cache
 * lines. Rows are allocated in chunks, so growing never copies everything. A chunk without rows in use is released.
 *
 * A row's numbers are in `doubles[row >>> shift]`, starting at `(row & mask) * width`. `ints` is the same memory as 32-bit
 * integers, starting at twice that index.
 */
export class Slab {
  readonly width: number
  readonly shift: number
  readonly mask: number
  readonly doubles: Float64Array[] = []
  readonly ints: Int32Array[] = []
  rows = 0
  /** Per chunk: rows in use, rows ever used, and the first free row. */
  readonly #live: number[] = []
  readonly #begun: number[] = []
  readonly #free: number[] = []
  /** Chunks with free rows. The last one in the list supplies new rows, so that the other chunks can become empty. */
  readonly #open: number[] = []

  /** @param width how many doubles a row has */
  constructor(width: number, shift: number = CHUNK_SHIFT) {
    this.width = width
    this.shift = shift
    this.mask = 2 ** shift - 1
  }

  get bytes(): number {
    return 8 * this.width * this.rows
  }

  /** Returns an unused row, which contains zeros or old data. */
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
    // Keeps the chunk that supplies new rows, in case a single row is created and deleted repeatedly.
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
