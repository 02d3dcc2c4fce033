import 'reflect-metadata'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { Controller, type DynamicModule, Get, Module, type Provider } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import type { Policy } from '../../peers/peer.ts'
import { type App, BODY, KEEP_ALIVE_MS, type Served, USER_HEADER } from '../app.ts'

/** The throttler's own Reflector. npm may have installed a second copy of Nest for it. */
const { Reflector } = createRequire(createRequire(import.meta.url).resolve('@nestjs/throttler'))(
  '@nestjs/core',
) as typeof import('@nestjs/core')

class Hello {
  hello(): object {
    return BODY
  }
}

// Calls the decorators as functions, because type stripping doesn't support the `@` syntax.
Controller()(Hello)
Get()(Hello.prototype, 'hello', Object.getOwnPropertyDescriptor(Hello.prototype, 'hello')!)

/** Returns Nest apps on Express with one route, by limiter. The throttler has no Redis store. */
export function nestApps({ limit, windowMs }: Policy): Readonly<Record<string, App>> {
  return {
    bare: (_redis) => serve([], []),
    '@nestjs/throttler': (_redis) =>
      serve(
        [
          ThrottlerModule.forRoot({
            throttlers: [{ limit, ttl: windowMs }],
            getTracker: (request) => request.headers[USER_HEADER],
          }),
        ],
        [Reflector, { provide: APP_GUARD, useClass: ThrottlerGuard }],
      ),
  }
}

async function serve(imports: DynamicModule[], providers: Provider[]): Promise<Served> {
  class App {}
  Module({ imports, providers, controllers: [Hello] })(App)
  const app = await NestFactory.create(App, { logger: false, abortOnError: false })
  await app.listen(0, '127.0.0.1')
  app.getHttpServer().keepAliveTimeout = KEEP_ALIVE_MS
  return { port: (app.getHttpServer().address() as AddressInfo).port }
}
