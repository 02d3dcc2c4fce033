// The options of a route, or of a class, over those around it.
import { checkOptions } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import { sha256 } from '../runtime/platform.ts'
import type { Store } from '../stores/store.ts'
import { type Binding, createGuard, type Guard } from './guard.ts'
import {
  checkGuardOptions,
  GUARD_NAMES,
  type GuardOptions,
  type HandlerArguments,
  limiterFrom,
} from './options.ts'

/** The options of the routes in an app, or in a part of it, that has options for all of them. */
export class RouteOptions<Args extends HandlerArguments> {
  readonly #around: GuardOptions<Args>
  readonly #limiter: Limiter | undefined
  /** The name and the store for routes that have limits of their own. */
  #name: string | undefined
  #store: Store | undefined
  readonly #guards = new WeakMap<object, Map<string, Guard<Args>>>()

  /**
   * @param around the options for what a route leaves out; without limits only if `mayLack`
   * @throws {SlidegateError} `invalid_option`, and what `createLimiter` refuses
   */
  constructor(around: GuardOptions<Args>, mayLack = false) {
    const lacks = mayLack && around.limits === undefined && around.limiter === undefined
    if (!lacks) checkGuardOptions(around)
    const { name, limits, store } = around
    this.#around = around
    this.#name = name
    this.#store = store
    // Made once, so routes without limits of their own count together.
    this.#limiter = limits === undefined ? (around.limiter as Limiter) : limiterFrom({ name, limits, store })
  }

  /** The options of routes without any; undefined if these aren't limited. */
  get shared(): GuardOptions<Args> | undefined {
    return this.#limiter === undefined ? undefined : this.#with({ limiter: this.#limiter })
  }

  /**
   * The options of a route: its own, and the others of those around it. Limits of its own are counted apart, by default under
   * a name made from the route's; without any it counts with all others.
   */
  of(own: GuardOptions<Args>, route: string): GuardOptions<Args> {
    checkOptions(own, 'rateLimit', GUARD_NAMES)
    if (own.limiter !== undefined) return this.#with(own)
    if (own.limits === undefined) return this.#with({ limiter: this.#limiter as Limiter, ...own })
    const { name: _name, limits, store: _store, ...rest } = own
    return this.#with({ ...rest, limiter: this.#limiterOf(own, route) })
  }

  /** Made once for each route, even if a framework declares it twice, for GET and for HEAD. */
  guardOf(own: GuardOptions<Args>, route: string, binding: Binding<Args>): Guard<Args> {
    const known = this.#guards.get(own) ?? new Map<string, Guard<Args>>()
    const guard = known.get(route) ?? createGuard(this.of(own, route), binding)
    this.#guards.set(own, known.set(route, guard))
    return guard
  }

  /** The options of the routes in a part, such as a class, that has options of its own. */
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

/** The name of a route. HEAD has that of GET, or callers would have two budgets. */
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
