import type { Logs } from './limit.ts'

/** Logs that are objects, for kinds of which few keys have one. */
export class ObjectLogs<State extends object> implements Logs<State> {
  readonly #make: () => State
  readonly #copy: (state: State) => State
  readonly #bytesOf: (state: State) => number
  readonly #states: State[]
  readonly #free: number[] = []
  #bytes = 0
  /** The last one that was returned: it may have grown since. */
  #shown: State
  #shownBytes: number

  /**
   * @param copy makes another of the same content
   * @param bytesOf roughly how many bytes it holds
   */
  constructor(make: () => State, copy: (state: State) => State, bytesOf: (state: State) => number) {
    this.#make = make
    this.#copy = copy
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
    return this.#add(this.#copy(this.at(log)))
  }

  delete(log: number): void {
    const state = this.at(log)
    this.#show(this.#states[0]!)
    this.#bytes -= this.#bytesOf(state)
    // Lets go of what it held.
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
