import type { CallerRequest } from './caller-request.ts'
import type { Policy } from './scenario.ts'
import type { World } from './world.ts'

/** The breaker's first pause. The shortest is half of it. */
const FIRST_PAUSE_MS = 100

/** Checks a limiter's events about its store. */
export class StoreWatch {
  readonly #world: World
  readonly #name: string
  readonly #policy: Policy
  #isDown = false
  /** Requests that probe whether the store is back, and the latest of them. */
  readonly #probes = new Set<CallerRequest>()
  #probe: CallerRequest | undefined
  #probedAtMs = 0
  #failedAtMs = 0
  #answered: CallerRequest | undefined

  constructor(world: World, name: string, policy: Policy) {
    this.#world = world
    this.#name = name
    this.#policy = policy
  }

  wentDown(): void {
    this.#world.trace(() => `${this.#name}: the store is down`)
    this.#world.count('store down')
    this.#world.expect(!this.#isDown, () => `${this.#name}: down again without being up`)
    this.#isDown = true
    this.#failedAtMs = this.#world.loop.nowMs
    this.#probe = undefined
    this.#probes.clear()
  }

  cameUp(): void {
    this.#world.trace(() => `${this.#name}: the store is up`)
    this.#world.expect(this.#isDown, () => `${this.#name}: up without being down`)
    this.#isDown = false
    const isProbe = this.#answered !== undefined && this.#probes.has(this.#answered)
    this.#world.expect(
      isProbe || this.#world.servers.length > 1,
      () => `${this.#name}: up after the answer to #${this.#answered?.number}, which was sent before`,
    )
  }

  clockStep(byMs: number): void {
    this.#world.count('observed clock steps')
    const mostMs = Math.max(...this.#world.servers.map(({ steppedMs }) => steppedMs))
    this.#world.expect(
      mostMs > 0 && Math.abs(byMs) <= mostMs + 1000,
      () => `${this.#name}: reported a clock step of ${byMs} ms, but the largest was ${mostMs} ms`,
    )
  }

  /**
   * Checks that a store that is down receives one probe at a time. No probe may be sent before its pause is over.
   * Another probe may be sent if an answer takes longer than the longest pause. Each server has its own breaker.
   */
  asks(request: CallerRequest): void {
    const { loop, servers } = this.#world
    if (!this.#isDown || servers.length > 1) return
    this.#world.count('probes')
    const { maxBackoffMs } = this.#policy.breaker
    const leastMs = Math.min(FIRST_PAUSE_MS, maxBackoffMs) / 2
    const isPauseOver = loop.nowMs - this.#failedAtMs >= leastMs - 0.001
    const isTurnOver = loop.nowMs - this.#probedAtMs >= maxBackoffMs - 0.001
    const isUnanswered = this.#probe !== undefined && this.#failedAtMs < this.#probedAtMs
    this.#world.expect(
      isUnanswered ? isTurnOver : isPauseOver,
      () =>
        `${this.#name} #${request.number} calls a store that is ${isUnanswered ? 'being probed' : 'down'}`,
    )
    this.#probes.add(request)
    this.#probe = request
    this.#probedAtMs = loop.nowMs - loop.stalledHereMs
  }

  /** Runs while an answer is passed to the limiter. */
  answers(request: CallerRequest, answer: () => void): void {
    this.#answered = request
    answer()
    this.#answered = undefined
  }

  settled(request: CallerRequest): void {
    if (!this.#probes.has(request)) return
    if (this.#probe === request) this.#probe = undefined
    // The first probe that fails after the last one was sent starts a pause.
    if (this.#isDown && this.#failedAtMs < this.#probedAtMs) this.#failedAtMs = this.#world.loop.nowMs
  }

  /**
   * Handles a probe that was answered without the store. This shows nothing about the store, so the next probe may be
   * sent immediately.
   */
  withdraws(request: CallerRequest): void {
    if (!this.#probes.delete(request)) return
    this.#world.count('probes answered without the store')
    if (this.#probe !== request) return
    this.#probe = undefined
    this.#failedAtMs = Number.NEGATIVE_INFINITY
  }
}
