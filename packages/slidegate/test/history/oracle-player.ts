import type { Decision } from '../../src/index.ts'
import type { ManualClock } from '../../src/testing/index.ts'
import { type Declaration, ruledBy } from './declarations.ts'
import { FOUND, HELD, isAny, LISTED, unitsOf, WHOLE } from './kind-traits.ts'
import type { Request } from './models/log-model.ts'
import { exempt, OverrideModel, withNumbers } from './models/override.ts'
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
  readonly #declared: readonly (readonly Declaration[])[]
  readonly #ruled: readonly (readonly Ruled[])[]
  readonly #clock: ManualClock
  readonly #oracle: Oracle
  readonly #override: OverrideModel
  readonly #admissions: Admission[] = []
  readonly #permits: { readonly who: number; readonly id: string; isHeld: boolean }[] = []
  #named = 0

  constructor(declared: readonly (readonly Declaration[])[], clock: ManualClock, like?: OraclePlayer) {
    this.#declared = declared
    this.#ruled = like === undefined ? declared.map(ruledBy) : like.#ruled
    this.#clock = clock
    this.#oracle = like === undefined ? new Oracle() : like.#oracle.copy()
    this.#override = like === undefined ? new OverrideModel() : like.#override.copy()
  }

  copy(): OraclePlayer {
    const copied = new OraclePlayer(this.#declared, this.#clock, this)
    copied.#admissions.push(...this.#admissions.map((admission) => ({ ...admission })))
    copied.#permits.push(...this.#permits.map((permit) => ({ ...permit })))
    copied.#named = this.#named
    return copied
  }

  /** The limits in force. */
  #by(who: number): readonly Ruled[] {
    const inForce = this.#override.at(this.#clock.now())
    if (inForce === undefined) return this.#ruled[who]!
    const ruled = ruledBy(withNumbers(this.#declared[who]!, inForce.rule))
    return inForce.rule === 'exempt' ? exempt(ruled) : ruled
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
        // What is known to be lost is not asked about any more.
        if (!permit.isHeld) return [false]
        const wasHeld = this.#oracle[event.type](this.#by(permit.who), nowMs, permit.id)
        // What is lost to one limit is released from the others.
        if (!wasHeld) this.#oracle.release(this.#by(permit.who), nowMs, permit.id)
        permit.isHeld = wasHeld && event.type === 'extend'
        return [wasHeld]
      }
      case 'peek': {
        this.decisions++
        const request = this.#request(event.who, event.cost, event.value, this.#idFor(event))
        return [
          this.#denialByBlock(event.who, request, this.#oracle.copy()) ??
            this.#oracle.peek(this.#by(event.who), nowMs, request),
        ]
      }
      case 'charge':
        this.#oracle.charge(this.#by(event.who), nowMs, this.#request(event.who, event.units, event.value))
        return [undefined]
      case 'refund':
        return [this.#refund(event.which, event.units, nowMs)]
      case 'list':
        return [isAny(this.#ruled[event.who]!, LISTED) ? this.#list(event.who, nowMs) : []]
      case 'reset':
        this.#oracle.reset(this.#by(event.who))
        return [undefined]
      case 'override':
        this.#override.set(event.change, event.ttlMs, nowMs)
        return [true]
      case 'deleteOverride':
        return [this.#override.delete(nowMs)]
    }
  }

  /** Where it is not given, or not asked for, the limiter makes one. */
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
    const blocked = this.#denialByBlock(who, request, this.#oracle)
    if (blocked !== undefined) return blocked
    const decision = this.#oracle.consume(this.#by(who), this.#clock.now(), request)
    const { cost } = decision
    if (decision.allowed)
      this.#admissions.push({ who, decision, request: { ...request, units: cost }, left: cost })
    return decision
  }

  /** The decision while the key is blocked. */
  #denialByBlock(who: number, request: Request, oracle: Oracle): Decision | undefined {
    const clockMs = this.#clock.now()
    const { blockedMs = 0 } = this.#override.at(clockMs) ?? {}
    if (blockedMs === 0) return undefined
    const ruled = this.#by(who)
    const { decision } = oracle.explain(ruled, oracle.settle(ruled, clockMs), request)
    return {
      ...decision,
      allowed: false,
      remaining: 0,
      retryAfterMs: Math.max(decision.retryAfterMs, blockedMs),
      resetAfterMs: Math.max(decision.resetAfterMs, blockedMs),
      deniedBy: ['ban', ...decision.deniedBy],
      blockedMs,
    }
  }

  #list(who: number, nowMs: number): ListedEntry[] {
    const listed = this.#oracle.list(this.#by(who), nowMs)
    return inOrder(
      listed.map((entry) => ({ ...entry, name: entry.name.startsWith('#') ? 'made' : entry.name })),
    )
  }

  #refund(which: number, units: number, nowMs: number): Result {
    const admission = this.#admissions.at(which % this.#admissions.length)
    if (admission === undefined) return undefined
    const { decision, request } = admission
    const ruled = this.#by(admission.who)
    const asked = Math.min(units, request.units)
    if (asked !== request.units && isAny(ruled, WHOLE)) return 'invalid_refund'
    const taken = Math.min(asked, admission.left)
    if (taken === 0) return 0
    const { least, most } = this.#oracle.refund(ruled, nowMs, decision, { ...request, units: taken })
    admission.left -= most
    return least
  }
}
