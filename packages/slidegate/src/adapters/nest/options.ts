// The options for Nest's module and guard.
import type { FactoryProvider, ModuleMetadata } from '@nestjs/common'
import type { Names } from '../../errors.ts'
import { GUARD_NAMES, type GuardOptions } from '../../http/options.ts'
import type { HttpRequest, HttpResponse, NestArguments, RequestOf } from './platform.ts'

/**
 * The options that all adapters share.
 *
 * Functions in them receive the platform's request. Declare its type, as in `(request: Request) => ...`. `onDenied` can
 * throw an exception, which filters handle, or it can respond directly, like a handler with `@Res()`.
 */
export interface RateLimitOptions<Request = HttpRequest, Response = HttpResponse>
  extends GuardOptions<NestArguments<Request, Response>> {
  /**
   * Finds the request and response for a handler that doesn't serve HTTP.
   *
   * For example, GraphQL stores both in its context. Also set `headers: false` if several calls share a
   * response. Without `requestOf`, these handlers fail with `invalid_option`, unless they have
   * `@SkipRateLimit()`.
   */
  readonly requestOf?: RequestOf<Request, Response>
}

interface Global {
  /** `false` limits only handlers with `@RateLimit()` or `@UseGuards(RateLimitGuard)`. Default: `true`. */
  readonly global?: boolean
}

export interface RateLimitModuleOptions<Request = HttpRequest, Response = HttpResponse>
  extends RateLimitOptions<Request, Response>,
    Global {}

export const NAMES: Names<RateLimitOptions> = { ...GUARD_NAMES, requestOf: true }
export const MODULE_NAMES: Names<RateLimitModuleOptions> = { ...NAMES, global: true }

/** Options for `forRootAsync`: `useFactory` returns the options, and `inject` lists its arguments. */
export interface RateLimitAsyncOptions<Request = HttpRequest, Response = HttpResponse>
  extends Pick<FactoryProvider<RateLimitOptions<Request, Response>>, 'inject' | 'useFactory'>,
    Pick<ModuleMetadata, 'imports'>,
    Global {}
