// tier: integration
import {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  fastify,
  type RouteShorthandOptions,
} from 'fastify'
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { type RateLimitOptions, rateLimit } from '../../src/adapters/fastify.ts'
import { createLimiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { CANCEL, converseByHttp2 } from './http2.ts'
import { newStore, until } from './suite/fixture.ts'
import { type AdapterUnderTest, adapterSuite, type Server } from './suite.ts'
import { statuses, temporary } from './temporary.ts'

type Args =
  Parameters<NonNullable<RateLimitOptions['onDenied']>> extends [unknown, ...infer Rest] ? Rest : never

const once = (): RateLimitOptions => ({
  limits: [slidingWindow({ limit: 1, window: '1h', name: 'once' })],
  store: newStore(),
})

describe('Fastify 5', () => {
  const adapter: AdapterUnderTest<Args> = {
    async serve(options, { behindProxy = false } = {}) {
      return await serve(
        (app) => {
          for (const each of options) app.register(rateLimit(each))
        },
        { trustProxy: behindProxy && '127.0.0.1' },
      )
    },
    header: (request, name) => request.headers[name] as string | undefined,
    teapot: ({ cost }, _request, reply) => reply.code(418).send(`cost ${cost}`),
  }
  adapterSuite(adapter)

  describe('specifics', () => {
    it.each<[string, FastifyServerOptions['trustProxy']]>([
      ['true', true],
      ['a function that trusts every address', () => true],
      ['networks of all addresses', '0.0.0.0/1, 128.0.0.0/1'],
      ['all IPv6 networks', '::/1, 8000::/1'],
    ])('rejects every request if trustProxy trusts every client: %s', async (_, trustProxy) => {
      const server = await temporaryApp((app) => app.register(rateLimit(once())), { trustProxy })
      expect(await statuses(server, ['/', '/'])).toEqual([500, 500])
      expect(server.errors).toEqual(Array(2).fill(expect.objectContaining({ code: 'invalid_option' })))
    })

    it('checks trustProxy in each app that registers the same plugin', async () => {
      const plugin = rateLimit(once())
      const right = await temporaryApp((app) => app.register(plugin))
      const wrong = await temporaryApp((app) => app.register(plugin), { trustProxy: true })
      expect([await statuses(right, ['/']), await statuses(wrong, ['/'])]).toEqual([[200], [500]])
    })

    it('checks trustProxy once per plugin, even if requests alternate', async () => {
      let asked = 0
      const trustProxy = () => {
        asked++
        return false
      }
      const server = await temporaryApp(
        (app) => {
          app.register(rateLimit({ ...once(), limits: [slidingWindow({ limit: 100, window: '1h' })] }))
          for (const prefix of ['/a', '/b']) {
            app.register(async (plugin) => void plugin.get('/', async () => 'served'), { prefix })
          }
        },
        { trustProxy },
      )
      await statuses(server, ['/a', '/b'])
      expect(asked).toBeGreaterThan(0)
      asked = 0
      // Requests have no X-Forwarded-For header, so only the check calls this function.
      await statuses(server, ['/a', '/b', '/a', '/b'])
      expect(asked).toBe(0)
    })

    it('accepts a trustProxy of true with a key function', async () => {
      const server = await temporaryApp((app) => app.register(rateLimit({ ...once(), key: () => 'all' })), {
        trustProxy: true,
      })
      expect(await statuses(server, ['/', '/'])).toEqual([200, 429])
    })

    it.each<[string, FastifyServerOptions['trustProxy']]>([
      ['networks', ['127.0.0.1', '10.0.0.0/8']],
      ['a function that counts', (_, hop) => hop < 3],
    ])('accepts a trustProxy with a bound: %s', async (_, trustProxy) => {
      const server = await temporaryApp((app) => app.register(rateLimit(once())), { trustProxy })
      expect(await statuses(server, ['/', '/'])).toEqual([200, 429])
    })

    it('limits routes declared before and after it, and paths without a route', async () => {
      const server = await temporaryApp((app) => {
        app.get('/before', async () => 'served')
        app.register(rateLimit(once()))
        app.get('/after', async () => 'served')
      })
      expect(await statuses(server, ['/before', '/after', '/nowhere'])).toEqual([200, 429, 429])
    })

    it('limits the plugin that registers it and nested plugins, but not sibling plugins', async () => {
      const server = await temporaryApp((app) => {
        app.register(async (api) => {
          api.register(rateLimit(once()))
          api.get('/api', async () => 'served')
          api.register(async (inner) => {
            inner.get('/api/inner', async () => 'served')
          })
        })
      })
      expect(await statuses(server, ['/api', '/api/inner', '/', '/api'])).toEqual([200, 429, 200, 429])
    })

    describe('a route with its own options', () => {
      const [five, two, one] = [5, 2, 1].map((limit) => slidingWindow({ limit, window: '1h', name: 'own' }))
      const around: RateLimitOptions = { limits: [two!], key: () => 'all' }
      const handler = async () => 'served'

      it('counts separately if it has its own limits', async () => {
        const server = await temporaryApp((app) => {
          app.register(rateLimit(around))
          app.get('/a', { config: { rateLimit: { limits: [one!] } } }, handler)
          app.get('/b', { config: { rateLimit: { limits: [one!] } } }, handler)
        })
        expect(await statuses(server, ['/a', '/a', '/b', '/b', '/', '/', '/', '/a'])).toEqual([
          ...[200, 429, 200, 429],
          ...[200, 200, 429, 429],
        ])
      })

      it('counts separately from a route whose name has the same 32-bit hash', async () => {
        // The FNV-1a hashes of these names collide, after the name of the app's limiter.
        const urls = ['/v1/reports/42079', '/v1/reports/490456']
        const server = await temporaryApp((app) => {
          app.register(rateLimit({ ...around, store: newStore() }))
          for (const url of urls) app.get(url, { config: { rateLimit: { limits: [one!] } } }, handler)
        })
        expect(await statuses(server, [...urls, ...urls])).toEqual([200, 200, 429, 429])
      })

      it('shares its count with routes of the same limiter name and store', async () => {
        const store = memoryStore()
        const own = { limits: [one!], name: 'shared', store }
        const server = await temporaryApp((app) => {
          app.register(rateLimit(around))
          app.get('/a', { config: { rateLimit: own } }, handler)
          app.get('/b', { config: { rateLimit: { ...own } } }, handler)
          app.get('/c', { config: { rateLimit: { limits: [one!], name: 'shared' } } }, handler)
        })
        expect(await statuses(server, ['/a', '/b', '/c'])).toEqual([200, 429, 200])
      })

      it('counts GET and HEAD together, even if other routes use the same options object', async () => {
        const own: RateLimitOptions = { limits: [two!] }
        const server = await temporaryApp((app) => {
          app.register(rateLimit(around))
          for (const url of ['/a', '/b']) app.get(url, { config: { rateLimit: own } }, handler)
        })
        const heads = [await fetch(`${server.url}/a`, { method: 'HEAD' })]
        expect(await statuses(server, ['/a', '/a', '/b', '/b', '/b'])).toEqual([200, 429, 200, 200, 429])
        heads.push(await fetch(`${server.url}/a`, { method: 'HEAD' }))
        expect(heads.map(({ status }) => status)).toEqual([200, 429])
      })

      it('counts GET and HEAD together, separately from routes with the same URL and other constraints', async () => {
        const limited = (limit: number): RateLimitOptions => ({
          limits: [slidingWindow({ limit, window: '1h', name: 'own' })],
        })
        const server = await temporaryApp((app) => {
          app.register(rateLimit(around))
          for (const major of [1, 2]) {
            const constraints = { version: `${major}.0.0` }
            app.get('/a', { constraints, config: { rateLimit: limited(major) } }, handler)
          }
        })
        const answers: string[] = []
        for (const [method, major] of [
          ['GET', 1],
          ['GET', 2],
          ['HEAD', 1],
          ['HEAD', 2],
          ['GET', 1],
          ['GET', 2],
        ] as const) {
          const headers = { 'Accept-Version': `${major}.x` }
          const { status } = await fetch(`${server.url}/a`, { method, headers })
          answers.push(`${method} ${major}: ${status}`)
        }
        expect(answers).toEqual([
          'GET 1: 200',
          'GET 2: 200',
          'HEAD 1: 429',
          'HEAD 2: 200',
          'GET 1: 429',
          'GET 2: 429',
        ])
      })

      it('uses one queue for GET and HEAD', async () => {
        const limiter = createLimiter({ limits: [one!] })
        const server = await temporaryApp((app) => {
          app.register(rateLimit(around))
          const own: RateLimitOptions = { limiter, denied: { queue: 1, maxWait: '2h' } }
          app.get('/a', { config: { rateLimit: own } }, handler)
        })
        const abort = new AbortController()
        const get = (method: string) => fetch(`${server.url}/a`, { method, signal: abort.signal })
        expect((await get('GET')).status).toBe(200)
        const waiting = get('GET')
        waiting.catch(() => {})
        await until(() => limiter.waiting().length === 1)
        expect((await get('HEAD')).status).toBe(429)
        abort.abort()
        await expect(waiting).rejects.toThrow()
      })

      it.each([null, 0, ''])('rejects %j, since only false exempts a route', async (own) => {
        const app = fastify()
        onTestFinished(() => app.close())
        await app.register(rateLimit(around))
        expect(() => app.get('/', { config: { rateLimit: own as never } }, handler)).toThrow()
      })

      it("shares the app's limits if it sets none, and overrides other options", async () => {
        const server = await temporaryApp((app) => {
          app.register(rateLimit(around))
          app.get('/twice', { config: { rateLimit: { cost: () => 2 } } }, handler)
          app.get('/dropped', { config: { rateLimit: { denied: 'drop' } } }, handler)
          app.get('/silent', { config: { rateLimit: { disclose: false } } }, handler)
        })
        expect(await statuses(server, ['/', '/twice', '/'])).toEqual([200, 429, 200])
        await expect(fetch(`${server.url}/dropped`)).rejects.toThrow('fetch failed')
        const silent = await fetch(`${server.url}/silent`)
        expect([silent.status, silent.headers.has('RateLimit')]).toEqual([429, false])
      })

      it("needs no limits: false exempts it, and a limiter replaces the app's", async () => {
        const limiter = createLimiter({ limits: [one!] })
        const server = await temporaryApp((app) => {
          app.register(rateLimit(around))
          app.get('/free', { config: { rateLimit: false } }, handler)
          app.get('/own', { config: { rateLimit: { limiter } } }, handler)
        })
        expect(await statuses(server, ['/free', '/free', '/free', '/own', '/own'])).toEqual([
          ...[200, 200, 200],
          ...[200, 429],
        ])
        expect((await limiter.peek('all')).remaining).toBe(0)
      })

      it("gets limits with global: false, and other routes don't", async () => {
        const server = await temporaryApp((app) => {
          app.register(rateLimit({ global: false, key: () => 'all' }))
          app.get('/own', { config: { rateLimit: { limits: [one!] } } }, handler)
        })
        expect(await statuses(server, ['/', '/', '/own', '/own'])).toEqual([200, 200, 200, 429])
      })

      it('obeys the limits of its plugin and the enclosing plugins', async () => {
        const server = await temporaryApp((app) => {
          app.register(rateLimit({ limits: [five!], key: () => 'all' }))
          app.register(async (inner) => {
            inner.register(rateLimit({ ...around, name: 'inner' }))
            inner.get('/inner', handler)
          })
        })
        expect(await statuses(server, ['/inner', '/inner', '/inner', '/', '/', '/'])).toEqual([
          ...[200, 200, 429],
          ...[200, 200, 429],
        ])
      })

      it('rejects invalid options when the route is declared', async () => {
        const app = fastify()
        onTestFinished(() => app.close())
        await app.register(rateLimit(around))
        const misspelt = { keey: () => 'all' } as object
        for (const own of [
          ...[{ limits: [] }, { headers: 'none' as never }, { limiter: {} as never }, misspelt],
        ]) {
          expect(() => app.get('/', { config: { rateLimit: own } }, handler)).toThrow(
            expect.objectContaining({ code: expect.stringMatching(/^invalid_/) }),
          )
        }
      })
    })

    it('types the options with Fastify types', () => {
      const right: RateLimitOptions = {
        key: (request) => {
          expectTypeOf(request).toEqualTypeOf<FastifyRequest>()
          return request.ip
        },
        settle: (response, request, reply) => {
          expectTypeOf(response.status).toBeNumber()
          expectTypeOf(request).toEqualTypeOf<FastifyRequest>()
          expectTypeOf(reply).toEqualTypeOf<FastifyReply>()
          return 0
        },
      }
      const route: RouteShorthandOptions = { config: { rateLimit: { ...right, denied: { delay: '1s' } } } }
      // @ts-expect-error an unknown policy
      const wrong: RateLimitOptions = { denied: 'wait' }
      // @ts-expect-error an unknown word
      const worse: RouteShorthandOptions = { config: { rateLimit: { refundIf: 'always' } } }
      expect([right, route, wrong, worse]).toHaveLength(4)
    })

    it('drops only its own HTTP/2 stream', async () => {
      const app = fastify({ http2: true })
      onTestFinished(() => app.close())
      app.register(rateLimit({ ...once(), denied: 'drop' }))
      app.get('/', async () => 'served')
      await app.ready()
      const { ask, isOpen } = await converseByHttp2((req, res) => app.routing(req, res))
      expect([await ask(), await ask(), isOpen()]).toEqual([200, CANCEL, true])
    })

    it('shares the count if several instances register the same plugin', async () => {
      const plugin = rateLimit({ ...once(), key: () => 'all' })
      const one = await temporaryApp((app) => app.register(plugin))
      const other = await temporaryApp((app) => app.register(plugin))
      expect([await statuses(one, ['/']), await statuses(other, ['/'])]).toEqual([[200], [429]])
    })

    it('settles injected requests, too', async () => {
      const told: unknown[] = []
      const app = fastify()
      onTestFinished(() => app.close())
      app.register(
        rateLimit({
          ...once(),
          settle: ({ status, isComplete }) => {
            told.push([status, isComplete])
            return 0
          },
        }),
      )
      app.get('/', async () => 'served')
      await app.inject('/')
      await until(() => told.length === 1)
      expect(told).toEqual([[200, true]])
    })

    it('adds to an existing RateLimit header', async () => {
      const server = await temporaryApp((app) => {
        app.addHook('onRequest', async (_request, reply) => {
          reply.header('RateLimit', '"cdn";r=5')
        })
        app.register(rateLimit(once()))
      })
      const response = await fetch(server.url)
      expect(response.headers.get('RateLimit')).toBe('"cdn";r=5, "once";r=0;t=3600')
    })

    it('lets onDenied call next', async () => {
      const server = await temporaryApp((app) =>
        app.register(rateLimit({ ...once(), onDenied: (_decision, _request, _reply, done) => done() })),
      )
      expect(await statuses(server, ['/', '/'])).toEqual([200, 200])
    })

    it('declares its name and that it needs Fastify 5', async () => {
      const app = fastify()
      await app.register(rateLimit(once()))
      expect(app.hasPlugin('slidegate')).toBe(true)
      expect(app.printPlugins()).toContain('slidegate')
      Object.defineProperty(app, 'version', { value: '4.29.0' })
      await expect(app.register(rateLimit(once()))).rejects.toMatchObject({
        code: 'FST_ERR_PLUGIN_VERSION_MISMATCH',
      })
    })

    it('leaves later hooks and error handlers unaffected', async () => {
      const thrown = new Error('thrown downstream')
      const server = await temporaryApp((app) => {
        app.register(rateLimit(once()))
        app.addHook('preHandler', async () => {
          throw thrown
        })
      })
      expect(await statuses(server, ['/'])).toEqual([500])
      expect(server.errors).toEqual([thrown])
    })

    it('ignores requests to which an earlier hook has responded', async () => {
      const server = await temporaryApp((app) => {
        app.addHook('onRequest', (_request, reply, done) => {
          reply.send('too early')
          done()
        })
        app.register(rateLimit(once()))
      })
      expect(await (await fetch(server.url)).text()).toBe('too early')
      expect(server.served()).toBe(0)
    })
  })
})

/** Starts an app with a route that serves `/`, and an error handler. `mount` adds plugins before them. */
async function serve(
  mount: (app: FastifyInstance) => unknown,
  options: FastifyServerOptions = {},
): Promise<Server> {
  const errors: unknown[] = []
  let served = 0
  const app = fastify({ ...options, forceCloseConnections: true })
  app.setErrorHandler((error, _request: FastifyRequest, reply) => {
    errors.push(error)
    reply.code(500).send()
  })
  mount(app)
  app.route({
    method: ['GET', 'POST'],
    url: '/',
    handler: async ({ headers }, reply) => {
      served++
      if (headers['x-used'] !== undefined) reply.header('x-used', headers['x-used'])
      return await reply.code(Number(headers['x-status'] ?? 200)).send('served')
    },
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return { url, served: () => served, errors, close: () => app.close() }
}

const temporaryApp = (
  mount: (app: FastifyInstance) => unknown,
  options?: FastifyServerOptions,
): Promise<Server> => temporary(serve(mount, options))
