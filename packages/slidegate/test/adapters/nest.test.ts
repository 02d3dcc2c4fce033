// tier: system
import {
  type ArgumentsHost,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  HttpException,
  type INestApplication,
  Scope,
  SetMetadata,
  type Type,
  UseFilters,
  UseGuards,
  VersioningType,
} from '@nestjs/common'
import { APP_FILTER, ExternalContextCreator, REQUEST } from '@nestjs/core'
import type { Request } from 'express'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { beforeEach, describe, expect, expectTypeOf, it } from 'vitest'
import {
  type HttpRequest,
  type HttpResponse,
  type NestArguments,
  RateLimit,
  type RateLimitAsyncOptions,
  RateLimitException,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
  type RateLimitOptions,
  rateLimit,
  SkipRateLimit,
} from '../../src/adapters/nest.ts'
import { type Limit, memoryStore, slidingWindow } from '../../src/index.ts'
import { controllerAt, PLATFORMS, serveApp, temporaryApp } from './nest-app.ts'
import { newStore } from './suite/fixture.ts'
import { type AdapterUnderTest, adapterSuite, type Server } from './suite.ts'
import { statuses } from './temporary.ts'

const perHour = (limit: number, name = 'hourly'): Limit[] => [slidingWindow({ limit, window: '1h', name })]
const times = (n: number, path: string): string[] => Array(n).fill(path)

