// A timer that never fires early.
import { type AsyncOrigin, cancelTurn, nextTurn, type Timer, type Turn } from '../../runtime/platform.ts'

const MAX_TIMER_MS = 2 ** 31 - 1

/** Timers have a resolution of 1 ms. During the last millisecond, each turn of the event loop checks the time. */
const MAX_SPIN_MS = 1

/** Fires at a given time or just after it. Keeps the process alive, because requests are waiting for it. */
export class Alarm {
  readonly #origin: AsyncOrigin
  readonly #onTime: () => void
  #timer: Timer | undefined
  #spin: Turn | undefined
  #atMs = Number.POSITIVE_INFINITY

  constructor(origin: AsyncOrigin, onTime: () => void) {
    this.#origin = origin
    this.#onTime = onTime
  }

  set(atMs: number): void {
    if (atMs === this.#atMs) return
    this.clear()
    this.#atMs = atMs
    this.#origin.runInAsyncScope(() => this.#start(atMs - performance.now()))
  }

  clear(): void {
    clearTimeout(this.#timer)
    cancelTurn(this.#spin)
    this.#atMs = Number.POSITIVE_INFINITY
  }

  #start(leftMs: number): void {
    const check = () => this.#check()
    if (leftMs <= MAX_SPIN_MS) this.#spin = nextTurn(check)
    else this.#timer = setTimeout(check, Math.min(Math.floor(leftMs), MAX_TIMER_MS))
  }

  #check(): void {
    const leftMs = this.#atMs - performance.now()
    if (leftMs > 0) {
      this.#start(leftMs)
      return
    }
    this.clear()
    this.#onTime()
  }
}
