import type { Outcome } from './store.ts'

/**
 * One who waits for a store's outcomes. Whoever is first settles it: the store, or a deadline. After that
 * nobody waits any more: what has not been sent by then need not be, and what comes later is dropped.
 */
export class Call {
  isSettled = false
  readonly outcomes: Promise<readonly Outcome[]>
  #resolve!: (outcomes: readonly Outcome[]) => void
  #reject!: (error: unknown) => void

  constructor() {
    this.outcomes = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  resolve(outcomes: readonly Outcome[]): void {
    this.isSettled = true
    this.#resolve(outcomes)
  }

  reject(error: unknown): void {
    this.isSettled = true
    this.#reject(error)
  }
}
