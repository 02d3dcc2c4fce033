// The module's guard, the decorators that add it to handlers, and the options for each handler.
import {
  applyDecorators,
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  type Type,
  UseGuards,
} from '@nestjs/common'
import { invalidOption } from '../../errors.ts'
import { createGuard, type Guard } from '../../http/guard.ts'
import { checkRateLimit } from '../../http/option-names.ts'
import type { GuardOptions } from '../../http/options.ts'
import { RouteOptions } from '../../http/per-route.ts'
import { type Decorated, isSkipped, methodOf, nameOf, optionsOf, setOptions, setSkip } from './metadata.ts'
import { MODULE_NAMES } from './options.ts'
import {
  type HttpRequest,
  type HttpResponse,
  httpBinding,
  httpOf,
  type NestArguments,
  pass,
  type RequestOf,
} from './platform.ts'

/** A class's options, and the guard for those of its handlers that have no options. */
interface ClassGuards {
  readonly routes: RouteOptions<NestArguments>
  readonly guard: Guard<NestArguments> | undefined
  readonly ofHandlers: Map<Decorated, Guard<NestArguments> | 'skip'>
}

export interface HandlerOptions extends GuardOptions<NestArguments> {
  readonly requestOf?: RequestOf
}

/** Finds the guard for a handler: the handler's own, its class's or the app's. */
export class HandlerGuards {
  readonly #binding = httpBinding()
  readonly #routes: RouteOptions<NestArguments>
  readonly #guard: Guard<NestArguments> | undefined
  readonly #ofClasses = new WeakMap<Type, ClassGuards>()
  readonly #decided = new WeakSet<ExecutionContext>()
  readonly #requestOf: RequestOf

  /**
   * @param mayLack whether the options may omit limits. If they do, only handlers with their own limits are limited
   * @throws {SlidegateError} `invalid_option`
   */
  constructor(options: HandlerOptions, mayLack: boolean) {
    checkRateLimit(options, MODULE_NAMES, 'RateLimitModule')
    this.#requestOf = options.requestOf ?? httpOf
    this.#routes = new RouteOptions(options, mayLack)
    this.#guard = this.#guardBy(this.#routes)
  }

  /** Checks the decorators of a class and its methods. @throws {SlidegateError} `invalid_option` */
  check(controller: Type, handlers: readonly Decorated[]): void {
    this.#of(controller)
    for (const handler of handlers) if (optionsOf(handler) !== undefined) this.guardOf(controller, handler)
  }

  /** Returns whether the handler may run. Decides only once per call, even if both the app and a decorator added the guard. */
  admits(context: ExecutionContext): true | Promise<true> {
    if (this.#decided.has(context)) return true
    this.#decided.add(context)
    const guard = this.guardOf(context.getClass(), context.getHandler())
    return guard === 'skip' || pass(guard, ...this.#requestOf(context), context)
  }

  /** @throws {SlidegateError} `invalid_option`, for example if the handler has no limits */
  guardOf(controller: Type, handler: Decorated): Guard<NestArguments> | 'skip' {
    const known = this.#of(controller)
    let guard = known.ofHandlers.get(handler)
    if (guard === undefined) {
      guard = isSkipped(controller, handler) ? 'skip' : this.#made(known, controller, handler)
      known.ofHandlers.set(handler, guard)
    }
    return guard
  }

  #made({ routes, guard }: ClassGuards, controller: Type, handler: Decorated): Guard<NestArguments> {
    const own = optionsOf(handler)
    const method = methodOf(controller, handler)
    const route = `${nameOf(controller)}.${method}`
    const made = own === undefined ? guard : createGuard(routes.of(own, route), this.#binding)
    if (made !== undefined) return made
    throw invalidOption(
      `${controller.name}.${method} has no limits; set limits on it, its class or the module`,
    )
  }

  #of(controller: Type): ClassGuards {
    let known = this.#ofClasses.get(controller)
    if (known === undefined) {
      const own = optionsOf(controller)
      const routes = own === undefined ? this.#routes : this.#routes.within(own, nameOf(controller))
      const guard = own === undefined ? this.#guard : this.#guardBy(routes)
      known = { routes, guard, ofHandlers: new Map() }
      this.#ofClasses.set(controller, known)
    }
    return known
  }

  #guardBy({ shared }: RouteOptions<NestArguments>): Guard<NestArguments> | undefined {
    return shared && createGuard(shared, this.#binding)
  }
}

/** The guard of `RateLimitModule`. Add it yourself if it has to run after another guard, such as authentication. */
export class RateLimitGuard implements CanActivate {
  readonly #guards: HandlerGuards

  constructor(guards: HandlerGuards) {
    this.#guards = guards
  }

  canActivate(context: ExecutionContext): true | Promise<true> {
    return this.#guards.admits(context)
  }
}
Injectable()(RateLimitGuard)
Inject(HandlerGuards)(RateLimitGuard, undefined, 0)

/**
 * Overrides the module's options for a class or method.
 *
 * Limits on a method count only that method's requests. Limits on a class count the requests to all its
 * routes together. The decorated class or method is always limited, even without a global guard.
 */
export function RateLimit<Request = HttpRequest, Response = HttpResponse>(
  options: GuardOptions<NestArguments<Request, Response>>,
): ClassDecorator & MethodDecorator {
  return applyDecorators(setOptions(options), setSkip(false), UseGuards(RateLimitGuard))
}

/** Exempts a class or method from the module's limits. `SkipRateLimit(false)` limits a method in an exempt class. */
export function SkipRateLimit(skips = true): ClassDecorator & MethodDecorator {
  return setSkip(skips)
}
