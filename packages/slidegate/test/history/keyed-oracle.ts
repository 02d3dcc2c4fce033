import type { BanExplanation, Decision, Explanation, Override, Settlement } from '../../src/index.ts'
import type { ManualClock } from '../../src/testing/index.ts'
import { ruledBy } from './declarations.ts'
import type { KeyChoice, KeyedAsking, KeyedHistory, RequestSpec } from './keyed-histories.ts'
import { HELD, isAny, LISTED, unitsOf, VALUED, WHOLE } from './kind-traits.ts'
import { BanModel } from './models/ban.ts'
import { RequestsModel } from './models/entries.ts'
import type { Request } from './models/log-model.ts'
import { exempt, type InForce, OverrideModel, shown, withNumbers } from './models/override.ts'
import { type Beside, logOf, Oracle, type Ruled, wasCharged } from './oracle.ts'

/** The result of an event, or an error code. */
export type KeyedResult =
  | Decision
  | Settlement
  | (Omit<Explanation, 'overrides'> & { readonly overrides: readonly ShownOverride[] })
  | readonly ShownOverride[]
  | number
  | boolean
  | string
  | undefined

/** An override as listed. Its key is `k0` or `k1`. */
export type ShownOverride = Override

/** One key of a request, and everything that applies to it. */
interface KeyPart {
  readonly dimension: string | undefined
  /** The same key and set of limits, with the override that is in force now. */
  readonly now: () => KeyPart
  readonly inForce: InForce | undefined
  readonly ruled: readonly Ruled[]
  readonly ban: Beside<BanModel> | undefined
  readonly reservations: Beside<RequestsModel>
}

interface Admission {
  readonly parts: readonly KeyPart[]
  readonly decision: Decision
  readonly request: Request
  left: number
}

interface Reserved {
  readonly key: KeyChoice
  readonly parts: readonly KeyPart[]
  readonly decision: Decision
  readonly request: Request
}

/** The set of limits in force for each key. Events change it. */
export class SetsInForce {
  readonly #sets = new Map<string, number>()

  change(dimension: number, key: number, set = 0): void {
    this.#sets.set(`${dimension}/${key}`, set)
  }

  now(dimension: number, key: number): number {
    return this.#sets.get(`${dimension}/${key}`) ?? 0
  }
}

export function dimensionName(history: KeyedHistory, dimension: number): string | undefined {
  return history.dimensions.length === 1 ? undefined : `d${dimension}`
}

/** Plays events on an oracle that counts each key's real history. */
export class KeyedOracle {
  decisions = 0
  /** How often each kind of event happened. */
  readonly seen: Record<'blocked' | 'banned' | 'settled' | 'changed' | 'overridden', number> = {
    blocked: 0,
    banned: 0,
    settled: 0,
    changed: 0,
    overridden: 0,
  }
  readonly #history: KeyedHistory
  readonly #clock: ManualClock
  readonly #inForce: SetsInForce
  readonly #oracle = new Oracle()
  readonly #admissions: Admission[] = []
  readonly #reserved: Reserved[] = []
  readonly #overrides = new Map<string, OverrideModel>()
  #named = 0

  constructor(history: KeyedHistory, clock: ManualClock, inForce: SetsInForce) {
    this.#history = history
    this.#clock = clock
    this.#inForce = inForce
  }

