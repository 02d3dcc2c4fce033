import { AsyncResource } from 'node:async_hooks'

/** One who has to be told when his time is up. */
export interface Due {
  readonly isSettled: boolean
  /** When, by `performance.now()`. */
  readonly dueAtMs: number
  giveUp(): void
}

/**
 * Watches calls that all have the same time, so that they are due in the order in which they come.
 *
 * One timer watches the oldest. It belongs to the limiter, never to a request, whose async context it would keep; and it
 * does not keep the process alive.
 */
export class Deadlines {
  #calls: (Due | undefined)[] = []
  /** What is before it is done. */
  #oldest = 0
  #timer: NodeJS.Timeout | undefined
  #tickAtMs: number | undefined
  readonly #origin = new AsyncResource('slidegate.deadline')

  /** The time, read once for all that is called in the same tick. */
  now(): number {
    if (this.#tickAtMs === undefined) {
      this.#tickAtMs = performance.now()
      queueMicrotask(() => {
        this.#tickAtMs = undefined
      })
    }
    return this.#tickAtMs
  }

  watch(call: Due): void {
    this.#forgetSettled()
    this.#calls.push(call)
    if (this.#timer === undefined) this.#wake(call.dueAtMs - this.now())
  }

  /** Calls that still wait keep their deadline. */
  close(): void {
    this.#forgetSettled()
    if (this.#oldest === this.#calls.length) clearTimeout(this.#timer)
  }

  #wake(ms: number): void {
    // One poll phase first: where the event loop was blocked, the reply may already be in the socket.
    const onTimer = () => setImmediate(() => this.#giveUpDue(performance.now()))
    this.#timer = this.#origin.runInAsyncScope(() => setTimeout(onTimer, Math.ceil(ms)).unref())
  }

  #giveUpDue(nowMs: number): void {
    for (let i = this.#oldest; i < this.#calls.length && this.#calls[i]!.dueAtMs <= nowMs; i++) {
      const call = this.#calls[i]!
      if (!call.isSettled) call.giveUp()
    }
    this.#forgetSettled()
    this.#timer = undefined
    if (this.#oldest < this.#calls.length) this.#wake(this.#calls[this.#oldest]!.dueAtMs - nowMs)
  }

  #forgetSettled(): void {
    while (this.#oldest < this.#calls.length && this.#calls[this.#oldest]!.isSettled) {
      this.#calls[this.#oldest++] = undefined
    }
    if (this.#oldest > 1024 && this.#oldest > this.#calls.length / 2) {
      this.#calls = this.#calls.slice(this.#oldest)
      this.#oldest = 0
    }
  }
}
