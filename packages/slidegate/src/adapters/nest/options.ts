// The options of the Nest module and guard.
import type { FactoryProvider, ModuleMetadata } from '@nestjs/common'
import type { Names } from '../../errors.ts'
import { GUARD_NAMES, type GuardOptions } from '../../http/options.ts'
import type { HttpRequest, HttpResponse, NestArguments, RequestOf } from './platform.ts'

/**
 * The options of every adapter. Functions get the platform's request: declare its type, `(request: Request) => ...`. `onDenied`
 * throws an exception for filters to answer, or answers by the response like a handler with `@Res()`.
 */
export interface RateLimitOptions<Request = HttpRequest, Response = HttpResponse>
  extends GuardOptions<NestArguments<Request, Response>> {
  /**
   * Finds request and response in handlers that don't serve HTTP, for instance in the context of GraphQL; then set
   * `headers: false`, since many calls share a response. Default: such handlers fail with `invalid_option`, unless they have
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

/** Options of `forRootAsync`: `useFactory` returns the options; `inject` lists its arguments. */
export interface RateLimitAsyncOptions<Request = HttpRequest, Response = HttpResponse>
  extends Pick<FactoryProvider<RateLimitOptions<Request, Response>>, 'inject' | 'useFactory'>,
    Pick<ModuleMetadata, 'imports'>,
    Global {}
