// The adapter for Nest: a module, and rateLimit() for use without the module.
import {
  type CanActivate,
  type DynamicModule,
  type FactoryProvider,
  Inject,
  Module,
  type OnModuleInit,
  type Type,
} from '@nestjs/common'
import { APP_GUARD, DiscoveryModule, DiscoveryService, MetadataScanner, ModuleRef } from '@nestjs/core'
import { checkOptions, invalidOption } from '../errors.ts'
import { createGuard } from '../http/guard.ts'
import { checkRateLimit } from '../http/option-names.ts'
import { HandlerGuards, type HandlerOptions, RateLimitGuard } from './nest/guard.ts'
import type { RateLimitAsyncOptions, RateLimitModuleOptions, RateLimitOptions } from './nest/options.ts'
import { NAMES } from './nest/options.ts'
import { type HttpRequest, type HttpResponse, httpBinding, httpOf, pass } from './nest/platform.ts'

export { RateLimit, RateLimitGuard, SkipRateLimit } from './nest/guard.ts'
export type { RateLimitAsyncOptions, RateLimitModuleOptions, RateLimitOptions } from './nest/options.ts'
export {
  type HttpRequest,
  type HttpResponse,
  type NestArguments,
  RateLimitException,
  type RequestOf,
} from './nest/platform.ts'

/**
 * The module for Nest on Express or Fastify. It limits all handlers together. `@RateLimit()` can set separate limits.
 *
 *     @Module({ imports: [RateLimitModule.forRoot({ limits: [slidingWindow({ limit: 100, window: '1m' })] })] })
 *
 * The default key is the address in `request.ip`. List your proxies in the platform's `trust proxy` or `trustProxy` setting. If
 * that setting trusts every client, requests fail with `invalid_option`, because clients could spoof their address. A
 * denial is thrown as a {@link RateLimitException}. Errors, such as `StoreUnavailableError`, go to exception filters. Requests
 * without a handler aren't limited, because Nest doesn't call guards for them.
 */
export class RateLimitModule implements OnModuleInit {
  readonly #module: ModuleRef
  readonly #discovery: DiscoveryService
  readonly #scanner: MetadataScanner

  constructor(module: ModuleRef, discovery: DiscoveryService, scanner: MetadataScanner) {
    this.#module = module
    this.#discovery = discovery
    this.#scanner = scanner
  }

  /** Creates the module. */
  static forRoot<Request = HttpRequest, Response = HttpResponse>(
    options: RateLimitModuleOptions<Request, Response>,
  ): DynamicModule {
    return RateLimitModule.forRootAsync({ global: options?.global, useFactory: () => options })
  }

  /** Creates the module with a factory for its options. The factory can inject providers. */
  static forRootAsync<Request = HttpRequest, Response = HttpResponse>(
    options: RateLimitAsyncOptions<Request, Response>,
  ): DynamicModule {
    checkOptions(options, 'forRootAsync', { global: true, imports: true, inject: true, useFactory: true })
    const { global: isGlobal = true, imports = [], inject = [], useFactory } = options
    const guards: FactoryProvider<HandlerGuards> = {
      provide: HandlerGuards,
      inject,
      async useFactory(...injected) {
        return new HandlerGuards((await useFactory(...injected)) as unknown as HandlerOptions, !isGlobal)
      },
    }
    const globalGuards = isGlobal ? [{ provide: APP_GUARD, useExisting: RateLimitGuard }] : []
    return {
      module: RateLimitModule,
      global: true,
      imports: [...imports, DiscoveryModule],
      providers: [guards, RateLimitGuard, ...globalGuards],
      exports: [HandlerGuards, RateLimitGuard],
    }
  }

  /** Checks all options at startup. */
  onModuleInit(): void {
    const made = this.#discovery.getProviders().filter(({ token }) => token === HandlerGuards)
    if (made.length > 1)
      throw invalidOption('RateLimitModule is imported twice and would charge twice; import it only once')
    if (!made[0]!.isDependencyTreeStatic()) {
      throw invalidOption(
        'the options depend on a request-scoped provider; only inject providers that live as long as the app',
      )
    }
    const guards = this.#module.get(HandlerGuards)
    for (const { metatype } of this.#discovery.getControllers()) {
      const { prototype } = metatype as Type
      const methods = this.#scanner.getAllMethodNames(prototype).map((name) => prototype[name])
      guards.check(metatype as Type, methods)
    }
  }
}
Module({})(RateLimitModule)
for (const [i, needed] of [ModuleRef, DiscoveryService, MetadataScanner].entries()) {
  Inject(needed)(RateLimitModule, undefined, i)
}

/**
 * Returns a guard that works without the module.
 *
 * Use it as `@UseGuards(rateLimit({ limits }))` or `app.useGlobalGuards(rateLimit({ limits }))`. It ignores `@RateLimit()` and
 * `@SkipRateLimit()`.
 */
export function rateLimit<Request = HttpRequest, Response = HttpResponse>(
  options: RateLimitOptions<Request, Response>,
): CanActivate {
  checkRateLimit(options, NAMES)
  const own = options as unknown as HandlerOptions
  const guard = createGuard(own, httpBinding())
  const { requestOf = httpOf } = own
  return { canActivate: (context) => pass(guard, ...requestOf(context), context) }
}
