import { Slab } from '../runtime/slab.ts'
import type { Logs } from './limit.ts'

const NO_NUMBERS = new Float64Array(0)

/** A log that is a few numbers: where they stand. A kind that keeps such logs gives them names. */
export class Row {
  numbers: Float64Array = NO_NUMBERS
  at = 0
}

/** A view of a log of its own. */
export function rowOf<View extends Row>(view: View, numbers: readonly number[]): View {
  view.numbers = new Float64Array(numbers)
  return view
}

/** Logs that are a few numbers each: rows of a slab, all of them shown through one view. An empty one is all 0. */
export class RowLogs<View extends Row> implements Logs<View> {
  readonly #rows: Slab
  readonly #view: View

  /** `width` is how many numbers. */
  constructor(width: number, view: View) {
    this.#rows = new Slab(width)
    this.#view = view
    // Number 0, in which all is 0.
    this.#rows.create()
  }

  get bytes(): number {
    return this.#rows.bytes
  }

  create(): number {
    const log = this.#rows.create()
    const { numbers, at } = this.at(log)
    numbers.fill(0, at, at + this.#rows.width)
    return log
  }

  at(log: number): View {
    const view = this.#view
    const rows = this.#rows
    view.numbers = rows.doubles[log >>> rows.shift]!
    view.at = (log & rows.mask) * rows.width
    return view
  }

  copy(log: number): number {
    const copied = this.create()
    const from = this.at(log)
    const original = from.numbers.slice(from.at, from.at + this.#rows.width)
    const { numbers, at } = this.at(copied)
    numbers.set(original, at)
    return copied
  }

  delete(log: number): void {
    this.#rows.delete(log)
  }
}
