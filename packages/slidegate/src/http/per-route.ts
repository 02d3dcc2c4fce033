import { checkOptions } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import { sha256 } from '../runtime/platform.ts'
import type { Store } from '../stores/store.ts'
import type { Binding, HandlerArguments } from './binding.ts'
import { createGuard, type Guard } from './guard.ts'
import { checkGuardOptions, GUARD_NAMES, type GuardOptions } from './options.ts'
import { limiterFrom } from './own-limiter.ts'

/** The options of routes within an app, or of a part of it, that has options for all of them. */
export class RouteOptions<Args extends HandlerArguments> {
  readonly #around: GuardOptions<Args>
  readonly #limiter: Limiter | undefined
  /** What routes within count under and in, where they have limits of their own. */
  #name: string | undefined
  #store: Store | undefined
  readonly #guards = new WeakMap<object, Map<string, Guard<Args>>>()

  /**
   * @param around the options that hold where a route says nothing; they may be without limits where `mayLack`
   * @throws {SlidegateError} `invalid_option`, and what `createLimiter` refuses
   */
  constructor(around: GuardOptions<Args>, mayLack = false) {
    const lacks = mayLack && around.limits === undefined && around.limiter === undefined
    if (!lacks) checkGuardOptions(around)
    const { name, limits, store } = around
    this.#around = around
    this.#name = name
    this.#store = store
    // Made once, so that routes that only differ in what they do count together.
    this.#limiter = limits === undefined ? (around.limiter as Limiter) : limiterFrom({ name, limits, store })
  }

  /** Those of all routes that say nothing; undefined where these are not limited. */
  get shared(): GuardOptions<Args> | undefined {
    return this.#limiter === undefined ? undefined : this.#with({ limiter: this.#limiter })
  }

  /**
   * Those of a route: what it says itself, else what holds around it. Limits of its own it counts apart, under a name made
   * from that of the route unless it gives one; without limits of its own it counts with all others.
   */
  of(own: GuardOptions<Args>, route: string): GuardOptions<Args> {
    checkOptions(own, 'rateLimit', GUARD_NAMES)
    if (own.limiter !== undefined) return this.#with(own)
    if (own.limits === undefined) return this.#with({ limiter: this.#limiter as Limiter, ...own })
    const { name: _name, limits, store: _store, ...rest } = own
    return this.#with({ ...rest, limiter: this.#limiterOf(own, route) })
  }

  /** Made once for each route, though a framework may declare it twice: for GET and for HEAD. */
  guardOf(own: GuardOptions<Args>, route: string, binding: Binding<Args>): Guard<Args> {
    const known = this.#guards.get(own) ?? new Map<string, Guard<Args>>()
    const guard = known.get(route) ?? createGuard(this.of(own, route), binding)
    this.#guards.set(own, known.set(route, guard))
    return guard
  }

  /** The options of routes within a part, such as a class, that says itself what holds around them. */
  within(own: GuardOptions<Args>, part: string): RouteOptions<Args> {
    const inner = new RouteOptions(this.of(own, part), this.#limiter === undefined)
    inner.#name = own.name ?? this.#name
    inner.#store = own.store ?? this.#store
    return inner
  }

  #limiterOf(own: GuardOptions<Args>, route: string): Limiter {
    checkGuardOptions(own)
    const { limits, store = this.#store } = own
    const { name = nameOf(this.#name ?? 'default', route) } = own
    return limiterFrom({ name, limits, store })
  }

  #with(own: GuardOptions<Args>): GuardOptions<Args> {
    const { limiter: _limiter, name: _name, limits: _limits, store: _store, ...rest } = this.#around
    return { ...rest, ...own }
  }
}

/** What a route is called: where it answers HEAD as it does GET it is the same, or callers would have two budgets. */
export function routeName(method: string | readonly string[], url: string): string {
  const methods = new Set([method].flat().map((each) => (each === 'HEAD' ? 'GET' : each)))
  return `${[...methods].sort().join(',')} ${url}`
}

const MAX_NAME = 64

/** Characters of base64url: with 132 bits, no two routes share a name and its count. */
const HASH_LENGTH = 22

/** Within the alphabet of names, and the same in all processes. */
function nameOf(around: string, route: string): string {
  const hash = sha256(JSON.stringify([around, route])).slice(0, HASH_LENGTH)
  return `${around.slice(0, MAX_NAME - 1 - HASH_LENGTH)}.${hash}`
}