  results(event: KeyedAsking): KeyedResult[] {
    switch (event.type) {
      case 'consume':
        return Array.from({ length: event.times }, () => this.#consume(event))
      case 'many':
        return event.requests.map((spec) => this.#consume(spec))
      case 'peek':
        return [this.#peek(event)]
      case 'explain':
        return [this.#explain(event)]
      case 'charge': {
        const parts = this.#partsOf(event.key)
        this.#oracle.charge(ruledIn(parts), this.#clock.now(), this.#request(event), bansIn(parts))
        return [undefined]
      }
      case 'refund':
        return [this.#refund(event.which, event.units)]
      case 'reserve':
        return [this.#reserve(event)]
      case 'settle':
        return [this.#settle(event)]
      case 'reset':
        this.#reset(this.#partsOf(event.key))
        return [undefined]
      case 'block':
        return [this.#block(event.key, event.ms)]
      case 'unblock':
        return [this.#unblock(event.key)]
      case 'isBlocked':
        return [this.#isBlocked(event.key)]
      case 'change':
        if (this.#inForce.now(event.dimension, event.key) !== event.set) this.seen.changed++
        this.#inForce.change(event.dimension, event.key, event.set)
        return [undefined]
      case 'override': {
        const { sets } = this.#history.dimensions[event.dimension]!
        const { change } = event
        const isOnly = typeof change === 'object' && change[''] !== undefined
        // The limit may also be given without its name.
        const isNamed = isOnly && sets.length === 1
        if (isNamed && sets[0]!.length > 1) return ['invalid_limit']
        const named = isNamed ? { limit0: change['']! } : change
        this.#override(event).set(named, event.ttlMs, this.#clock.now())
        return [undefined]
      }
      case 'getOverride':
        return [this.#shown(event.dimension, event.key)]
      case 'deleteOverride':
        return [this.#override(event).delete(this.#clock.now())]
      case 'listOverrides':
        return [
          this.#history.dimensions.flatMap((_, dimension) =>
            [0, 1].flatMap((key) => this.#shown(dimension, key)),
          ),
        ]
    }
  }

  #override({ dimension, key }: { readonly dimension: number; readonly key: number }): OverrideModel {
    const name = ofKey(dimension, key)
    const model = this.#overrides.get(name) ?? new OverrideModel()
    this.#overrides.set(name, model)
    return model
  }

  /** Returns the override in force for a key, if any. */
  #shown(dimension: number, key: number): ShownOverride[] {
    const inForce = this.#override({ dimension, key }).at(this.#clock.now())
    if (inForce === undefined) return []
    const name = dimensionName(this.#history, dimension)
    const declared = this.#history.dimensions[dimension]!.sets[this.#inForce.now(dimension, key)]!
    return [{ key: `k${key}`, ...(name !== undefined && { dimension: name }), ...shown(inForce, declared) }]
  }

  #consume(spec: RequestSpec): Decision {
    const parts = this.#partsOf(spec.key)
    if (parts.some(({ inForce }) => inForce !== undefined)) this.seen.overridden++
    const request = this.#request(spec)
    const decision = this.#decide(parts, request, bansIn(parts))
    if (decision.allowed) this.#admissions.push({ parts, decision, request, left: request.units })
    return decision
  }

  #decide(parts: readonly KeyPart[], request: Request, besides: readonly Beside[]): Decision {
    this.decisions++
    const banned = this.#denialByBan(this.#oracle, parts, request, besides)
    if (banned !== undefined) return banned
    const decision = this.#oracle.consume(ruledIn(parts), this.#clock.now(), request, besides)
    if (decision.allowed) return decision
    let blockedMs = 0
    for (const { ruled, ban } of parts) {
      const names = ruled.map(({ limit }) => limit.name)
      const denies = decision.deniedBy.some((name) => names.includes(name))
      if (ban !== undefined && denies) {
        blockedMs = Math.max(blockedMs, this.#oracle.beside(ban).denied(decision.atMs))
      }
    }
    if (blockedMs === 0) return decision
    this.seen.banned++
    return {
      ...decision,
      retryAfterMs: Math.max(decision.retryAfterMs, blockedMs),
      resetAfterMs: Math.max(decision.resetAfterMs, blockedMs),
      blockedMs,
    }
  }

  /**
   * Returns the decision while a key is blocked. It has the state of the limits, and the wait until limits and ban allow the
   * request.
   */
  #denialByBan(
    oracle: Oracle,
    parts: readonly KeyPart[],
    request: Request,
    besides: readonly Beside[],
  ): Decision | undefined {
    const nowMs = oracle.settle(ruledIn(parts), this.#clock.now(), besides)
    const blockedMs = this.#blockedMs(oracle, parts, nowMs)
    if (blockedMs === 0) return undefined
    this.seen.blocked++
    const { decision } = oracle.explain(ruledIn(parts), nowMs, request)
    return {
      ...decision,
      allowed: false,
      remaining: 0,
      retryAfterMs: Math.max(decision.retryAfterMs, blockedMs),
      resetAfterMs: Math.max(decision.resetAfterMs, blockedMs),
      deniedBy: [...this.#bansOf(oracle, parts, nowMs), ...decision.deniedBy],
      blockedMs,
    }
  }

  /** Returns the names of bans and blocks in force. */
  #bansOf(oracle: Oracle, parts: readonly KeyPart[], nowMs: number): string[] {
    return parts
      .filter((part) => this.#blockedMs(oracle, [part], nowMs) > 0)
      .map(({ dimension, inForce }) => {
        const type = (inForce?.blockedMs ?? 0) > 0 ? 'block' : 'ban'
        return dimension === undefined ? type : `${dimension}.${type}`
      })
  }

  #peek(spec: RequestSpec): Decision {
    this.decisions++
    const parts = this.#partsOf(spec.key)
    const request = this.#request(spec)
    const banned = this.#denialByBan(this.#oracle.copy(), parts, request, bansIn(parts))
    return banned ?? this.#oracle.peek(ruledIn(parts), this.#clock.now(), request, bansIn(parts))
  }

  #explain(spec: RequestSpec): KeyedResult {
    this.decisions++
    const parts = this.#partsOf(spec.key)
    const copied = this.#oracle.copy()
    const nowMs = copied.settle(ruledIn(parts), this.#clock.now(), bansIn(parts))
    const { decision, explained } = copied.explain(ruledIn(parts), nowMs, {
      ...this.#request(spec),
      value: '',
    })
    const blockedMs = this.#blockedMs(copied, parts, nowMs)
    const { atMs, cost, deniedBy, limits } = decision
    // If limits change, an older charge may be stored for longer than its own window.
    const { dimensions, ttlsMs } = this.#history
    const isAlone = ttlsMs === undefined && dimensions.every(({ sets }) => sets.length === 1)
    return {
      atMs,
      allowed: decision.allowed && blockedMs === 0,
      cost,
      deniedBy: [...this.#bansOf(copied, parts, nowMs), ...deniedBy],
      retryAfterMs: Math.max(decision.retryAfterMs, blockedMs),
      blockedMs,
      limits: limits.map((limit, i) => {
        const { used, charges, frees } = explained[i]!
        const explanation = { ...limit, used, frees }
        if (!isAlone || charges === undefined) return explanation
        const oldestAtMs = charges[0]?.atMs
        return {
          ...explanation,
          ...(oldestAtMs !== undefined && { oldestAtMs }),
          ...{ charges, olderUnits: 0 },
        }
      }),
      bans: parts.flatMap(({ dimension, ban }): BanExplanation[] => {
        if (ban === undefined) return []
        const explanation = copied.beside(ban).look(nowMs)
        return [dimension === undefined ? explanation : { dimension, ...explanation }]
      }),
      overrides: chosen(spec.key).flatMap(([dimension, key]) => this.#shown(dimension, key)),
    }
  }

  #refund(which: number, units: number): KeyedResult {
    const admission = this.#admissions.at(which % this.#admissions.length)
    if (admission === undefined) return undefined
    const { decision, request } = admission
    const parts = admission.parts.map(({ now }) => now())
    const wanted = Math.min(units, request.units)
    if (wanted !== request.units && isAny(ruledIn(parts), WHOLE)) return 'invalid_refund'
    const taken = Math.min(wanted, admission.left)
    if (taken === 0) return 0
    const returned = { ...request, units: taken }
    const nowMs = this.#clock.now()
    const { least, most } = this.#oracle.refund(ruledIn(parts), nowMs, decision, returned, bansIn(parts))
    admission.left -= most
    return least
  }

  #reserve(spec: RequestSpec): KeyedResult {
    const parts = this.#partsOf(spec.key)
    if (isAny(ruledIn(parts), LISTED)) return 'invalid_option'
    const request = this.#request(spec)
    const decision = this.#decide(parts, request, besidesOf(parts))
    if (decision.allowed) {
      for (const { reservations } of parts) {
        this.#oracle.beside(reservations).charge([], decision.atMs, { ...request, units: 1 })
      }
    }
    this.#reserved.push({ key: spec.key, parts, decision, request })
    return decision
  }

  #settle({ which, who, more, isCancelled }: Extract<KeyedAsking, { type: 'settle' }>): KeyedResult {
    const reserved = this.#reserved.at(which % this.#reserved.length)
    if (reserved === undefined) return undefined
    const { key, decision, request } = reserved
    if (!decision.allowed) return 'invalid_reservation'
    const actual = isCancelled ? 0 : Math.max(0, request.units + more)
    const parts = who === 'itself' ? reserved.parts.map(({ now }) => now()) : this.#partsOf(key)
    if (isAny(ruledIn(parts), VALUED)) return 'invalid_option'
    const nowMs = this.#oracle.settle(ruledIn(parts), this.#clock.now(), besidesOf(parts))
    const noted = parts.map(({ reservations }) => this.#oracle.beside(reservations))
    const atMs = noted.map((model) => model.entries.find(nowMs, request.id))
    if (atMs.includes(undefined)) return 'invalid_reservation'
    this.seen.settled++
    for (const model of noted) model.entries.remove(nowMs, request.id)
    if (actual > request.units) {
      // A settlement never charges a concurrency limit.
      const charged = ruledIn(parts).filter((each) => !isAny([each], HELD))
      this.#oracle.charge(charged, nowMs, { ...request, units: actual - request.units })
    }
    if (actual >= request.units) return { returned: 0, added: actual - request.units }
    const charged = new Set(
      ruledIn(reserved.parts)
        .filter((_, i) => wasCharged(decision, i))
        .map(logOf),
    )
    const returned = parts.flatMap(({ ruled }, i) => {
      const unique = [...new Map(ruled.map((each) => [logOf(each), each])).values()]
      return unique
        .filter((each) => charged.has(logOf(each)))
        .map((each) => {
          const units = { ...request, units: request.units - actual }
          // After a clock step back, a charge that was moved to another time isn't returned.
          const isMoved = atMs[i] !== decision.atMs
          const taken = isMoved ? 0 : this.#oracle.takeBack(each, nowMs, atMs[i]!, units)
          return { isShadow: each.limit.shadow && !each.isExempt, units: taken }
        })
    })
    const enforced = returned.filter(({ isShadow }) => !isShadow).map(({ units }) => units)
    return { returned: enforced.length === 0 ? 0 : Math.min(...enforced), added: 0 }
  }

  #reset(parts: readonly KeyPart[]): void {
    this.#oracle.reset(ruledIn(parts), besidesOf(parts))
  }

  #block(key: KeyChoice, ms: number): KeyedResult {
    if (this.#history.ttlsMs === undefined) return 'invalid_option'
    const clockMs = this.#clock.now()
    for (const [dimension, of] of chosen(key))
      this.#override({ dimension, key: of }).set('block', ms, clockMs)
    return undefined
  }

  #unblock(key: KeyChoice): KeyedResult {
    const parts = this.#partsOf(key)
    if (!this.#canBlock(parts)) return 'invalid_option'
    for (const ban of bansIn(parts)) this.#oracle.beside(ban).unblock()
    for (const [dimension, of] of chosen(key))
      this.#override({ dimension, key: of }).unblock(this.#clock.now())
    return undefined
  }

  #isBlocked(key: KeyChoice): KeyedResult {
    const parts = this.#partsOf(key)
    if (!this.#canBlock(parts)) return 'invalid_option'
    const copied = this.#oracle.copy()
    const nowMs = copied.settle([], this.#clock.now(), bansIn(parts))
    return this.#blockedMs(copied, parts, nowMs) > 0
  }

  #canBlock(parts: readonly KeyPart[]): boolean {
    return this.#history.ttlsMs !== undefined || bansIn(parts).length > 0
  }

  #blockedMs(oracle: Oracle, parts: readonly KeyPart[], nowMs: number): number {
    const banned = bansIn(parts).map((ban) => oracle.beside(ban).look(nowMs).blockedMs)
    return Math.max(0, ...banned, ...parts.map(({ inForce }) => inForce?.blockedMs ?? 0))
  }

  #request({ key, cost, value }: RequestSpec): Request {
    const units = unitsOf(ruledIn(this.#partsOf(key)), cost)
    return { units, value: `v${value}`, id: `#${this.#named++}` }
  }

  #partsOf(key: KeyChoice): KeyPart[] {
    return chosen(key).map(([dimension, of]) => this.#partOf(dimension, of))
  }

  #partOf(dimension: number, key: number, set: number = this.#inForce.now(dimension, key)): KeyPart {
    const { sets, ban } = this.#history.dimensions[dimension]!
    const name = dimensionName(this.#history, dimension)
    const of = ofKey(dimension, key)
    const inForce = this.#override({ dimension, key }).at(this.#clock.now())
    const numbered = ruledBy(withNumbers(sets[set]!, inForce?.rule)).map((ruled): Ruled => {
      const limit = { ...ruled.limit, ...(name !== undefined && { name: `${name}.${ruled.limit.name}` }) }
      return { ...ruled, limit, of }
    })
    const ttlMs = this.#history.reservationTtlMs
    return {
      dimension: name,
      now: () => this.#partOf(dimension, key, set),
      inForce,
      ruled: inForce?.rule === 'exempt' ? exempt(numbered) : numbered,
      ban: ban && { name: `${of}/ban`, model: () => new BanModel(ban) },
      reservations: { name: `${of}/reservations`, model: () => new RequestsModel(ttlMs, 'holder') },
    }
  }
}

function ofKey(dimension: number, key: number): string {
  return `d${dimension}-k${key}`
}

/** Returns the dimensions in which the request has a key, with that key. */
function chosen(key: KeyChoice): (readonly [dimension: number, key: number])[] {
  return key.flatMap((of, dimension) => (of === null ? [] : [[dimension, of] as const]))
}

function ruledIn(parts: readonly KeyPart[]): Ruled[] {
  return parts.flatMap(({ ruled }) => ruled)
}

function bansIn(parts: readonly KeyPart[]): Beside<BanModel>[] {
  return parts.flatMap(({ ban }) => ban ?? [])
}

function besidesOf(parts: readonly KeyPart[]): Beside[] {
  return [...bansIn(parts), ...parts.map(({ reservations }) => reservations)]
}