describe.each(PLATFORMS)('Nest 11 on %s', (platform) => {
  const adapter: AdapterUnderTest<NestArguments> = {
    async serve(options, { behindProxy = false } = {}) {
      return await serveApp(platform, {
        trust: behindProxy && '127.0.0.1',
        prepare: (app) => app.useGlobalGuards(...options.map((each) => rateLimit(each))),
      })
    },
    header: (request, name) => request.headers[name] as string | undefined,
    sharesRequests: true,
    teapot: ({ cost }, _request, response) => response.status(418).send(`cost ${cost}`),
  }
  adapterSuite(adapter)

  describe('specifics', () => {
    /** Starts an app with the module and a separate store. */
    async function serve(
      options: RateLimitModuleOptions,
      controllers: readonly Type[] = [],
      settings: Omit<Parameters<typeof temporaryApp>[1], 'controllers'> = {},
    ): Promise<Awaited<ReturnType<typeof temporaryApp>>> {
      const { imports = [], ...rest } = settings
      const module = RateLimitModule.forRoot({
        ...(options.limiter ? {} : { store: newStore() }),
        ...options,
      })
      return await temporaryApp(platform, { imports: [module, ...imports], controllers, ...rest })
    }

    it('the module limits all handlers together, but not paths without a handler', async () => {
      const server = await serve({ limits: perHour(2) }, [controllerAt('cats', ['list'])])
      expect(await statuses(server, ['/', '/cats/list', '/', '/cats/list', '/nowhere'])).toEqual([
        200, 200, 429, 429, 404,
      ])
    })

    it('limits on a class count its routes together, and limits on a route count only that route', async () => {
      const cats = controllerAt('cats', ['a', 'b', 'alone'], { alone: [RateLimit({ limits: perHour(1) })] }, [
        RateLimit({ limits: perHour(2) }),
      ])
      const dogs = controllerAt('dogs', ['a', 'alone'], { alone: [RateLimit({ limits: perHour(1) })] })
      const server = await serve({ limits: perHour(3) }, [cats, dogs])
      expect(await statuses(server, ['/cats/a', '/cats/b', '/cats/a', '/cats/b'])).toEqual([
        200, 200, 429, 429,
      ])
      expect(await statuses(server, times(2, '/cats/alone'))).toEqual([200, 429])
      expect(await statuses(server, times(2, '/dogs/alone'))).toEqual([200, 429])
      expect(await statuses(server, ['/', '/dogs/a', '/', '/dogs/a'])).toEqual([200, 200, 200, 429])
      expect(server.errors).toEqual([])
    })

    it('a route inherits the options of its class, and a class those of the module', async () => {
      const cats = controllerAt(
        'cats',
        ['cheap', 'dear', 'user'],
        {
          dear: [RateLimit({ cost: () => 2 })],
          user: [RateLimit({ limits: perHour(1, 'own'), key: ({ headers }) => `${headers['x-user']}` })],
        },
        [RateLimit({ limits: perHour(3, 'cats'), headers: 'legacy' })],
      )
      const server = await serve({ limits: perHour(9), headers: false, key: () => 'all' }, [cats])
      expect(await statuses(server, ['/cats/dear', '/cats/dear', '/cats/cheap', '/cats/cheap'])).toEqual([
        200, 429, 200, 429,
      ])
      const ask = (user: string) => fetch(`${server.url}/cats/user`, { headers: { 'x-user': user } })
      const answers = [await ask('ann'), await ask('bob'), await ask('ann')]
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
      expect(answers[0]!.headers.get('X-RateLimit-Limit')).toBe('1')
      expect((await fetch(server.url)).headers.has('X-RateLimit-Limit')).toBe(false)
    })

    it('routes of a class with its own store are counted in that store', async () => {
      const options = { store: memoryStore() }
      const [one, other] = [1, 2].map(() =>
        controllerAt('cats', ['a', 'alone'], { alone: [RateLimit({ limits: perHour(1) })] }, [
          RateLimit({ limits: perHour(1), ...options }),
        ]),
      )
      // Each app has its own store, like a process with a memory store. The class uses a different one.
      const servers = [
        await serve({ limits: perHour(9) }, [one!]),
        await serve({ limits: perHour(9) }, [other!]),
      ]
      for (const path of ['/cats/a', '/cats/alone']) {
        expect([await statuses(servers[0]!, [path]), await statuses(servers[1]!, [path])]).toEqual([
          [200],
          [429],
        ])
      }
    })

    it('routes and classes of several processes with one store and name count together', async () => {
      const store = memoryStore()
      const app = (name: string) =>
        serve({ limits: perHour(9), store, name }, [
          controllerAt('cats', ['a', 'alone'], { alone: [RateLimit({ limits: perHour(1) })] }, [
            RateLimit({ limits: perHour(1) }),
          ]),
        ])
      const [one, same, other] = [await app('shop'), await app('shop'), await app('admin')]
      expect(await statuses(one, ['/cats/alone', '/cats/a'])).toEqual([200, 200])
      expect(await statuses(same, ['/cats/a', '/cats/alone'])).toEqual([429, 429])
      expect(await statuses(other, ['/cats/a', '/cats/alone'])).toEqual([200, 200])
    })

    it('classes with the same name count separately if their paths or versions differ', async () => {
      const limited = (path: string, version: string) =>
        controllerAt(
          path,
          ['a', 'b'],
          { b: [RateLimit({ limits: perHour(1) })] },
          [RateLimit({ limits: perHour(1) })],
          {
            version,
          },
        )
      const controllers = [limited('cats', '1'), limited('cats', '2'), limited('dogs', '1')]
      expect(new Set(controllers.map(({ name }) => name)).size).toBe(1)
      const server = await serve({ limits: perHour(9) }, controllers, {
        prepare: (app) => app.enableVersioning({ type: VersioningType.URI }),
      })
      const paths = ['/v1/cats', '/v2/cats', '/v1/dogs'].flatMap((path) => [`${path}/a`, `${path}/b`])
      expect(await statuses(server, paths)).toEqual(Array(6).fill(200))
      expect(await statuses(server, paths)).toEqual(Array(6).fill(429))
    })

    it('routes count separately even if a decorator replaced them by functions with the same name', async () => {
      const Traced: MethodDecorator = (_target, _name, descriptor) => {
        const traced = descriptor.value as () => string
        // The function has no name, as with most decorators.
        descriptor.value = [() => traced()][0] as typeof descriptor.value
      }
      const decorators = [Traced, RateLimit({ limits: perHour(1) })]
      const cats = controllerAt('cats', ['a', 'b'], { a: decorators, b: decorators })
      const server = await serve({ limits: perHour(9) }, [cats])
      expect(await statuses(server, ['/cats/a', '/cats/b', '/cats/a', '/cats/b'])).toEqual([
        200, 200, 429, 429,
      ])
    })

    it('derived classes inherit the options of a base class and count separately', async () => {
      const base = controllerAt('base', ['a'], { a: [] }, [RateLimit({ limits: perHour(1) })])
      const [one, other] = ['one', 'other'].map((path) => {
        class Derived extends base {}
        SetMetadata('path', path)(Derived)
        return Derived
      })
      const server = await serve({ limits: perHour(9) }, [one!, other!])
      expect(await statuses(server, ['/one/a', '/other/a', '/one/a', '/other/a'])).toEqual([
        200, 200, 429, 429,
      ])
    })

    it('@SkipRateLimit() exempts a class or route, unless the route overrides it', async () => {
      const cats = controllerAt(
        'cats',
        ['free', 'counted', 'own'],
        { counted: [SkipRateLimit(false)], own: [RateLimit({ limits: perHour(1) })] },
        [SkipRateLimit()],
      )
      const dogs = controllerAt('dogs', ['free'], { free: [SkipRateLimit()] }, [
        RateLimit({ limits: perHour(1) }),
      ])
      const server = await serve({ limits: perHour(1) }, [cats, dogs])
      expect(await statuses(server, times(3, '/cats/free'))).toEqual([200, 200, 200])
      expect(await statuses(server, times(3, '/dogs/free'))).toEqual([200, 200, 200])
      expect((await fetch(`${server.url}/cats/free`)).headers.has('RateLimit')).toBe(false)
      expect(await statuses(server, ['/cats/own', '/cats/own'])).toEqual([200, 429])
      expect(await statuses(server, ['/cats/counted', '/', '/cats/counted'])).toEqual([200, 429, 429])
    })

    it('@RateLimit() on a class applies even if its base class is exempt', async () => {
      const base = controllerAt('base', ['a'], {}, [SkipRateLimit()])
      class Derived extends base {}
      for (const decorator of [SetMetadata('path', 'derived'), RateLimit({ limits: perHour(1) })]) {
        decorator(Derived)
      }
      const server = await serve({ limits: perHour(9) }, [base, Derived])
      expect(await statuses(server, times(2, '/derived/a'))).toEqual([200, 429])
      expect((await fetch(`${server.url}/base/a`)).headers.has('RateLimit')).toBe(false)
    })

    it('charges once, however often the guard was added', async () => {
      const cats = controllerAt(
        'cats',
        ['a'],
        { a: [UseGuards(RateLimitGuard), RateLimit({ limits: perHour(2) })] },
        [UseGuards(RateLimitGuard), RateLimit({ limits: perHour(9) })],
      )
      const server = await serve({ limits: perHour(9) }, [cats])
      expect(await statuses(server, times(3, '/cats/a'))).toEqual([200, 200, 429])
    })

    describe('the module with global: false', () => {
      it('limits only handlers with the decorator or the guard', async () => {
        const cats = controllerAt('cats', ['free', 'own', 'guarded'], {
          own: [RateLimit({ limits: perHour(1) })],
          guarded: [UseGuards(RateLimitGuard)],
        })
        const server = await serve({ limits: perHour(2), global: false }, [cats])
        expect(await statuses(server, times(4, '/cats/free'))).toEqual(Array(4).fill(200))
        expect(await statuses(server, times(2, '/cats/own'))).toEqual([200, 429])
        expect(await statuses(server, times(3, '/cats/guarded'))).toEqual([200, 200, 429])
      })

      it('works without limits, and a guarded handler without limits fails', async () => {
        const cats = controllerAt('cats', ['own', 'guarded'], {
          own: [RateLimit({ limits: perHour(1) })],
          guarded: [UseGuards(RateLimitGuard)],
        })
        const server = await serve({ global: false }, [cats])
        expect(await statuses(server, ['/cats/own', '/cats/own', '/cats/guarded'])).toEqual([200, 429, 500])
        expect(server.errors).toEqual([expect.objectContaining({ code: 'invalid_option' })])
      })

      it('runs after a guard that sets the user', async () => {
        interface Known extends HttpRequest {
          user?: { readonly id: string }
        }
        const login: CanActivate = {
          canActivate: (context: ExecutionContext) => {
            const request: Known = context.switchToHttp().getRequest()
            request.user = { id: `${request.headers['x-user']}` }
            return true
          },
        }
        const perUser = RateLimit({ limits: perHour(1), key: (request: Known) => request.user!.id })
        const cats = controllerAt('cats', ['a'], { a: [perUser, UseGuards(login)] }, [UseGuards(login)])
        const server = await serve({ global: false }, [cats])
        const answers: number[] = []
        for (const user of ['ann', 'bob', 'ann']) {
          answers.push((await fetch(`${server.url}/cats/a`, { headers: { 'x-user': user } })).status)
        }
        expect(answers).toEqual([200, 200, 429])
      })
    })

    it('forRootAsync creates the options from injected providers', async () => {
      class Plans {
        readonly limit = 2
      }
      class PlansModule {}
      const plans = { module: PlansModule, providers: [Plans], exports: [Plans] }
      const server = await temporaryApp(platform, {
        imports: [
          RateLimitModule.forRootAsync({
            imports: [plans],
            inject: [Plans],
            useFactory: async ({ limit }: Plans) => ({ limits: perHour(limit) }),
          }),
        ],
      })
      expect(await statuses(server, times(3, '/'))).toEqual([200, 200, 429])
    })

    it('limits request-scoped controllers', async () => {
      const scoped = controllerAt(
        'cats',
        ['a', 'own'],
        { own: [RateLimit({ limits: perHour(1) })] },
        [RateLimit({ limits: perHour(2) })],
        { scope: Scope.REQUEST },
      )
      const server = await serve({ limits: perHour(9) }, [scoped])
      expect(await statuses(server, times(3, '/cats/a'))).toEqual([200, 200, 429])
      expect(await statuses(server, times(2, '/cats/own'))).toEqual([200, 429])
    })

    describe('denial exceptions', () => {
      const seen: unknown[] = []
      beforeEach(() => {
        seen.length = 0
      })

      /** A filter as in Nest's documentation. */
      class Replacing implements ExceptionFilter<HttpException> {
        catch(exception: HttpException, host: ArgumentsHost): void {
          seen.push(exception)
          const response = host.switchToHttp().getResponse<HttpResponse>()
          const body = exception.getResponse() as object
          response.status(exception.getStatus()).send({ ...body, path: '/' })
        }
      }
      Catch(RateLimitException)(Replacing)

      async function expectReplaced(server: Server, path = '/'): Promise<void> {
        await fetch(`${server.url}${path}`)
        const response = await fetch(`${server.url}${path}`)
        expect([response.status, await response.json()]).toEqual([
          429,
          { statusCode: 429, message: 'Too Many Requests', path: '/' },
        ])
        expect(response.headers.get('Content-Type')).toMatch(/^application\/json/)
        expect(response.headers.get('Retry-After')).toBe('3600')
        expect(response.headers.get('RateLimit')).toBe('"hourly";r=0;t=3600')
        expect(seen).toEqual([expect.any(RateLimitException)])
      }

      it('reach filters of the app, which can change the response', async () => {
        const prepare: Parameters<typeof serve>[2] = {
          prepare: (app) => app.useGlobalFilters(new Replacing()),
        }
        await expectReplaced(await serve({ limits: perHour(1) }, [], prepare))
      })

      it('reach filters among the providers, which can change the response', async () => {
        class Root {}
        const filters = { module: Root, providers: [{ provide: APP_FILTER, useClass: Replacing }] }
        const module = RateLimitModule.forRoot({ limits: perHour(1), store: newStore() })
        const cats = controllerAt('cats', ['a'])
        // Filters that don't belong to a module would run first, so the app has none of its own.
        const server = await temporaryApp(platform, {
          imports: [module, filters],
          controllers: [cats],
          hasFilter: false,
        })
        await expectReplaced(server, '/cats/a')
      })

      it('reach filters of a route, which can change the response', async () => {
        const cats = controllerAt('cats', ['a'], { a: [UseFilters(new Replacing())] })
        await expectReplaced(await serve({ limits: perHour(1) }, [cats]), '/cats/a')
        expect((seen[0] as RateLimitException).message).toBe('Too Many Requests')
      })

      it('use status 403 for an address in `deny`', async () => {
        const server = await serve({ limits: perHour(1), deny: ['127.0.0.1'] }, [], {
          prepare: (app) => app.useGlobalFilters(new Replacing()),
        })
        const response = await fetch(server.url)
        expect([response.status, await response.json()]).toEqual([
          403,
          { statusCode: 403, message: 'Forbidden', path: '/' },
        ])
      })

      it('give way to an exception thrown by onDenied', async () => {
        const onDenied: RateLimitOptions['onDenied'] = ({ retryAfterMs }) => {
          throw new HttpException({ wait: retryAfterMs }, 420)
        }
        const server = await serve({ limits: perHour(1), onDenied })
        await fetch(server.url)
        const response = await fetch(server.url)
        expect([response.status, Object.keys((await response.json()) as object)]).toEqual([420, ['wait']])
        expect(response.headers.get('Retry-After')).toBe('3600')
      })

      it('set their content type, even if middleware already set one', async () => {
        const server = await serve({ limits: perHour(1) }, [], {
          prepare: (app) =>
            app.use(
              (
                _request: unknown,
                response: { setHeader(name: string, value: string): void },
                next: () => void,
              ) => {
                response.setHeader('Content-Type', 'text/x-other')
                next()
              },
            ),
        })
        await fetch(server.url)
        expect((await fetch(server.url)).headers.get('Content-Type')).toBe('application/problem+json')
      })
    })

    describe('handlers that do not serve HTTP', () => {
      class Resolver {
        ask(): string {
          return 'answer'
        }
        skipped(): string {
          return 'answer'
        }
      }
      SkipRateLimit()(
        Resolver.prototype,
        'skipped',
        Object.getOwnPropertyDescriptor(Resolver.prototype, 'skipped')!,
      )
      const call = async (
        { app }: { app: INestApplication },
        name: 'ask' | 'skipped',
        ...args: unknown[]
      ) => {
        const instance = new Resolver()
        const context = app.get(ExternalContextCreator)
        const rest = [undefined, undefined, undefined, undefined, undefined] as const
        return await context.create(instance, instance[name], name, ...rest, 'graphql')(...args)
      }

      // The app's filter would respond as if the errors came from HTTP requests.
      const hasFilter = false

      it('fail instead of being unlimited, unless they are exempt', async () => {
        const server = await serve({ limits: perHour(1) }, [], { hasFilter })
        await expect(call(server, 'ask')).rejects.toMatchObject({ code: 'invalid_option', value: 'graphql' })
        expect(await call(server, 'skipped')).toBe('answer')
      })

      it('count every call if requestOf returns their request', async () => {
        const requestOf: RateLimitOptions['requestOf'] = (context) => context.getArgByIndex(2)
        const server = await serve({ limits: perHour(2), requestOf, headers: false }, [], {
          hasFilter,
          prepare: (app) =>
            app.getHttpAdapter().get('/graphql', async (request: HttpRequest, response: HttpResponse) => {
              const answers: unknown[] = []
              for (let i = 0; i < 3; i++) {
                const asked = call({ app }, 'ask', undefined, undefined, [request, response])
                answers.push(await asked.catch((error: HttpException) => error.getResponse()))
              }
              response.send(answers)
            }),
        })
        const response = await fetch(`${server.url}/graphql`)
        const denied = { statusCode: 429, message: 'Too Many Requests' }
        expect([response.status, await response.json()]).toEqual([200, ['answer', 'answer', denied]])
      })
    })

    describe('startup fails with', () => {
      it.each<[string, () => Promise<unknown>]>([
        ['options without limits', () => serve({})],
        ['invalid options', () => serve({ limits: perHour(1), denied: 'never' as 'drop' })],
        [
          'invalid options of a class',
          () =>
            serve({ limits: perHour(1) }, [
              controllerAt('cats', ['a'], {}, [RateLimit({ key: 7 as never })]),
            ]),
        ],
        [
          'invalid options of a route',
          () =>
            serve({ limits: perHour(1) }, [controllerAt('cats', ['a'], { a: [RateLimit({ name: 'x' })] })]),
        ],
        [
          'a misspelled option of a route',
          () =>
            serve({ limits: perHour(1) }, [
              controllerAt('cats', ['a'], { a: [RateLimit({ keey: () => 'all' } as object)] }),
            ]),
        ],
        [
          'a misspelled option of the module',
          () => serve({ limits: perHour(1), gloabl: false } as RateLimitModuleOptions),
        ],
        [
          'a misspelled option of forRootAsync',
          async () =>
            RateLimitModule.forRootAsync({ useFactory: () => ({}), improts: [] } as RateLimitAsyncOptions),
        ],
        [
          'request-scoped options, which would never count',
          () =>
            temporaryApp(platform, {
              imports: [
                RateLimitModule.forRootAsync({
                  global: false,
                  inject: [REQUEST],
                  useFactory: () => ({ limits: perHour(1) }),
                }),
              ],
              controllers: [controllerAt('cats', ['a'], { a: [UseGuards(RateLimitGuard)] })],
            }),
        ],
        [
          'two imports of the module, which would charge twice',
          () =>
            serve({ limits: perHour(1) }, [], { imports: [RateLimitModule.forRoot({ limits: perHour(1) })] }),
        ],
        [
          'a route without limits in an app without limits',
          () =>
            serve({ global: false }, [controllerAt('cats', ['a'], { a: [RateLimit({ cost: () => 2 })] })]),
        ],
      ])('%s', async (_, make) => {
        await expect(make()).rejects.toMatchObject({ code: 'invalid_option' })
      })

      it('decorators but no module', async () => {
        const cats = controllerAt('cats', ['a'], { a: [RateLimit({ limits: perHour(1) })] })
        await expect(temporaryApp(platform, { controllers: [cats] })).rejects.toThrow(
          /dependencies of the RateLimitGuard/,
        )
      })
    })

    it.each<[string, unknown]>([
      ['true', true],
      ['networks of all addresses', '0.0.0.0/1, 128.0.0.0/1'],
    ])('rejects every request if the trust setting trusts every client: %s', async (_, trust) => {
      const server = await serve({ limits: perHour(9) }, [], { trust })
      expect(await statuses(server, times(2, '/'))).toEqual([500, 500])
      expect(server.errors).toEqual(
        Array(2).fill(expect.objectContaining({ code: 'invalid_option', value: true })),
      )
      const keyed = await serve({ limits: perHour(1), key: () => 'all' }, [], { trust })
      expect(await statuses(keyed, times(2, '/'))).toEqual([200, 429])
    })
  })
})

