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
import { RateLimitGuard } from './nest/guard.ts'
import { HandlerGuards, type HandlerOptions } from './nest/handler-guards.ts'
import {
  NAMES,
  type RateLimitAsyncOptions,
  type RateLimitModuleOptions,
  type RateLimitOptions,
} from './nest/options.ts'
import { httpOf, pass } from './nest/passing.ts'
import { type HttpRequest, type HttpResponse, httpBinding } from './nest/platform.ts'

export { RateLimit, SkipRateLimit } from './nest/decorators.ts'
export { RateLimitException } from './nest/exception.ts'
export { RateLimitGuard } from './nest/guard.ts'
export type { RateLimitAsyncOptions, RateLimitModuleOptions, RateLimitOptions } from './nest/options.ts'
export type { RequestOf } from './nest/passing.ts'
export type { HttpRequest, HttpResponse, NestArguments } from './nest/platform.ts'

/**
 * For Nest on Express or Fastify: limits all handlers, and those apart that have `@RateLimit()`.
 *
 *     @Module({ imports: [RateLimitModule.forRoot({ limits: [slidingWindow({ limit: 100, window: '1m' })] })] })
 *
 * Without a `key` function callers are told apart by `request.ip`, which is right only if the platform's trust in proxies
 * (`trust proxy`, `trustProxy`) names them: where it trusts everybody callers choose their own address, so that is refused
 * (`invalid_option`). The denied end in a {@link RateLimitException}. Errors, `StoreUnavailableError` among them, go to
 * the exception filters. What no handler serves is not limited: Nest asks no guard of it.
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

  /** The module, with these options. */
  static forRoot<Request = HttpRequest, Response = HttpResponse>(
    options: RateLimitModuleOptions<Request, Response>,
  ): DynamicModule {
    return RateLimitModule.forRootAsync({ global: options?.global, useFactory: () => options })
  }

  /** The module, with options that are made of what else Nest provides. */
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
    const asked = isGlobal ? [{ provide: APP_GUARD, useExisting: RateLimitGuard }] : []
    return {
      module: RateLimitModule,
      global: true,
      imports: [...imports, DiscoveryModule],
      providers: [guards, RateLimitGuard, ...asked],
      exports: [HandlerGuards, RateLimitGuard],
    }
  }

  /** What is wrong is told from the beginning, not from the first request on. */
  onModuleInit(): void {
    const made = this.#discovery.getProviders().filter(({ token }) => token === HandlerGuards)
    if (made.length > 1)
      throw invalidOption('the module is imported twice, and would charge twice; import it once')
    if (!made[0]!.isDependencyTreeStatic()) {
      throw invalidOption(
        'the options depend on what each request has anew; inject what lives as long as the app',
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
 * A guard on its own, without the module: `@UseGuards(rateLimit({ limits }))`, `app.useGlobalGuards(rateLimit({ limits }))`.
 * `@RateLimit()` and `@SkipRateLimit()` say nothing to it.
 */
export function rateLimit<Request = HttpRequest, Response = HttpResponse>(
  options: RateLimitOptions<Request, Response>,
): CanActivate {
  checkOptions(options, 'rateLimit', NAMES)
  const own = options as unknown as HandlerOptions
  const guard = createGuard(own, httpBinding())
  const { requestOf = httpOf } = own
  return { canActivate: (context) => pass(guard, ...requestOf(context), context) }
}
