import {
  type AnyKey,
  type BulkRequest,
  createLimiter,
  type Decision,
  type Limit,
  type Limiter,
  type Override,
  type Reservation,
  SlidegateError,
} from '../../src/index.ts'
import type { Store } from '../../src/stores/store.ts'
import { ruledBy } from './declarations.ts'
import type { KeyChoice, KeyedAsking, KeyedHistory, RequestSpec } from './keyed-histories.ts'
import { dimensionName, type KeyedResult, type SetsInForce, type ShownOverride } from './keyed-oracle.ts'
import { HELD, isAny, unitsOf, VALUED } from './kind-traits.ts'
import { changeOf } from './models/override.ts'

type Options = Parameters<typeof createLimiter>[0]

/** Plays events on the limiters of two processes that share a store. */
export class KeyedStorePlayer {
  /** How many requests for slots got an id. */
  #made = 0
  readonly #history: KeyedHistory
  readonly #inForce: SetsInForce
  readonly #name: string
  readonly #limiters: readonly Limiter<AnyKey>[]
  readonly #limits: readonly (readonly (readonly Limit[])[])[]
  readonly #admissions: { limiter: Limiter<AnyKey>; key: AnyKey; decision: Decision }[] = []
  readonly #reservations: Reservation[] = []

  constructor(history: KeyedHistory, inForce: SetsInForce, store: Store, name: string) {
    this.#history = history
    this.#inForce = inForce
    this.#name = name
    this.#limits = history.dimensions.map(({ sets }) =>
      sets.map((set) => ruledBy(set).map(({ limit }) => limit)),
    )
    const options = { ...this.#rules(), name, store, timeoutMs: 30_000 }
    const more = {
      reservationTtl: history.reservationTtlMs,
      overrides: history.ttlsMs !== undefined,
    }
    this.#limiters = [0, 1].map(() => createLimiter({ ...options, ...more } as Options) as Limiter<AnyKey>)
  }

