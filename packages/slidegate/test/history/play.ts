import assert from 'node:assert/strict'
import { createLimiter, type Decision, type Limit, type Limiter } from '../../src/index.ts'
import type { Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing.ts'
import { type Event, type History, limitsOf } from './histories.ts'
import { Oracle } from './oracle.ts'

/** What an event led to: compared between the oracle and every store. */
export type Result = Decision | number | undefined

/** An event that asks something, not one that lets time pass. */
type Request = Exclude<Event, { readonly type: 'wait' | 'waitWindow' }>

/** A store whose clock is the one given. */
export type StoreOf = (clock: ManualClock) => Store

interface Admission {
  readonly who: number
  readonly decision: Decision
  left: number
}

let histories = 0

/**
 * Plays a history through the oracle and the stores; throws at the first difference in any field, or in what `view`
 * shows of it. Answers the decisions made.
 */
export async function play(
  history: History,
  stores: Readonly<Record<string, StoreOf>>,
  view: (result: Result) => unknown = (result) => result,
): Promise<number> {
  const clock = new ManualClock(history.startMs)
  const key = `key${histories++}`
  const names = Object.keys(stores)
  const limits = history.limiters.map(limitsOf)
  const limiters = names.map((name) => {
    const store = stores[name]!(clock)
    // Two limiters of one name: two processes in the middle of a rolling deploy.
    return limits.map((each) => createLimiter({ name: 'history', limits: each, store, timeoutMs: 30_000 }))
  })
  const expected = new OraclePlayer(limits, clock)
  const players = limiters.map((pair) => new StorePlayer(pair, key))
  try {
    for (const [place, event] of history.events.entries()) {
      if (event.type === 'wait') {
        clock.advance(event.ms)
        continue
      }
      if (event.type === 'waitWindow') {
        const declared = limits[event.who]!
        clock.advance(declared[event.which % declared.length]!.windowMs + event.offBy)
        continue
      }
      const wanted = expected.results(event)
      const all = await Promise.all(players.map((player) => player.results(event)))
      all.forEach((results, i) => {
        assert.deepEqual(
          results.map(view),
          wanted.map(view),
          `${names[i]} differs from the oracle at event ${place}: ${JSON.stringify(event)}`,
        )
      })
    }
  } finally {
    for (const pair of limiters) for (const limiter of pair) limiter.close()
  }
  return expected.decisions
}

/** Plays events on the oracle. */
class OraclePlayer {
  decisions = 0
  readonly #limits: readonly (readonly Limit[])[]
  readonly #clock: ManualClock
  readonly #oracle = new Oracle()
  readonly #admissions: Admission[] = []

  constructor(limits: readonly (readonly Limit[])[], clock: ManualClock) {
    this.#limits = limits
    this.#clock = clock
  }

  results(event: Request): Result[] {
    const nowMs = this.#clock.now()
    if (event.type === 'refund') return [this.#refund(event.which, event.units, nowMs)]
    const limits = this.#limits[event.who]!
    switch (event.type) {
      case 'consume':
        return Array.from({ length: event.times }, () => {
          this.decisions++
          const decision = this.#oracle.consume(limits, nowMs, event.cost)
          if (decision.allowed) this.#admissions.push({ who: event.who, decision, left: event.cost })
          return decision
        })
      case 'peek':
        this.decisions++
        return [this.#oracle.peek(limits, nowMs, event.cost)]
      case 'charge':
        this.#oracle.charge(limits, nowMs, event.units)
        return [undefined]
      case 'reset':
        this.#oracle.reset(limits)
        return [undefined]
    }
  }

  #refund(which: number, units: number, nowMs: number): number | undefined {
    const admission = this.#admissions[which % this.#admissions.length]
    if (admission === undefined) return undefined
    const asked = Math.min(units, admission.left)
    if (asked === 0) return 0
    const limits = this.#limits[admission.who]!
    const { least, most } = this.#oracle.refund(limits, nowMs, admission.decision, asked)
    admission.left -= most
    return least
  }
}

/** Plays the same events on a store. */
class StorePlayer {
  readonly #limiters: readonly Limiter[]
  readonly #key: string
  readonly #admissions: { readonly limiter: Limiter; readonly decision: Decision }[] = []

  constructor(limiters: readonly Limiter[], key: string) {
    this.#limiters = limiters
    this.#key = key
  }

  async results(event: Request): Promise<Result[]> {
    if (event.type === 'refund') return [await this.#refund(event.which, event.units)]
    const limiter = this.#limiters[event.who]!
    switch (event.type) {
      case 'consume': {
        // All at once: on Redis they travel, and are decided, together.
        const { cost, times } = event
        const decisions = await Promise.all(
          Array.from({ length: times }, () => limiter.consume(this.#key, { cost })),
        )
        for (const decision of decisions) if (decision.allowed) this.#admissions.push({ limiter, decision })
        return decisions
      }
      case 'peek':
        return [await limiter.peek(this.#key, { cost: event.cost })]
      case 'charge':
        await limiter.charge(this.#key, event.units)
        return [undefined]
      case 'reset':
        await limiter.reset(this.#key)
        return [undefined]
    }
  }

  async #refund(which: number, units: number): Promise<number | undefined> {
    const admission = this.#admissions[which % this.#admissions.length]
    if (admission === undefined) return undefined
    const { limiter, decision } = admission
    return limiter.refund(this.#key, decision, Math.min(units, decision.cost))
  }
}
