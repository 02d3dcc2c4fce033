import {
  All,
  type ArgumentsHost,
  Catch,
  Controller,
  type DynamicModule,
  Get,
  HttpException,
  type INestApplication,
  Module,
  Req,
  Res,
  type Type,
} from '@nestjs/common'
import { BaseExceptionFilter, HttpAdapterHost, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { HttpRequest, HttpResponse } from '../../src/adapters/nest.ts'
import type { Server } from './suite.ts'
import { temporary } from './temporary.ts'

// Decorators are called as functions, since their syntax would need another compiler.

export type Platform = 'Express' | 'Fastify'

export const PLATFORMS: readonly Platform[] = ['Express', 'Fastify']

type Decorator = ClassDecorator & MethodDecorator

/** Creates a controller with a handler for each name, at the path of that name. */
export function controllerAt(
  path: string,
  names: readonly string[],
  onMethods: Readonly<Record<string, readonly MethodDecorator[]>> = {},
  onClass: readonly Decorator[] = [],
  options: object = {},
): Type {
  class Served {}
  for (const name of names) {
    Object.defineProperty(Served.prototype, name, {
      value: { [name]: () => 'served' }[name],
      configurable: true,
    })
    const descriptor = Object.getOwnPropertyDescriptor(Served.prototype, name)!
    const decorators = [...(onMethods[name] ?? []), Get(name)]
    for (const decorator of decorators) decorator(Served.prototype, name, descriptor)
    Object.defineProperty(Served.prototype, name, descriptor)
  }
  for (const decorator of [Controller({ path, ...options }), ...onClass]) decorator(Served)
  return Served
}

export interface AppSettings {
  readonly imports?: readonly (DynamicModule | Type)[]
  readonly controllers?: readonly Type[]
  readonly providers?: NonNullable<Parameters<typeof Module>[0]['providers']>
  /** The platform's trust setting for proxies. */
  readonly trust?: unknown
  /** Whether errors are recorded. Default: `true`. */
  readonly hasFilter?: boolean
  /** Called before the app listens. */
  readonly prepare?: (app: INestApplication) => unknown
}

export interface App extends Server {
  readonly app: INestApplication
}

/**
 * Starts an app whose `/` responds as the adapter suite expects. Records errors, except `HttpException`s, which are
 * responses.
 */
export async function serveApp(platform: Platform, settings: AppSettings): Promise<App> {
  const errors: unknown[] = []
  let served = 0

  class Root {
    serve(request: HttpRequest, response: HttpResponse): string {
      served++
      const { 'x-status': status, 'x-used': used } = request.headers
      response.status(Number(status ?? 200))
      if (typeof used === 'string') response.header('X-Used', used)
      return 'served'
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Root.prototype, 'serve')!
  All()(Root.prototype, 'serve', descriptor)
  Req()(Root.prototype, 'serve', 0)
  Res({ passthrough: true })(Root.prototype, 'serve', 1)
  Controller()(Root)

  class Errors extends BaseExceptionFilter {
    override catch(error: unknown, host: ArgumentsHost): void {
      if (error instanceof HttpException) {
        super.catch(error, host)
        return
      }
      errors.push(error)
      host.switchToHttp().getResponse<HttpResponse>().status(500).send()
    }
  }
  Catch()(Errors)

  class AppModule {}
  const { imports = [], controllers = [], providers = [] } = settings
  Module({ imports: [...imports], controllers: [Root, ...controllers], providers: [...providers] })(AppModule)
  const app = await create(platform, AppModule, settings.trust)
  if (settings.hasFilter !== false) app.useGlobalFilters(new Errors(app.get(HttpAdapterHost).httpAdapter))
  await settings.prepare?.(app)
  await app.listen(0, '127.0.0.1')
  return { app, url: await app.getUrl(), served: () => served, errors, close: () => app.close() }
}

async function create(platform: Platform, module: Type, trust: unknown = false): Promise<INestApplication> {
  const forceCloseConnections = true
  const adapter =
    platform === 'Express'
      ? new ExpressAdapter()
      : new FastifyAdapter({ trustProxy: trust as boolean, forceCloseConnections })
  const settings = { logger: false, abortOnError: false, forceCloseConnections } as const
  const app = await NestFactory.create(module, adapter, settings)
  if (adapter instanceof ExpressAdapter) adapter.set('trust proxy', trust)
  return app
}

/** Starts an app for the running test. */
export const temporaryApp = (platform: Platform, settings: AppSettings): Promise<App> =>
  temporary(serveApp(platform, settings))
