/** A process that shares a key with others asks up to this long after the time that the store has named. */
const MAX_DELAY_MS = 20

/** Admissions without a loss, after which a process assumes that no other process waits. */
const ALONE_AFTER = 8

/**
 * How much later than the store has said a queue asks, so that other processes get their turn.
 *
 * The store names the same time to all of them. If all asked then, the nearest would always be first. So each adds a random
 * delay, and the delay halves each time that another was faster: the longer a process goes without room, the earlier it asks.
 * A process that waits alone never loses, and adds nothing.
 */
export class Contention {
  /** In a row, since the last admission. */
  #losses = 0
  /** Admissions until the process assumes that it waits alone. */
  #left = 0

  /** There was no room at the time that the store had named: another process has taken it. */
  lost(): void {
    this.#losses++
    this.#left = ALONE_AFTER
  }

  admitted(): void {
    this.#losses = 0
    if (this.#left > 0) this.#left--
  }

  /** A delay for the next question, drawn anew each time. */
  delayMs(): number {
    return this.#left === 0 ? 0 : (MAX_DELAY_MS * Math.random()) / 2 ** this.#losses
  }
}
