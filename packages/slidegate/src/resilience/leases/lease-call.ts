import type { Clock } from '../../runtime/clock.ts'
import type { Call, ConsumeOp, Outcome } from '../../stores/store.ts'

/** An answer that takes longer is not waited for. What it grants leaves the window in time. */
const GIVE_UP_MS = 500

/** Who is told of a lease. */
export interface Taker {
  answer(asked: LeaseCall, outcomes: readonly Outcome[], position: number): void
  fail(asked: LeaseCall, error: unknown): void
}

/** A lease that was asked for. When those who asked have given up, it is still waited for a while, to be returned. */
export class LeaseCall implements Call {
  readonly op: ConsumeOp
  /** Those for whom it was asked, the first to ask first. */
  readonly calls: readonly Call[]
  readonly sentAtMs: number
  /** Whether it was asked for again, after a denial. */
  readonly isSecond: boolean
  readonly #taker: Taker
  readonly #clock: Clock
  #isDone = false

  constructor(taker: Taker, op: ConsumeOp, calls: readonly Call[], clock: Clock, isSecond: boolean) {
    this.op = op
    this.calls = calls
    this.sentAtMs = clock()
    this.isSecond = isSecond
    this.#taker = taker
    this.#clock = clock
  }

  /** Whether nobody for whom it was asked waits for it any more. */
  get isGivenUp(): boolean {
    return !this.#isDone && this.calls.every(({ isSettled }) => isSettled)
  }

  get isSettled(): boolean {
    return this.#isDone || (this.isGivenUp && this.#clock() - this.sentAtMs > GIVE_UP_MS)
  }

  resolve(outcomes: readonly Outcome[], position: number): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#taker.answer(this, outcomes, position)
  }

  reject(error: unknown): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#taker.fail(this, error)
  }
}

/** Units on their way back. Where they get lost, they leave the window in time. */
export class ReturnCall implements Call {
  readonly #whenDone: () => void
  readonly #clock: Clock
  readonly #sentAtMs: number
  #isDone = false

  constructor(whenDone: () => void, clock: Clock) {
    this.#whenDone = whenDone
    this.#clock = clock
    this.#sentAtMs = clock()
  }

  get isSettled(): boolean {
    return this.#isDone || this.#clock() - this.#sentAtMs > GIVE_UP_MS
  }

  resolve(): void {
    this.#isDone = true
    this.#whenDone()
  }

  reject(): void {
    this.resolve()
  }
}