  /** Whether limits never change. */
  get #isAlone(): boolean {
    const { dimensions, ttlsMs } = this.#history
    return ttlsMs === undefined && dimensions.every(({ sets }) => sets.length === 1)
  }

  close(): void {
    for (const limiter of this.#limiters) limiter.close()
  }

  async results(event: KeyedAsking): Promise<KeyedResult[]> {
    try {
      return await this.#play(event)
    } catch (error) {
      if (error instanceof SlidegateError) return [error.code]
      throw error
    }
  }

  async #play(event: KeyedAsking): Promise<KeyedResult[]> {
    if (event.type === 'refund') return [await this.#refund(event.which, event.units)]
    if (event.type === 'settle') return [await this.#settle(event)]
    if (event.type === 'change') return [undefined]
    const limiter = this.#limiters[event.who]!
    switch (event.type) {
      case 'consume': {
        const key = this.#key(event.key)
        const all = Array.from({ length: event.times }, () => limiter.consume(key, this.#named(event)))
        return this.#admitted(limiter, await Promise.all(all), () => key)
      }
      case 'many': {
        const requests = event.requests.map(
          (spec): BulkRequest<AnyKey> => ({ key: this.#key(spec.key), ...this.#named(spec) }),
        )
        return this.#admitted(limiter, await limiter.consumeMany(requests), (i) => requests[i]!.key)
      }
      case 'peek':
        return [await limiter.peek(this.#key(event.key), this.#options(event))]
      case 'explain': {
        const options = { cost: this.#options(event).cost, charges: true }
        const explanation = await limiter.explain(this.#part(event.key), options)
        const { overrides, ...rest } = explanation
        const limits = explanation.limits.map(({ oldestAtMs, charges, olderUnits, declared, ...limit }) => ({
          ...limit,
          ...(oldestAtMs !== undefined && this.#isAlone && { oldestAtMs }),
          ...(charges !== undefined && this.#isAlone && { charges, olderUnits }),
        }))
        return [{ ...rest, limits, overrides: overrides.map((each) => this.#shown(each)) }]
      }
      case 'charge': {
        const { cost, ...names } = this.#options(event)
        await limiter.charge(this.#key(event.key), cost, names)
        return [undefined]
      }
      case 'reserve': {
        const reservation = await limiter.reserve(this.#key(event.key), event.cost)
        this.#reservations.push(reservation)
        return [reservation.decision]
      }
      case 'reset':
        await limiter.reset(this.#part(event.key))
        return [undefined]
      case 'block':
        await limiter.block(this.#part(event.key), event.ms)
        return [undefined]
      case 'unblock':
        await limiter.unblock(this.#part(event.key))
        return [undefined]
      case 'isBlocked':
        return [await limiter.isBlocked(this.#part(event.key))]
      case 'override':
        await limiter.overrides.set(this.#one(event), changeOf(event.change), { ttl: event.ttlMs })
        return [undefined]
      case 'getOverride': {
        const got = await limiter.overrides.get(this.#one(event))
        return [got === undefined ? [] : [this.#shown(got)]]
      }
      case 'deleteOverride':
        return [await limiter.overrides.delete(this.#one(event))]
      case 'listOverrides': {
        const listed: ShownOverride[] = []
        for await (const override of limiter.overrides.list()) listed.push(this.#shown(override))
        const wordOf = ({ dimension, key }: ShownOverride) => `${dimension} ${key}`
        return [listed.toSorted((a, b) => (wordOf(a) < wordOf(b) ? -1 : 1))]
      }
    }
  }

  #admitted(
    limiter: Limiter<AnyKey>,
    decisions: readonly Decision[],
    keyOf: (i: number) => AnyKey,
  ): KeyedResult[] {
    decisions.forEach((decision, i) => {
      if (decision.allowed) this.#admissions.push({ limiter, key: keyOf(i), decision })
    })
    return [...decisions]
  }

  async #refund(which: number, units: number): Promise<KeyedResult> {
    const admission = this.#admissions.at(which % this.#admissions.length)
    if (admission === undefined) return undefined
    const { limiter, key, decision } = admission
    return limiter.refund(key, decision, Math.min(units, decision.cost))
  }

  async #settle({
    which,
    who,
    more,
    isCancelled,
  }: Extract<KeyedAsking, { type: 'settle' }>): Promise<KeyedResult> {
    const reservation = this.#reservations.at(which % this.#reservations.length)
    if (reservation === undefined) return undefined
    const actual = Math.max(0, reservation.decision.cost + more)
    if (who === 'itself') return isCancelled ? reservation.cancel() : reservation.settle(actual)
    const limiter = this.#limiters[who]!
    return isCancelled ? limiter.cancel(reservation.token) : limiter.settle(reservation.token, actual)
  }

  /** Returns a key with one dimension only. */
  #one({ dimension, key }: { readonly dimension: number; readonly key: number }): Partial<AnyKey> {
    return this.#part(this.#history.dimensions.map((_, i) => (i === dimension ? key : null)))
  }

  #shown(override: Override): ShownOverride {
    return { ...override, key: override.key.slice(this.#name.length + 1) }
  }

  #ruledOf(key: KeyChoice) {
    return key.flatMap((of, dimension) => {
      if (of === null) return []
      return ruledBy(this.#history.dimensions[dimension]!.sets[this.#inForce.now(dimension, of)]!)
    })
  }

  /** Slots need an id. */
  #named(spec: RequestSpec): { cost: number; value?: string; requestId?: string } {
    const options = this.#options(spec)
    return isAny(this.#ruledOf(spec.key), HELD) ? { requestId: `made${this.#made++}`, ...options } : options
  }

  #options({ cost, key, value }: RequestSpec): { cost: number; value?: string } {
    const ruled = this.#ruledOf(key)
    return { cost: unitsOf(ruled, cost), ...(isAny(ruled, VALUED) && { value: `v${value}` }) }
  }

  #key(choice: KeyChoice): AnyKey {
    if (choice.length === 1) return this.#given(choice[0]!)
    const named = choice.map((of, i) => [`d${i}`, of === null ? null : this.#given(of)] as const)
    return Object.fromEntries(named)
  }

  /** Returns a partial key. Dimensions that aren't chosen are left out. */
  #part(choice: KeyChoice): Partial<AnyKey> {
    if (choice.length === 1) return this.#given(choice[0]!)
    const named = choice.flatMap((of, i) => (of === null ? [] : [[`d${i}`, this.#given(of)] as const]))
    return Object.fromEntries(named) as Partial<AnyKey>
  }

  /** Returns a key string. The strings are the same in all dimensions. */
  #given(of: number): string {
    return `${this.#name}-k${of}`
  }

  #rules(): object {
    const each = this.#history.dimensions.map(({ sets, ban }, dimension) => {
      const all = this.#limits[dimension]!
      const isFunction = sets.length > 1
      const limitsOf = (key: string) => all[this.#inForce.now(dimension, Number(key.slice(-1)))]!
      return {
        name: dimensionName(this.#history, dimension),
        limits: isFunction ? limitsOf : all[0]!,
        ban,
      }
    })
    if (each[0]!.name === undefined) {
      const { limits, ban } = each[0]!
      return { limits, ...(ban && { ban }) }
    }
    const byName = <T>(of: (rules: (typeof each)[number]) => T | undefined) =>
      Object.fromEntries(each.flatMap((rules) => (of(rules) === undefined ? [] : [[rules.name!, of(rules)]])))
    return {
      dimensions: byName(({ limits }) => limits),
      ban: byName(({ ban }) => ban),
    }
  }
}
