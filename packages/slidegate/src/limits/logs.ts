// Logs in the memory store. A log of a few numbers is stored in a row of a table, any other log as an object.

import { Slab } from '../runtime/slab.ts'
import type { Logs } from './limit.ts'

class Row {
  numbers: Float64Array = new Float64Array(0)
  at = 0
}

/** Logs of a few numbers each. They share one object, whose properties are the numbers of one log at a time. */
export class RowLogs<State extends object> implements Logs<State> {
  readonly #rows: Slab
  readonly #view: Row & State

  constructor(...names: readonly (keyof State & string)[]) {
    this.#rows = new Slab(names.length)
    class View extends Row {}
    names.forEach((name, i) => {
      Object.defineProperty(View.prototype, name, {
        get(this: Row) {
          return this.numbers[this.at + i]
        },
        set(this: Row, number: number) {
          this.numbers[this.at + i] = number
        },
      })
    })
    this.#view = new View() as Row & State
    // Log 0 must stay empty.
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

  at(log: number): Row & State {
    const view = this.#view
    const rows = this.#rows
    view.numbers = rows.doubles[log >>> rows.shift]!
    view.at = (log & rows.mask) * rows.width
    return view
  }

  copy(log: number): number {
    const copied = this.create()
    const { numbers, at } = this.at(log)
    const row = numbers.slice(at, at + this.#rows.width)
    const to = this.at(copied)
    to.numbers.set(row, to.at)
    return copied
  }

  delete(log: number): void {
    this.#rows.delete(log)
  }
}

export class ObjectLogs<State extends object> implements Logs<State> {
  readonly #make: () => State
  readonly #bytesOf: (state: State) => number
  readonly #states: State[]
  readonly #free: number[] = []
  #bytes = 0
  /** The log that `at` returned last. The caller may have made it larger since. */
  #shown: State
  #shownBytes: number

  constructor(make: () => State, bytesOf: (state: State) => number) {
    this.#make = make
    this.#bytesOf = bytesOf
    this.#shown = make()
    this.#shownBytes = bytesOf(this.#shown)
    this.#states = [this.#shown]
  }

  get bytes(): number {
    this.#show(this.#shown)
    return this.#bytes
  }

  create(): number {
    return this.#add(this.#make())
  }

  at(log: number): State {
    const state = this.#states[log]!
    this.#show(state)
    return state
  }

  copy(log: number): number {
    return this.#add(structuredClone(this.at(log)))
  }

  delete(log: number): void {
    const state = this.at(log)
    this.#show(this.#states[0]!)
    this.#bytes -= this.#bytesOf(state)
    // Lets the garbage collector free the content.
    this.#states[log] = this.#states[0]!
    this.#free.push(log)
  }

  #add(state: State): number {
    const log = this.#free.pop() ?? this.#states.length
    this.#states[log] = state
    this.#bytes += this.#bytesOf(state)
    return log
  }

  #show(state: State): void {
    this.#bytes += this.#bytesOf(this.#shown) - this.#shownBytes
    this.#shown = state
    this.#shownBytes = this.#bytesOf(state)
  }
}
