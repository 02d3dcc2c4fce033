/** When a store that fails is no longer asked, and when it is asked again. */
export interface BreakerOptions {
  /** The share of requests without an answer, above 0 and up to 1, from which on the store is not asked. Default: 0.5. */
  readonly failureRate?: number
  /** Among at least so many requests, from 1 to 2^20. Default: 5. */
  readonly minRequests?: number
  /**
   * Milliseconds, from 10 to 60,000, between attempts at most. They begin with 100 and double. Whatever it is, attempts
   * are spread at random, so that processes do not all come at once. Default: 500.
   */
  readonly maxPauseMs?: number
}

/** Requests are counted in stretches of this length: the present one and the one before it. */
const STRETCH_MS = 250

const FIRST_PAUSE_MS = 100

type State =
  | { readonly name: 'closed' }
  | { readonly name: 'open'; readonly pauseMs: number; readonly untilMs: number }
  /** One request is on its way to find out. */
  | { readonly name: 'halfOpen'; readonly pauseMs: number; readonly sinceMs: number }

const CLOSED: State = { name: 'closed' }

/** Told when it opens or closes. */
export interface BreakerListener {
  opened(error: unknown): void
  closed(): void
}

/**
 * Stops asking a store that does not answer, and finds out when it does again. After the circuit breaker of M. Nygard,
 * "Release It!".
 */
export class Breaker {
  readonly #failureRate: number
  readonly #minRequests: number
  readonly #maxPauseMs: number
  readonly #listener: BreakerListener
  #state: State = CLOSED
  #outage = 0
  /** When the present stretch began. */
  #sinceMs: number
  #asked = 0
  #failed = 0
  /** The same for the stretch before. */
  #askedBefore = 0
  #failedBefore = 0

  constructor(options: Required<BreakerOptions>, listener: BreakerListener, nowMs: number) {
    this.#failureRate = options.failureRate
    this.#minRequests = options.minRequests
    this.#maxPauseMs = options.maxPauseMs
    this.#listener = listener
    this.#sinceMs = nowMs
  }

  get isClosed(): boolean {
    return this.#state === CLOSED
  }

  /** How often it has opened: an attempt of one outage says nothing of the next. */
  get outage(): number {
    return this.#outage
  }

  /** Whether the store may be asked. Where it is not closed, that is once: whoever was told so has to say what came of it. */
  admits(nowMs: number): boolean {
    const state = this.#state
    if (state.name === 'closed') return true
    // Whoever has time to wait may wait for an answer that was lost.
    const nextMs = state.name === 'open' ? state.untilMs : state.sinceMs + this.#maxPauseMs
    if (nowMs < nextMs) return false
    this.#state = { name: 'halfOpen', pauseMs: state.pauseMs, sinceMs: nowMs }
    return true
  }

  /** Milliseconds until the store may be asked again; 0 where it may, or is being asked. */
  pauseAt(nowMs: number): number {
    return this.#state.name === 'open' ? Math.max(0, Math.ceil(this.#state.untilMs - nowMs)) : 0
  }

  /** @param isAttempt whether it was asked to find out in this outage: what was asked before says nothing of the time since */
  succeeded(nowMs: number, isAttempt: boolean): void {
    if (this.#state === CLOSED) {
      this.#beginStretch(nowMs)
      this.#asked++
    } else if (isAttempt) {
      this.#state = CLOSED
      this.#sinceMs = nowMs
      this.#asked = 0
      this.#failed = 0
      this.#askedBefore = 0
      this.#failedBefore = 0
      this.#listener.closed()
    }
  }

  /** The attempt was answered without asking the store: the next may go. */
  notAsked(nowMs: number): void {
    const state = this.#state
    if (state.name === 'halfOpen') this.#state = { name: 'open', pauseMs: state.pauseMs, untilMs: nowMs }
  }

  failed(nowMs: number, error: unknown, isAttempt: boolean): void {
    const state = this.#state
    if (state.name === 'closed') {
      this.#beginStretch(nowMs)
      this.#asked++
      this.#failed++
      if (!this.#isTooMuch()) return
      this.#outage++
      this.#open(nowMs, FIRST_PAUSE_MS)
      this.#listener.opened(error)
    } else if (isAttempt) {
      this.#open(nowMs, 2 * state.pauseMs)
    }
  }

  /**
   * At answers, too: many that came lately must not look like few in a long time. Where little is asked a stretch
   * lasts until it says something.
   */
  #beginStretch(nowMs: number): void {
    const passedMs = nowMs - this.#sinceMs
    if (passedMs <= STRETCH_MS || this.#asked < this.#minRequests) return
    const share = STRETCH_MS / passedMs
    this.#askedBefore = this.#asked * share
    this.#failedBefore = this.#failed * share
    this.#asked = 0
    this.#failed = 0
    this.#sinceMs = nowMs
  }

  #isTooMuch(): boolean {
    const asked = this.#asked + this.#askedBefore
    return asked >= this.#minRequests && this.#failed + this.#failedBefore >= this.#failureRate * asked
  }

  #open(nowMs: number, pauseMs: number): void {
    const longest = Math.min(pauseMs, this.#maxPauseMs)
    this.#state = { name: 'open', pauseMs: longest, untilMs: nowMs + longest * (0.5 + Math.random() / 2) }
  }
}
