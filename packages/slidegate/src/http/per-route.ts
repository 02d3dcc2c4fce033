// Merges the options of a route or class with the app's options.
import type { Limiter } from '../limiter.ts'
import { sha256 } from '../runtime/platform.ts'
import type { Store } from '../stores/store.ts'
import { type Binding, createGuard, type Guard } from './guard.ts'
import { checkRateLimit } from './option-names.ts'
import {
  checkGuardOptions,
  GUARD_NAMES,
  type GuardOptions,
  type HandlerArguments,
  limiterFrom,
} from './options.ts'

/** The options for the routes in an app or in part of one. */
export class RouteOptions<Args extends HandlerArguments> {
  readonly #around: GuardOptions<Args>
  readonly #limiter: Limiter | undefined
  /** The default name and store for routes with their own limits. */
  #name: string | undefined
  #store: Store | undefined
  readonly #guards = new WeakMap<object, Map<string, Guard<Args>>>()

  /**
   * @param around the defaults for all routes
   * @param mayLack whether the defaults may omit limits
   * @throws {SlidegateError} `invalid_option`, or any error from `createLimiter`
   */
  constructor(around: GuardOptions<Args>, mayLack = false) {
    const lacks = mayLack && around.limits === undefined && around.limiter === undefined
    if (!lacks) checkGuardOptions(around)
    const { name, store } = around
    this.#around = around
    this.#name = name
    this.#store = store
    // Created once, so that routes without their own limits share their counts.
    this.#limiter = around.limits === undefined ? (around.limiter as Limiter) : limiterFrom(around)
  }

  /** The options for routes that have none of their own. `undefined` if those routes aren't limited. */
  get shared(): GuardOptions<Args> | undefined {
    return this.#limiter === undefined ? undefined : this.#with({ limiter: this.#limiter })
  }

  /**
   * Merges a route's options with the defaults. Requests to a route with its own limits are counted separately, by
   * default under a name derived from the route. A route without limits shares the app's limits.
   */
  of(own: GuardOptions<Args>, route: string): GuardOptions<Args> {
    checkRateLimit(own, GUARD_NAMES)
    if (own.limiter !== undefined) return this.#with(own)
    if (own.limits === undefined) return this.#with({ limiter: this.#limiter as Limiter, ...own })
    const { name: _name, limits, store: _store, ...rest } = own
    return this.#with({ ...rest, limiter: this.#limiterOf(own, route) })
  }

  /** Returns one guard per route. A framework may declare a route twice, for GET and HEAD. */
  guardOf(own: GuardOptions<Args>, route: string, binding: Binding<Args>): Guard<Args> {
    const known = this.#guards.get(own) ?? new Map<string, Guard<Args>>()
    const guard = known.get(route) ?? createGuard(this.of(own, route), binding)
    this.#guards.set(own, known.set(route, guard))
    return guard
  }

  /** Returns the options for a part of the app, such as a class. */
  within(own: GuardOptions<Args>, part: string): RouteOptions<Args> {
    const inner = new RouteOptions(this.of(own, part), this.#limiter === undefined)
    inner.#name = own.name ?? this.#name
    inner.#store = own.store ?? this.#store
    return inner
  }

  #limiterOf(own: GuardOptions<Args>, route: string): Limiter {
    checkGuardOptions(own)
    const { store = this.#store, name = nameOf(this.#name ?? 'default', route) } = own
    return limiterFrom({ warnings: this.#around.warnings, ...own, name, store })
  }

  #with(own: GuardOptions<Args>): GuardOptions<Args> {
    const { limiter: _limiter, name: _name, limits: _limits, store: _store, ...rest } = this.#around
    return { ...rest, ...own }
  }
}

/** Returns the name of a route. HEAD gets the same name as GET, so that they share counts. */
export function routeName(method: string | readonly string[], url: string): string {
  const methods = new Set([method].flat().map((each) => (each === 'HEAD' ? 'GET' : each)))
  return `${[...methods].sort().join(',')} ${url}`
}

const MAX_NAME = 64

/** Length in base64url characters. With 132 bits, hashes don't collide in practice. */
const HASH_LENGTH = 22

/** Returns a valid limiter name that is the same in all processes. */
function nameOf(around: string, route: string): string {
  const hash = sha256(JSON.stringify([around, route])).slice(0, HASH_LENGTH)
  return `${around.slice(0, MAX_NAME - 1 - HASH_LENGTH)}.${hash}`
}
