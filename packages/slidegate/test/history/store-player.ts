import { type Decision, type Limiter, type Permit, SlidegateError } from '../../src/index.ts'
import { FOUND, HELD, isAny, LISTED, unitsOf, VALUED } from './kind-traits.ts'
import type { Ruled } from './oracle.ts'
import { type Asking, inOrder, type ListedEntry, type Result } from './result.ts'

interface Named {
  readonly value: number
  readonly id?: number | undefined
}

/** Plays the same events on a store. */
export class StorePlayer {
  readonly #ruled: readonly (readonly Ruled[])[]
  readonly #limiters: readonly Limiter[]
  readonly #key: string
  readonly #admissions: { readonly limiter: Limiter; readonly decision: Decision }[] = []
  readonly #permits: Permit[] = []
  /** How many requests for slots got an id. */
  #made = 0

  constructor(ruled: readonly (readonly Ruled[])[], limiters: readonly Limiter[], key: string) {
    this.#ruled = ruled
    this.#limiters = limiters
    this.#key = key
  }

  async results(event: Asking): Promise<Result[]> {
    try {
      return await this.#play(event)
    } catch (error) {
      if (error instanceof SlidegateError) return [error.code]
      throw error
    }
  }

  async #play(event: Asking): Promise<Result[]> {
    switch (event.type) {
      case 'consume':
        return this.#consume(event)
      case 'acquire': {
        const limiter = this.#limiters[event.who]!
        if (!isAny(this.#ruled[event.who]!, HELD)) return this.#consume({ ...event, times: 1 })
        const permit = await limiter.acquire(this.#key, this.#optionsOf(event))
        this.#permits.push(permit)
        if (permit.allowed) this.#admissions.push({ limiter, decision: permit.decision })
        return [permit.decision]
      }
      case 'extend':
      case 'release':
        return [await this.#permits.at(event.which % this.#permits.length)?.[event.type]()]
      case 'peek': {
        const limiter = this.#limiters[event.who]!
        return [await limiter.peek(this.#key, this.#optionsOf(event))]
      }
      case 'charge': {
        const limiter = this.#limiters[event.who]!
        const { cost, ...names } = this.#optionsOf({ ...event, cost: event.units })
        await limiter.charge(this.#key, cost, names)
        return [undefined]
      }
      case 'refund':
        return [await this.#refund(event.which, event.units)]
      case 'list':
        return [await this.#list(event.who)]
      case 'reset':
        await this.#limiters[event.who]!.reset(this.#key)
        return [undefined]
    }
  }

  /** Sends all requests together, so that Redis decides them in one batch. */
  async #consume(event: Named & { who: number; cost: number; times: number }): Promise<Decision[]> {
    const limiter = this.#limiters[event.who]!
    const options = this.#optionsOf(event)
    const isHeld = isAny(this.#ruled[event.who]!, HELD)
    const decisions = await Promise.all(
      Array.from({ length: event.times }, () =>
        limiter.consume(this.#key, isHeld ? { requestId: `made${this.#made++}`, ...options } : options),
      ),
    )
    for (const decision of decisions) if (decision.allowed) this.#admissions.push({ limiter, decision })
    return decisions
  }

  #optionsOf({ who, cost, ...names }: Named & { who: number; cost: number }) {
    const ruled = this.#ruled[who]!
    return { cost: unitsOf(ruled, cost), ...namesFor(ruled, names) }
  }

  async #list(who: number): Promise<ListedEntry[]> {
    if (!isAny(this.#ruled[who]!, LISTED)) return []
    const lists = await this.#limiters[who]!.list(this.#key)
    const listed = lists.flatMap(({ limit, entries }) => entries.map((entry) => ({ limit, ...entry })))
    return inOrder(
      listed.map((entry) => ({ ...entry, name: /^[rv]\d+$/.test(entry.name) ? entry.name : 'made' })),
    )
  }

  async #refund(which: number, units: number): Promise<Result> {
    const admission = this.#admissions.at(which % this.#admissions.length)
    if (admission === undefined) return undefined
    const { limiter, decision } = admission
    return limiter.refund(this.#key, decision, Math.min(units, decision.cost))
  }
}

function namesFor(ruled: readonly Ruled[], { id, value }: Named): { requestId?: string; value?: string } {
  return {
    ...(id !== undefined && isAny(ruled, FOUND) ? { requestId: `r${id}` } : {}),
    ...(isAny(ruled, VALUED) ? { value: `v${value}` } : {}),
  }
}
