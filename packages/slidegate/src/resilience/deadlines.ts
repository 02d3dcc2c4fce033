import { asyncOrigin, backgroundTimer, endOfTick, nextTurn, type Timer } from '../runtime/platform.ts'

/** One who has to be told when his time is up. */
export interface Due {
  readonly isSettled: boolean
  /** When, by `performance.now()`. */
  readonly dueAtMs: number
  giveUp(): void
}

/** A timer that comes so much too late has found the event loop blocked: perhaps since before the call was sent. */
const LATE_MS = 10

/** So long is waited then for a reply. */
const GRACE_MS = 5

const MIN_SWEEP = 4096

/** Calls that are given up in one turn of the event loop, which others wait for. */
const MAX_AT_ONCE = 1024

/**
 * Watches calls that all have the same time, so that they are due in the order in which they come.
 *
 * One timer watches the oldest. It belongs to the limiter, never to a request, whose async context it would keep; and it
 * does not keep the process alive.
 */
export class Deadlines {
  readonly #calls: (Due | undefined)[] = []
  /** What is before it is done. */
  #oldest = 0
  /** Where the next one goes. */
  #end = 0
  /** Where those that are settled are taken out. */
  #sweepAt = MIN_SWEEP
  #timer: Timer | undefined
  #tickAtMs: number | undefined
  readonly #origin = asyncOrigin('slidegate.deadline')
  readonly #endTick = (): void => {
    this.#tickAtMs = undefined
  }

  /** The time, read once for all that is called in the same tick. */
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
    if (this.#timer === undefined) this.#wake(call.dueAtMs - this.now())
  }

  /** Calls that still wait keep their deadline. */
  close(): void {
    this.#forgetSettled()
    if (this.#oldest === this.#end) clearTimeout(this.#timer)
  }

  #wake(ms: number): void {
    // A sum may have been rounded up, and a timer ends at once where it is for longer than this.
    const delayMs = Math.min(Math.ceil(ms), 2 ** 31 - 1)
    this.#start(() => this.#onTimer(), delayMs)
  }

  #start(onTimer: () => void, ms: number): void {
    this.#timer = this.#origin.runInAsyncScope(() => backgroundTimer(onTimer, ms))
  }

  #onTimer(): void {
    // One poll phase first: where the event loop was blocked, the reply may already be in the socket.
    const giveUp = () => nextTurn(() => this.#giveUpDue(performance.now()))
    const oldest = this.#calls[this.#oldest]
    if (oldest !== undefined && performance.now() - oldest.dueAtMs > LATE_MS) this.#start(giveUp, GRACE_MS)
    else giveUp()
  }

  #giveUpDue(nowMs: number): void {
    const end = Math.min(this.#end, this.#oldest + MAX_AT_ONCE)
    for (let i = this.#oldest; i < end; i++) {
      const call = this.#calls[i]
      // Whoever is given up may ask again at once, which takes out what is settled.
      if (call === undefined || call.isSettled) continue
      if (call.dueAtMs > nowMs) break
      call.giveUp()
    }
    this.#forgetSettled()
    const next = this.#calls[this.#oldest]
    if (next === undefined) this.#timer = undefined
    else if (next.dueAtMs <= nowMs) nextTurn(() => this.#giveUpDue(nowMs))
    else this.#wake(next.dueAtMs - nowMs)
  }

  #forgetSettled(): void {
    while (this.#oldest < this.#end && this.#calls[this.#oldest]!.isSettled) {
      this.#calls[this.#oldest++] = undefined
    }
    if (this.#end < this.#sweepAt) return
    // Behind one that waits for long, most have been answered. The list itself stays: a new one would be garbage soon.
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
