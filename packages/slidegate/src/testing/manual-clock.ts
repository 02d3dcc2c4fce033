import type { Clock } from '../runtime/clock.ts'

/** A clock that stands still until it is moved: `memoryStore({ clock: clock.now })`. */
export class ManualClock {
  #nowMs: number

  /** Starts at an epoch time in milliseconds. */
  constructor(startMs = 1_700_000_000_000) {
    this.#nowMs = startMs
  }

  readonly now: Clock = () => this.#nowMs

  /** Moves it forward, or with a negative number back. */
  advance(ms: number): void {
    this.#nowMs += ms
  }

  /** Sets it to an epoch time in milliseconds, which may lie before the one it shows. */
  set(nowMs: number): void {
    this.#nowMs = nowMs
  }
}
