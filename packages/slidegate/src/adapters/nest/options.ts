// The options of Nest's module and guard.
import type { FactoryProvider, ModuleMetadata } from '@nestjs/common'
import type { Names } from '../../errors.ts'
import { GUARD_NAMES, type GuardOptions } from '../../http/options.ts'
import type { HttpRequest, HttpResponse, NestArguments, RequestOf } from './platform.ts'

/**
 * Functions are given the request of the platform, Express or Fastify: say which by its type, `(request: Request) => ...`.
 * `onDenied` throws an exception of yours, for filters to answer, or answers by the response as a handler with `@Res()` does.
 */
export interface RateLimitOptions<Request = HttpRequest, Response = HttpResponse>
  extends GuardOptions<NestArguments<Request, Response>> {
  /**
   * Where the request and the response are in handlers that do not serve HTTP: of GraphQL, for instance, in its context, and
   * then with `headers: false`, for there are many calls to one response. Default: such handlers fail with
   * `invalid_option`, unless they have `@SkipRateLimit()`.
   */
  readonly requestOf?: RequestOf<Request, Response>
}

interface Global {
  /** `false` where only those are limited that have `@RateLimit()`, or `@UseGuards(RateLimitGuard)`. Default: `true`, all. */
  readonly global?: boolean
}

export interface RateLimitModuleOptions<Request = HttpRequest, Response = HttpResponse>
  extends RateLimitOptions<Request, Response>,
    Global {}

export const NAMES: Names<RateLimitOptions> = { ...GUARD_NAMES, requestOf: true }
export const MODULE_NAMES: Names<RateLimitModuleOptions> = { ...NAMES, global: true }

/** `useFactory` makes the options, from what `inject` names. */
export interface RateLimitAsyncOptions<Request = HttpRequest, Response = HttpResponse>
  extends Pick<FactoryProvider<RateLimitOptions<Request, Response>>, 'inject' | 'useFactory'>,
    Pick<ModuleMetadata, 'imports'>,
    Global {}
