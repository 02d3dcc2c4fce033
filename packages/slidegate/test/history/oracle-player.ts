import type { Decision } from '../../src/index.ts'
import type { ManualClock } from '../../src/testing/index.ts'
import { FOUND, HELD, isAny, LISTED, unitsOf, WHOLE } from './kind-traits.ts'
import type { Request } from './models/log-model.ts'
import { Oracle, Refused, type Ruled } from './oracle.ts'
import { type Asking, inOrder, type ListedEntry, type Result } from './result.ts'

interface Admission {
  readonly who: number
  readonly decision: Decision
  readonly request: Request
  left: number
}

/** Plays events on the oracle. */
export class OraclePlayer {
  decisions = 0
  readonly #ruled: readonly (readonly Ruled[])[]
  readonly #clock: ManualClock
  readonly #oracle = new Oracle()
  readonly #admissions: Admission[] = []
  readonly #permits: { readonly who: number; readonly id: string; isHeld: boolean }[] = []
  #named = 0

  constructor(ruled: readonly (readonly Ruled[])[], clock: ManualClock) {
    this.#ruled = ruled
    this.#clock = clock
  }

  results(event: Asking): Result[] {
    try {
      return this.#play(event)
    } catch (error) {
      if (error instanceof Refused) return [error.code]
      throw error
    }
  }

  #play(event: Asking): Result[] {
    const nowMs = this.#clock.now()
    switch (event.type) {
      case 'consume':
        return Array.from({ length: event.times }, () =>
          this.#consume(event.who, this.#request(event.who, event.cost, event.value, this.#idFor(event))),
        )
      case 'acquire': {
        const request = this.#request(event.who, event.cost, event.value)
        const decision = this.#consume(event.who, request)
        if (isAny(this.#ruled[event.who]!, HELD)) {
          this.#permits.push({ who: event.who, id: request.id, isHeld: decision.allowed })
        }
        return [decision]
      }
      case 'extend':
      case 'release': {
        const permit = this.#permits.at(event.which % this.#permits.length)
        if (permit === undefined) return [undefined]
        // A permit that is known to be lost sends no more calls.
        if (!permit.isHeld) return [false]
        const wasHeld = this.#oracle[event.type](this.#ruled[permit.who]!, nowMs, permit.id)
        // A permit that one limit has lost is released from the others.
        if (!wasHeld) this.#oracle.release(this.#ruled[permit.who]!, nowMs, permit.id)
        permit.isHeld = wasHeld && event.type === 'extend'
        return [wasHeld]
      }
      case 'peek': {
        this.decisions++
        const request = this.#request(event.who, event.cost, event.value, this.#idFor(event))
        return [this.#oracle.peek(this.#ruled[event.who]!, nowMs, request)]
      }
      case 'charge':
        this.#oracle.charge(
          this.#ruled[event.who]!,
          nowMs,
          this.#request(event.who, event.units, event.value),
        )
        return [undefined]
      case 'refund':
        return [this.#refund(event.which, event.units, nowMs)]
      case 'list':
        return [isAny(this.#ruled[event.who]!, LISTED) ? this.#list(event.who, nowMs) : []]
      case 'reset':
        this.#oracle.reset(this.#ruled[event.who]!)
        return [undefined]
    }
  }

  /** Returns the id of a request. If there is no id, or no limit uses ids, the limiter creates one. */
  #idFor({ who, id }: { readonly who: number; readonly id: number | undefined }): number | undefined {
    return isAny(this.#ruled[who]!, FOUND) ? id : undefined
  }

  #request(who: number, cost: number, value: number, id?: number): Request {
    const isChosen = id !== undefined
    const units = unitsOf(this.#ruled[who]!, cost)
    return { units, value: `v${value}`, id: isChosen ? `r${id}` : `#${this.#named++}`, isChosen }
  }

  #consume(who: number, request: Request): Decision {
    this.decisions++
    const decision = this.#oracle.consume(this.#ruled[who]!, this.#clock.now(), request)
    const { cost } = decision
    if (decision.allowed)
      this.#admissions.push({ who, decision, request: { ...request, units: cost }, left: cost })
    return decision
  }

  #list(who: number, nowMs: number): ListedEntry[] {
    const listed = this.#oracle.list(this.#ruled[who]!, nowMs)
    return inOrder(
      listed.map((entry) => ({ ...entry, name: entry.name.startsWith('#') ? 'made' : entry.name })),
    )
  }

  #refund(which: number, units: number, nowMs: number): Result {
    const admission = this.#admissions.at(which % this.#admissions.length)
    if (admission === undefined) return undefined
    const { decision, request } = admission
    const ruled = this.#ruled[admission.who]!
    const wanted = Math.min(units, request.units)
    if (wanted !== request.units && isAny(ruled, WHOLE)) return 'invalid_refund'
    const taken = Math.min(wanted, admission.left)
    if (taken === 0) return 0
    const { least, most } = this.#oracle.refund(ruled, nowMs, decision, { ...request, units: taken })
    admission.left -= most
    return least
  }
}
