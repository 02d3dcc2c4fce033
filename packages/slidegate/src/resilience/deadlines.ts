// Deadlines for calls: one timer for all calls with the same timeout.

import { asyncOrigin, backgroundTimer, endOfTick, nextTurn, type Timer } from '../runtime/platform.ts'

export interface Due {
  readonly isSettled: boolean
  readonly dueAtMs: number
  giveUp(): void
}

/** If a timer fires this late, the event loop was blocked. */
const LATE_MS = 10

/** Extra time for replies after the event loop was blocked. */
const GRACE_MS = 5

const MIN_SWEEP = 4096

/** Maximum number of calls that time out in one turn of the event loop. */
const MAX_PER_TURN = 1024

/** Watches calls with the same timeout. They come due in order, so one timer for the oldest is enough. */
export class Deadlines {
  readonly #calls: (Due | undefined)[] = []
  #oldest = 0
  #end = 0
  #sweepAt = MIN_SWEEP
  #timer: Timer | undefined
  #tickAtMs: number | undefined
  readonly #origin = asyncOrigin('slidegate.deadline')
  readonly #endTick = (): void => {
    this.#tickAtMs = undefined
  }

  /** The current time. Reads the clock once per tick. */
  now(): number {
    if (this.#tickAtMs === undefined) {
      this.#tickAtMs = performance.now()
      endOfTick(this.#endTick)
    }
    return this.#tickAtMs
  }

  watch(call: Due): void {
    this.#forgetSettled()
    this.#calls[this.#end++] = call
    if (this.#timer === undefined) this.#start(call.dueAtMs - this.now())
  }

  close(): void {
    this.#forgetSettled()
    if (this.#oldest === this.#end) clearTimeout(this.#timer)
  }

  #start(ms: number, onTimer = (): void => this.#onTimer()): void {
    // Rounding may put the delay above the maximum for a timer. Such a timer would fire immediately.
    const delayMs = Math.min(Math.ceil(ms), 2 ** 31 - 1)
    this.#timer = this.#origin.runInAsyncScope(() => backgroundTimer(onTimer, delayMs))
  }

  #onTimer(): void {
    // First lets the event loop read from sockets. If it was blocked, a reply may be waiting there.
    const giveUp = () => nextTurn(() => this.#giveUpDue(performance.now()))
    const oldest = this.#calls[this.#oldest]
    if (oldest !== undefined && performance.now() - oldest.dueAtMs > LATE_MS) this.#start(GRACE_MS, giveUp)
    else giveUp()
  }

  #giveUpDue(nowMs: number): void {
    const end = Math.min(this.#end, this.#oldest + MAX_PER_TURN)
    for (let i = this.#oldest; i < end; i++) {
      const call = this.#calls[i]
      // A caller that has timed out may retry immediately, which removes settled calls from the list.
      if (call === undefined || call.isSettled) continue
      if (call.dueAtMs > nowMs) break
      call.giveUp()
    }
    this.#forgetSettled()
    const next = this.#calls[this.#oldest]
    if (next === undefined) this.#timer = undefined
    else if (next.dueAtMs <= nowMs) nextTurn(() => this.#giveUpDue(nowMs))
    else this.#start(next.dueAtMs - nowMs)
  }

  #forgetSettled(): void {
    while (this.#oldest < this.#end && this.#calls[this.#oldest]!.isSettled) {
      this.#calls[this.#oldest++] = undefined
    }
    if (this.#end < this.#sweepAt) return
    // A pending call keeps the settled calls behind it in the array. Removes them in place, because a new array would
    // create garbage.
    let kept = 0
    for (let i = this.#oldest; i < this.#end; i++) {
      const call = this.#calls[i]!
      if (!call.isSettled) this.#calls[kept++] = call
    }
    this.#calls.fill(undefined, kept, this.#end)
    this.#oldest = 0
    this.#end = kept
    this.#sweepAt = Math.max(MIN_SWEEP, 2 * kept)
    if (this.#calls.length > this.#sweepAt) this.#calls.length = this.#sweepAt
  }
}
