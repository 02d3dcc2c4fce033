import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common'
import { HandlerGuards } from './handler-guards.ts'

/** The guard of `RateLimitModule`, to be put where it should run: behind the one that knows the user, for instance. */
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