it("types the options with the platform's types", () => {
  const limits = perHour(1)
  RateLimitModule.forRoot({ limits, key: (request: Request) => request.ip ?? 'unknown' })
  RateLimitModule.forRoot({
    limits,
    key: (request: FastifyRequest) => request.id,
    onDenied: (_decision, _request, reply: FastifyReply) => reply.code(418).send(),
  })
  RateLimitModule.forRootAsync({
    useFactory: () => ({ limits, key: (request: Request) => request.hostname }),
  })
  RateLimit({ limits, cost: (request: Request) => request.accepts().length })
  rateLimit({
    limits,
    key: (request) => {
      expectTypeOf(request).toEqualTypeOf<HttpRequest>()
      return request.ip ?? 'unknown'
    },
    onDenied: (_decision, _request, response, context) => {
      expectTypeOf(response).toEqualTypeOf<HttpResponse>()
      expectTypeOf(context).toEqualTypeOf<ExecutionContext>()
    },
  })
  // @ts-expect-error a key is a string
  rateLimit({ limits, key: () => 7 })
  // @ts-expect-error a route has no global option
  expect(() => RateLimit({ limits, global: false })).not.toThrow()
  expectTypeOf(rateLimit({ limits })).toExtend<CanActivate>()
  expectTypeOf<Request>().toExtend<HttpRequest>()
  expectTypeOf<FastifyRequest>().toExtend<HttpRequest>()
})
