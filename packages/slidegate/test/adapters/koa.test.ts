// tier: integration
import Koa, { type Context, type Middleware, type Next } from 'koa'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { type RateLimitOptions, rateLimit } from '../../src/adapters/koa.ts'
import { createLimiter, type Decision, slidingWindow } from '../../src/index.ts'
import { CANCEL, converseByHttp2 } from './http2.ts'
import { listen } from './listen.ts'
import { newStore } from './suite/fixture.ts'
import { type AdapterUnderTest, adapterSuite, type Server } from './suite.ts'
import { statuses, temporary } from './temporary.ts'

type Args = [ctx: Context, next: Next]

const once = (): RateLimitOptions => ({
  limits: [slidingWindow({ limit: 1, window: '1h', name: 'once' })],
  store: newStore(),
})

describe('Koa', () => {
  async function serve(mount: (app: Koa) => void): Promise<Server> {
    const errors: unknown[] = []
    let served = 0
    const app = new Koa()
    mount(app)
    app.use((ctx) => {
      served++
      ctx.status = Number(ctx.get('x-status') || 200)
      if (ctx.get('x-used')) ctx.set('x-used', ctx.get('x-used'))
      ctx.body = 'served'
    })
    app.on('error', (error) => {
      // Koa also reports broken connections.
      if (error.code !== 'EPIPE' && error.code !== 'ECONNRESET') errors.push(error)
    })
    return { ...(await listen(app.callback())), served: () => served, errors }
  }

  const temporaryApp = (mount: (app: Koa) => void): Promise<Server> => temporary(serve(mount))

  const adapter: AdapterUnderTest<Args> = {
    async serve(options, { behindProxy = false } = {}) {
      return await serve((app) => {
        app.proxy = behindProxy
        app.maxIpsCount = 1
        app.use(answerErrors)
        for (const each of options) app.use(rateLimit(each))
      })
    },
    header: (ctx, name) => ctx.get(name) || (ctx.headers[name] as string | undefined),
    teapot: ({ cost }, ctx) => {
      ctx.status = 418
      ctx.body = `cost ${cost}`
    },
  }
  adapterSuite(adapter)

  describe('specifics', () => {
    it.each<[string, Partial<Koa>]>([
      ['the whole header', { proxy: true }],
      ['an invalid number of addresses', { proxy: true, maxIpsCount: -1 }],
      ['more hops than are supported', { proxy: true, maxIpsCount: 1000 }],
      ['a header with another name', { proxy: true, proxyIpHeader: 'X-Client-IP' }],
    ])('rejects every request if the proxy setting trusts every client: %s', async (_, settings) => {
      const server = await temporaryApp((app) => Object.assign(app, settings).use(rateLimit(once())))
      expect(await statuses(server, ['/', '/'])).toEqual([500, 500])
      expect(server.errors).toEqual(
        Array(2).fill(
          expect.objectContaining({
            code: 'invalid_option',
            message: expect.stringContaining('set maxIpsCount to the number of your proxies'),
          }),
        ),
      )
    })

    it('counts proxies from the right by maxIpsCount', async () => {
      const server = await temporaryApp((app) =>
        Object.assign(app, { proxy: true, maxIpsCount: 2 }).use(rateLimit(once())),
      )
      const ask = async (chain: string) =>
        (await fetch(server.url, { headers: { 'X-Forwarded-For': chain } })).status
      expect(await ask('6.6.6.1, 192.0.2.1, 10.0.0.1')).toBe(200)
      expect(await ask('6.6.6.2, 192.0.2.1, 10.0.0.2')).toBe(429)
      expect(await ask('192.0.2.2, 10.0.0.1')).toBe(200)
    })

    it('accepts such a setting with a key function or an address', async () => {
      for (const own of [{ key: () => 'all' }, { address: { trust: 0 } }]) {
        const server = await temporaryApp((app) =>
          Object.assign(app, { proxy: true }).use(rateLimit({ ...once(), ...own })),
        )
        expect(await statuses(server, ['/', '/'])).toEqual([200, 429])
      }
    })

    it('lets outer middleware change the status and body', async () => {
      const seen: unknown[] = []
      const server = await temporaryApp((app) => {
        app.use(async (ctx, next) => {
          await next()
          seen.push(ctx.status, ctx.type, typeof ctx.body)
          ctx.set('X-Around', 'yes')
        })
        app.use(rateLimit(once()))
      })
      await statuses(server, ['/'])
      const denied = await fetch(server.url)
      expect([denied.status, denied.headers.get('X-Around')]).toEqual([429, 'yes'])
      expect(seen).toEqual([200, 'text/plain', 'string', 429, 'application/problem+json', 'string'])
    })

    it('keeps the headers of a response if outer middleware handles the error', async () => {
      const server = await temporaryApp((app) => {
        app.use(async (ctx, next) => {
          try {
            await next()
          } catch {
            ctx.status = 409
          }
        })
        app.use(rateLimit(once()))
        app.use((ctx) => ctx.throw(400))
      })
      const response = await fetch(server.url)
      expect([response.status, response.headers.get('RateLimit')]).toEqual([409, '"once";r=0;t=3600'])
    })

    it('adds to an existing RateLimit header', async () => {
      const server = await temporaryApp((app) => {
        app.use(async (ctx, next) => {
          ctx.set('RateLimit', '"cdn";r=5')
          await next()
        })
        app.use(rateLimit(once()))
      })
      const response = await fetch(server.url)
      expect(response.headers.get('RateLimit')).toBe('"cdn";r=5, "once";r=0;t=3600')
    })

    it('lets onDenied call next', async () => {
      const server = await temporaryApp((app) =>
        app.use(rateLimit({ ...once(), onDenied: (_decision, _ctx, next) => next() })),
      )
      expect(await statuses(server, ['/', '/'])).toEqual([200, 200])
    })

    it('rethrows an error from downstream once', async () => {
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

    it.each<[string, Partial<RateLimitOptions>]>([
      ['key', { key: () => Promise.reject(undefined) }],
      ['onDenied', { cost: () => 2, onDenied: () => Promise.reject(undefined) }],
    ])("leaves the response to Koa's error handler, even if %s throws undefined", async (_, options) => {
      const server = await temporaryApp((app) => {
        app.use(rateLimit({ ...once(), ...options }))
      })
      const response = await fetch(server.url)
      expect([response.status, await response.text()]).toEqual([500, 'Internal Server Error'])
      expect(server.errors).toEqual([expect.objectContaining({ message: 'thrown: undefined' })])
    })

    it('settles by the status of an error response', async () => {
      const limiter = createLimiter({ limits: [slidingWindow({ limit: 1, window: '1h', name: 'once' })] })
      const server = await temporaryApp((app) => {
        app.use(rateLimit({ limiter, key: () => 'k', refundIf: ({ status }) => status === 401 }))
        app.use((ctx) => ctx.throw(401))
      })
      expect(await statuses(server, ['/'])).toEqual([401])
      await expect.poll(async () => (await limiter.peek('k')).remaining).toBe(1)
    })

    it("drops a connection without an error, and Koa doesn't respond", async () => {
      const told: unknown[] = []
      const server = await temporaryApp((app) => {
        app.use(async (ctx, next) => {
          await next()
          told.push(ctx.respond)
        })
        app.use(rateLimit({ ...once(), denied: 'drop' }))
      })
      expect(await statuses(server, ['/'])).toEqual([200])
      await expect(fetch(server.url)).rejects.toThrow('fetch failed')
      expect([told, server.errors]).toEqual([[undefined, false], []])
    })

    it('drops only the stream over HTTP/2, without a response', async () => {
      const errors: unknown[] = []
      const app = new Koa().on('error', (error) => errors.push(error))
      app.use(rateLimit({ ...once(), denied: 'drop' })).use((ctx) => {
        ctx.body = 'served'
      })
      const { ask, isOpen } = await converseByHttp2(app.callback())
      expect([await ask(), await ask(), await ask()]).toEqual([200, CANCEL, CANCEL])
      expect([isOpen(), errors]).toEqual([true, []])
    })

    it('types the options with Koa types', () => {
      const options: RateLimitOptions = {
        ...once(),
        key: (ctx) => ctx.state.user as string,
        cost: (ctx) => ctx.request.length ?? 1,
        onDenied(decision, ctx, next) {
          expectTypeOf(decision).toEqualTypeOf<Decision>()
          expectTypeOf(ctx.path).toEqualTypeOf<string>()
          expectTypeOf(next).toEqualTypeOf<Next>()
        },
      }
      expectTypeOf(rateLimit(options)).toEqualTypeOf<Middleware>()
      new Koa<{ user: string }, { log: () => void }>().use(rateLimit(options))
      // @ts-expect-error: a key is a string, or an object of strings
      rateLimit({ ...once(), key: (ctx) => ctx.request.length })
      // @ts-expect-error: an unknown option
      expect(() => rateLimit({ ...once(), max: 5 })).toThrow('unknown option')
    })
  })
})

/** Responds to errors with an empty 500, like the servers of the other adapters. */
const answerErrors: Middleware = async (ctx, next) => {
  try {
    await next()
  } catch (error) {
    ctx.app.emit('error', error, ctx)
    ctx.status = 500
    ctx.body = ''
    ctx.remove('Content-Type')
  }
}

/** An app whose handler serves every path. `mount` adds middleware before it. */
