import type { Logs } from './limit.ts'

/** Logs that are objects, for kinds of which few keys have one. */
export class ObjectLogs<State extends object> implements Logs<State> {
  readonly #make: () => State
  readonly #copy: (state: State) => State
  readonly #states: State[]
  readonly #free: number[] = []

  /** @param copy makes another of the same content */
  constructor(make: () => State, copy: (state: State) => State) {
    this.#make = make
    this.#copy = copy
    this.#states = [make()]
  }

  create(): number {
    return this.#add(this.#make())
  }

  at(log: number): State {
    return this.#states[log]!
  }

  copy(log: number): number {
    return this.#add(this.#copy(this.at(log)))
  }

  delete(log: number): void {
    // Lets go of what it held.
    this.#states[log] = this.#states[0]!
    this.#free.push(log)
  }

  #add(state: State): number {
    const log = this.#free.pop() ?? this.#states.length
    this.#states[log] = state
    return log
  }
}
