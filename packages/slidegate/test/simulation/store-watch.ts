import type { Asked } from './asked.ts'
import type { Policy } from './scenario.ts'
import type { World } from './world.ts'

/** Of a breaker's pauses the first and its least part. */
const FIRST_PAUSE_MS = 100

/** What a limiter tells of its store, and whether it does as it says. */
export class StoreWatch {
  readonly #world: World
  readonly #name: string
  readonly #policy: Policy
  #isDown = false
  /** What was asked to find out whether the store answers again, and the last of it. */
  readonly #probes = new Set<Asked>()
  #probe: Asked | undefined
  #probedAtMs = 0
  #failedAtMs = 0
  #answered: Asked | undefined

  constructor(world: World, name: string, policy: Policy) {
    this.#world = world
    this.#name = name
    this.#policy = policy
  }

  wentDown(): void {
    this.#world.trace(() => `${this.#name}: the store is down`)
    this.#world.count('store down')
    this.#world.expect(!this.#isDown, () => `${this.#name}: down again, and never up`)
    this.#isDown = true
    this.#failedAtMs = this.#world.loop.nowMs
    this.#probe = undefined
    this.#probes.clear()
  }

  cameUp(): void {
    this.#world.trace(() => `${this.#name}: the store is up`)
    this.#world.expect(this.#isDown, () => `${this.#name}: up, and it was not down`)
    this.#isDown = false
    const isProbe = this.#answered !== undefined && this.#probes.has(this.#answered)
    this.#world.expect(
      isProbe || this.#world.servers.length > 1,
      () => `${this.#name}: up by the answer to #${this.#answered?.number}, which was asked before`,
    )
  }

  clockStep(byMs: number): void {
    this.#world.count('clock steps seen')
    const mostMs = Math.max(...this.#world.servers.map(({ steppedMs }) => steppedMs))
    this.#world.expect(
      mostMs > 0 && Math.abs(byMs) <= mostMs + 1000,
      () => `${this.#name}: a clock was set by ${byMs} ms, and it was by ${mostMs} at most`,
    )
  }

  /**
   * A store that is down is asked one thing at a time, not before its pause is over, and another only where an answer takes
   * longer than the longest pause. Each server is down on its own.
   */
  asks(asked: Asked): void {
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
      () => `${this.#name} #${asked.number} asks a store that is ${isUnanswered ? 'being asked' : 'down'}`,
    )
    this.#probes.add(asked)
    this.#probe = asked
    this.#probedAtMs = loop.nowMs - loop.stalledHereMs
  }

  /** While an answer is on its way to the limiter. */
  answers(asked: Asked, answer: () => void): void {
    this.#answered = asked
    answer()
    this.#answered = undefined
  }

  settled(asked: Asked): void {
    if (!this.#probes.has(asked)) return
    if (this.#probe === asked) this.#probe = undefined
    // The first to fail since the last was sent begins a pause.
    if (this.#isDown && this.#failedAtMs < this.#probedAtMs) this.#failedAtMs = this.#world.loop.nowMs
  }

  /** Answered without the store: so it finds out nothing, and the next may go at once. */
  withdraws(asked: Asked): void {
    if (!this.#probes.delete(asked)) return
    this.#world.count('probes that were not asked')
    if (this.#probe !== asked) return
    this.#probe = undefined
    this.#failedAtMs = Number.NEGATIVE_INFINITY
  }
}
