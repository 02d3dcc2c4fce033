// tier: integration
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { type RateLimitOptions, rateLimit } from '../../src/adapters/express.ts'
import { slidingWindow } from '../../src/index.ts'
import { listen } from './listen.ts'
import { newStore } from './suite/fixture.ts'
import { type AdapterUnderTest, adapterSuite, type Server } from './suite.ts'
import { statuses, temporary } from './temporary.ts'

type Args = [req: Request, res: Response, next: NextFunction]

const once = (): RateLimitOptions => ({
  limits: [slidingWindow({ limit: 1, window: '1h', name: 'once' })],
  store: newStore(),
})

describe('Express', () => {
  const adapter: AdapterUnderTest<Args> = {
    async serve(options, { behindProxy = false } = {}) {
      return await serve((app) => {
        app.set('trust proxy', behindProxy && 'loopback')
        for (const each of options) app.use(rateLimit(each))
      })
    },
    header: (req, name) => req.get(name),
    teapot: ({ cost }, _req, res) => res.status(418).send(`cost ${cost}`),
  }
  adapterSuite(adapter)

  describe('specifics', () => {
    it.each<[string, unknown]>([
      ['true', true],
      ['a function that trusts every address', () => true],
      ['networks of all addresses', ['0.0.0.0/1', '128.0.0.0/1']],
      ['all IPv6 networks', ['::/1', '8000::/1']],
      ['more hops than are supported', 1000],
    ])("rejects every request if 'trust proxy' trusts every client: %s", async (_, trust) => {
      const server = await temporaryApp((app) => {
        app.set('trust proxy', trust)
        app.use(rateLimit(once()))
      })
      expect(await statuses(server, ['/', '/'])).toEqual([500, 500])
      expect(server.errors).toEqual(
        Array(2).fill(expect.objectContaining({ code: 'invalid_option', value: true })),
      )
    })

    it.each<[string, unknown]>([
      ['networks', ['loopback', '10.0.0.0/8']],
      ['a number of hops', 3],
      ['a function that counts', (_: string, hop: number) => hop < 3],
    ])("accepts a 'trust proxy' with a bound: %s", async (_, trust) => {
      const server = await temporaryApp((app) => {
        app.set('trust proxy', trust)
        app.use(rateLimit(once()))
      })
      expect(await statuses(server, ['/', '/'])).toEqual([200, 429])
    })

    it("accepts a 'trust proxy' of true with a key function", async () => {
      const server = await temporaryApp((app) => {
        app.set('trust proxy', true)
        app.use(rateLimit({ ...once(), key: () => 'all' }))
      })
      expect(await statuses(server, ['/', '/'])).toEqual([200, 429])
    })

    it('limits a router and nothing else', async () => {
      const server = await temporaryApp((app) => {
        const router = express.Router()
        router.use(rateLimit(once()))
        app.use('/api', router)
      })
      expect(await statuses(server, ['/api/1', '/api/2', '/', '/api/3'])).toEqual([200, 429, 200, 429])
    })

    it("checks the 'trust proxy' that a mounted app inherits", async () => {
      const server = await temporaryApp((app) => {
        app.set('trust proxy', true)
        const mounted = express()
        mounted.use(rateLimit(once()))
        app.use('/mounted', mounted)
      })
      expect(await statuses(server, ['/mounted'])).toEqual([500])
      expect(server.errors).toEqual([expect.objectContaining({ code: 'invalid_option' })])
    })

    it('each route can have its own policy for denied requests', async () => {
      const server = await temporaryApp((app) => {
        for (const [path, denied] of [
          ['/rejected', 'reject'],
          ['/dropped', 'drop'],
          ['/delayed', { delay: 1 }],
        ] as const) {
          app.get(path, rateLimit({ ...once(), denied }), (_req, _res, next) => next())
        }
      })
      expect(await statuses(server, ['/rejected', '/rejected', '/delayed', '/delayed', '/dropped'])).toEqual([
        200, 429, 200, 429, 200,
      ])
      await expect(fetch(`${server.url}/dropped`)).rejects.toThrow('fetch failed')
    })

    it('types the options with Express types', () => {
      const right: RateLimitOptions = {
        key: (req) => {
          expectTypeOf(req).toEqualTypeOf<Request>()
          return req.ip ?? ''
        },
        onDenied: (decision, req, res, next) => {
          expectTypeOf(decision.retryAfterMs).toBeNumber()
          expectTypeOf(req).toEqualTypeOf<Request>()
          expectTypeOf(res).toEqualTypeOf<Response>()
          expectTypeOf(next).toEqualTypeOf<NextFunction>()
        },
        refundIf: ({ status, isComplete }, req) => isComplete && status === 304 && req.method === 'GET',
        denied: (req) => (req.method === 'GET' ? { delay: '1s' } : 'reject'),
        headers: ['draft-11', 'legacy'],
      }
      // @ts-expect-error a queue is a number
      const wrong: RateLimitOptions = { denied: { queue: '100' } }
      // @ts-expect-error an unknown format
      const worse: RateLimitOptions = { headers: ['draft-9'] }
      // @ts-expect-error a key is a string, or an object of strings
      const worst: RateLimitOptions = { key: () => 42 }
      expect([right, wrong, worse, worst]).toHaveLength(4)
    })

    it('limits one route', async () => {
      const server = await temporaryApp((app) => {
        app.get('/limited', rateLimit(once()), (_req, _res, next) => next())
      })
      expect(await statuses(server, ['/limited', '/limited', '/'])).toEqual([200, 429, 200])
    })

    it('adds to an existing RateLimit header, however it was set', async () => {
      for (const earlier of ['"cdn";r=5,"lb";r=6', ['"cdn";r=5', '"lb";r=6']]) {
        const server = await temporaryApp((app) => {
          app.use((_req, res, next) => {
            res.setHeader('RateLimit', earlier)
            next()
          })
          app.use(rateLimit(once()))
        })
        const response = await fetch(server.url)
        expect(response.headers.get('RateLimit')).toBe('"cdn";r=5,"lb";r=6, "once";r=0;t=3600')
      }
    })

    it('lets onDenied call next', async () => {
      const server = await temporaryApp((app) => {
        app.use(rateLimit({ ...once(), onDenied: (_decision, _req, _res, next) => next() }))
      })
      expect(await statuses(server, ['/', '/'])).toEqual([200, 200])
    })

    it('passes an error thrown downstream to the error handler once', async () => {
      const thrown = new Error('thrown downstream')
      const server = await temporaryApp((app) => {
        app.use(rateLimit(once()))
        app.use(() => {
          throw thrown
        })
      })
      expect(await statuses(server, ['/'])).toEqual([500])
      expect(server.errors).toEqual([thrown])
    })

    describe('does not catch what next throws', () => {
      const thrown = new Error('thrown by next')

      function pass(options: RateLimitOptions): { returned: unknown; calls: number } {
        let calls = 0
        const req = { app: express(), ip: '192.0.2.1' } as unknown as Request
        const res = { getHeader: () => undefined, setHeader: () => {} } as unknown as Response
        const returned: unknown = rateLimit(options)(req, res, () => {
          calls++
          throw thrown
        })
        return {
          returned,
          get calls() {
            return calls
          },
        }
      }

      it('with a synchronous decision', () => {
        expect(() => pass(once())).toThrow(thrown)
      })

      it('with an asynchronous decision', async () => {
        const uncaught = new Promise((resolve) => catchOneRejection(resolve))
        const passed = pass({ ...once(), key: async () => 'ann' })
        expect(passed.returned).toBeUndefined()
        expect(await uncaught).toBe(thrown)
        expect(passed.calls).toBe(1)
      })
    })

    it('reports once that the response was already sent', async () => {
      const server = await temporaryApp((app) => {
        app.use((_req, res, next) => {
          res.send('too late')
          next()
        })
        app.use(rateLimit(once()))
      })
      expect(await (await fetch(server.url)).text()).toBe('too late')
      await expect
        .poll(() => server.errors)
        .toEqual([expect.objectContaining({ code: 'ERR_HTTP_HEADERS_SENT' })])
      expect(server.served()).toBe(0)
    })
  })

  /** Starts an app whose handler serves every path, with an error handler. `mount` adds middleware before them. */
  async function serve(mount: (app: ReturnType<typeof express>) => void): Promise<Server> {
    const errors: unknown[] = []
    let served = 0
    const app = express()
    mount(app)
    app.use(((req, res) => {
      served++
      const used = req.get('x-used')
      if (used !== undefined) res.set('x-used', used)
      res.status(Number(req.get('x-status') ?? 200)).send('served')
    }) satisfies RequestHandler)
    app.use((error: unknown, _req: Request, res: Response, _next: NextFunction) => {
      errors.push(error)
      if (!res.headersSent) res.status(500).end()
    })
    return { ...(await listen(app)), served: () => served, errors }
  }

  const temporaryApp = (mount: (app: ReturnType<typeof express>) => void): Promise<Server> =>
    temporary(serve(mount))
})

/** Catches the next unhandled rejection. Otherwise the test runner would fail the run. */
function catchOneRejection(report: (reason: unknown) => void): void {
  const listeners = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.once('unhandledRejection', (reason) => {
    for (const listener of listeners) process.on('unhandledRejection', listener)
    report(reason)
  })
}
