// tier: integration
import { getRequestListener } from '@hono/node-server'
import { type Context, Hono, type MiddlewareHandler, type Next } from 'hono'
import { cors } from 'hono/cors'
import { HTTPException } from 'hono/http-exception'
import { stream } from 'hono/streaming'
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest'
import { type RateLimitOptions, rateLimit } from '../../src/adapters/hono.ts'
import { type Decision, slidingWindow } from '../../src/index.ts'
import { CANCEL, converseByHttp2 } from './http2.ts'
import { listen } from './listen.ts'
import { newStore } from './suite/fixture.ts'
import { type AdapterUnderTest, adapterSuite, type Server } from './suite.ts'
import { statuses, temporary } from './temporary.ts'

type Args = [c: Context, next: Next]

const once = (name = 'once'): RateLimitOptions => ({
  limits: [slidingWindow({ limit: 1, window: '1h', name })],
  store: newStore(),
})

describe('Hono 4', () => {
  const adapter: AdapterUnderTest<Args> = {
    async serve(options, { behindProxy = false } = {}) {
      return await serve((app) => {
        for (const each of options) {
          app.use(
            rateLimit({
              ...(behindProxy && { address: { trust: ['loopback'] } }),
              ...(each as RateLimitOptions),
            }),
          )
        }
      })
    },
    header: (c, name) => c.req.header(name),
    teapot: ({ cost }, c) => c.text(`cost ${cost}`, 418),
  }
  adapterSuite(adapter)

  describe('specifics', () => {
    it('limits a route and nothing else', async () => {
      const server = await temporaryApp((app) => {
        app.get('/limited', rateLimit(once()), (c) => c.text('served'))
        app.route('/api', new Hono().use(rateLimit(once())))
      })
      expect(await statuses(server, ['/limited', '/limited', '/', '/api/1', '/api/2'])).toEqual([
        200, 429, 200, 404, 429,
      ])
    })

    it('limits paths without a route', async () => {
      const app = new Hono().use(rateLimit({ ...once(), key: () => 'k' }))
      expect((await app.request('/nowhere')).status).toBe(404)
      expect((await app.request('/nowhere')).status).toBe(429)
    })

    it('keeps headers that were set by c.header and c.res, on admitted and denied requests', async () => {
      for (const answer of [(c: Context) => c.text('served'), () => new Response('served')]) {
        const server = await temporaryApp((app) => {
          app.use(cors())
          app.use(async (c, next) => {
            c.header('X-Id', '7')
            c.res.headers.set('RateLimit', '"cdn";r=5')
            await next()
          })
          app.use(rateLimit(once()))
          app.get('/', answer)
        })
        for (const status of [200, 429]) {
          const response = await fetch(server.url)
          expect(response.status).toBe(status)
          expect(response.headers.get('X-Id')).toBe('7')
          expect(response.headers.get('Access-Control-Allow-Origin')).toBe('*')
          expect(response.headers.get('RateLimit')).toBe('"once";r=0;t=3600, "cdn";r=5')
          expect(response.headers.get('Content-Type')).toMatch(
            status === 200 ? /text\/plain/ : /^application\/problem\+json$/,
          )
        }
      }
    })

    it('keeps headers of c.header on a denied request if c.res is unused', async () => {
      const server = await temporaryApp((app) => {
        app.use(async (c, next) => {
          c.header('X-Id', '7')
          await next()
        })
        app.use(rateLimit(once()))
      })
      await statuses(server, ['/'])
      const denied = await fetch(server.url)
      expect([denied.status, denied.headers.get('X-Id')]).toEqual([429, '7'])
      expect(denied.headers.get('Content-Type')).toBe('application/problem+json')
    })

    it('sets headers on immutable responses', async () => {
      const upstream = await listen((_req, res) =>
        res.writeHead(203, { 'x-up': 'stream', RateLimit: '"up";r=5' }).end('from afar'),
      )
      onTestFinished(() => upstream.close())
      const server = await temporaryApp((app) => {
        app.use(rateLimit(once()))
        app.get('/', () => fetch(upstream.url))
      })
      const response = await fetch(server.url)
      expect([response.status, response.headers.get('x-up'), await response.text()]).toEqual([
        203,
        'stream',
        'from afar',
      ])
      expect(response.headers.get('RateLimit')).toBe('"once";r=0;t=3600, "up";r=5')
    })

    it('sets headers on responses to errors', async () => {
      const server = await temporaryApp((app) => {
        app.use(rateLimit({ ...once(), limits: [slidingWindow({ limit: 3, window: '1h', name: 'once' })] }))
        app.get('/exception', () => {
          throw new HTTPException(402, {
            message: 'pay first',
            res: new Response('pay first', { status: 402 }),
          })
        })
        app.get('/error', () => {
          throw new Error('thrown downstream')
        })
      })
      const [exception, error] = [await fetch(`${server.url}/exception`), await fetch(`${server.url}/error`)]
      expect([exception.status, await exception.text(), exception.headers.get('RateLimit')]).toEqual([
        402,
        'pay first',
        '"once";r=2;t=3600',
      ])
      expect([error.status, error.headers.get('RateLimit')]).toEqual([500, '"once";r=1;t=3600'])
      expect(server.errors).toEqual([
        expect.any(HTTPException),
        expect.objectContaining({ message: 'thrown downstream' }),
      ])
    })

    it('leaves thrown non-errors to the server, and settles by their status of 500', async () => {
      const told: number[] = []
      const refundIf: RateLimitOptions['refundIf'] = ({ status }) => told.push(status) === 0
      const server = await temporaryApp((app) => {
        app.use(rateLimit({ ...once(), refundIf }))
        app.get('/', () => {
          throw new Response('thrown', { status: 402 })
        })
      })
      expect(await statuses(server, ['/'])).toEqual([500])
      await expect.poll(() => told).toEqual([500])
      const app = new Hono().use(rateLimit({ ...once(), key: () => 'k', refundIf }))
      app.get('/', () => {
        throw new Response('thrown', { status: 402 })
      })
      await expect(Promise.resolve(app.request('/'))).rejects.toBeInstanceOf(Response)
      expect(told).toEqual([500, 500])
    })

    it('lets onDenied call next or return a response', async () => {
      const server = await temporaryApp((app) => {
        app.use('/on', rateLimit({ ...once(), onDenied: (_decision, _c, next) => next() }))
        app.use(
          '/own',
          rateLimit({
            ...once(),
            onDenied: () => new Response('own', { status: 418, headers: { 'Retry-After': '9' } }),
          }),
        )
        app.get('/*', (c) => c.text('served'))
      })
      expect(await statuses(server, ['/on', '/on', '/own', '/own'])).toEqual([200, 200, 200, 418])
      const own = await fetch(`${server.url}/own`)
      expect([own.headers.get('Retry-After'), own.headers.get('RateLimit')]).toEqual([
        '9',
        '"once";r=0;t=3600',
      ])
    })

    it('fails if onDenied returns nothing', async () => {
      const server = await temporaryApp((app) =>
        app.use(rateLimit({ ...once(), onDenied: async () => undefined })),
      )
      expect(await statuses(server, ['/', '/'])).toEqual([200, 500])
      expect(server.errors).toEqual([
        expect.objectContaining({ message: expect.stringContaining('not finalized') }),
      ])
    })

    it('passes streams unchanged, and counts them as complete if everything was sent', async () => {
      const told: boolean[] = []
      let goOn: () => void = () => {}
      const server = await temporaryApp((app) => {
        app.use(
          rateLimit({
            limits: [slidingWindow({ limit: 9, window: '1h' })],
            refundIf: ({ isComplete }) => told.push(isComplete) === 0,
          }),
        )
        app.get('/', (c) =>
          stream(c, async (to) => {
            await to.write('one ')
            await new Promise<void>((resolve) => (goOn = resolve))
            await to.write('two')
          }),
        )
      })
      const whole = await fetch(server.url)
      const reader = whole.body!.getReader()
      const text = async () => new TextDecoder().decode((await reader.read()).value)
      expect(await text()).toBe('one ')
      expect(told).toEqual([])
      goOn()
      expect(await text()).toBe('two')
      await expect.poll(() => told).toEqual([true])
      const abort = new AbortController()
      await fetch(server.url, { signal: abort.signal })
      abort.abort()
      await expect.poll(() => told).toEqual([true, false])
    })

    it('reports a client that disconnects while its request is handled, whatever the handler does', async () => {
      const told: unknown[] = []
      let isHandled = false
      const server = await temporaryApp((app) => {
        app.use(rateLimit({ ...once(), refundIf: ({ isComplete }) => told.push(isComplete) === 0 }))
        app.get('/', () => {
          isHandled = true
          return new Promise<Response>(() => {})
        })
      })
      const hungUp = new AbortController()
      const asked = fetch(server.url, { signal: hungUp.signal }).catch(() => 'hung up')
      await expect.poll(() => isHandled).toBe(true)
      hungUp.abort()
      expect(await asked).toBe('hung up')
      await expect.poll(() => told).toEqual([false])
    })

    it("leaves the request's body for the handler", async () => {
      const server = await temporaryApp((app) => {
        app.use(rateLimit({ ...once(), refundIf: 'failed' }))
        app.post('/', async (c) => c.json(await c.req.json()))
      })
      const response = await fetch(server.url, { method: 'POST', body: '{"a":1}' })
      expect(await response.json()).toEqual({ a: 1 })
    })

    describe('on runtimes other than Node', () => {
      const ask = (app: Hono, env?: object) => app.request('/', {}, env)
      const limited = (options: Partial<RateLimitOptions> = {}) => {
        const errors: Error[] = []
        const app = new Hono().use(rateLimit({ ...once(), ...options }))
        app.onError((error, c) => {
          errors.push(error)
          return c.text('', 500)
        })
        return Object.assign(
          app.get('/', (c) => c.text('served')),
          { errors },
        )
      }

      it.each<[string, (address: string) => object]>([
        ['Deno', (hostname) => ({ remoteAddr: { hostname, port: 1, transport: 'tcp' } })],
        [
          'Bun',
          (address) => ({
            requestIP: (request: unknown) => (request instanceof Request ? { address } : null),
          }),
        ],
        ['Bun, with an environment', (address) => ({ server: { requestIP: () => ({ address }) } })],
        ['Node', (remoteAddress) => ({ incoming: { socket: { remoteAddress }, rawHeaders: [] } })],
      ])('distinguishes callers by the address that %s reports', async (_, env) => {
        const app = limited()
        const answers: number[] = []
        for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1'])
          answers.push((await ask(app, env(address))).status)
        expect(answers).toEqual([200, 200, 429])
      })

      it.each<[string, object | undefined]>([
        ['nothing', undefined],
        ['bindings', { KV: {}, SECRET: 'x' }],
      ])('fails the request instead of sharing one key if the platform passes %s', async (_, env) => {
        const app = limited()
        expect([(await ask(app, env)).status, (await ask(app, env)).status]).toEqual([500, 500])
        expect(app.errors[1]).toMatchObject({
          code: 'invalid_option',
          message: expect.stringContaining('set key'),
        })
      })

      it('accepts a key function, or an address, which callers without the header share', async () => {
        const keyed = limited({ key: () => 'k' })
        expect([(await ask(keyed)).status, (await ask(keyed)).status]).toEqual([200, 429])
        const addressed = limited({ address: { trust: 1, header: 'cf-connecting-ip' } })
        const from = async (headers: Record<string, string>) =>
          (await addressed.request('/', { headers })).status
        const [one, other] = [{ 'cf-connecting-ip': '192.0.2.1' }, { 'cf-connecting-ip': '192.0.2.2' }]
        expect([await from(one), await from(other), await from(one)]).toEqual([200, 200, 429])
        expect([await from({}), await from({})]).toEqual([200, 429])
      })

      it('fails a request with drop, unless the client has disconnected', async () => {
        const app = limited({ key: () => 'k', denied: 'drop' })
        expect([(await ask(app)).status, (await ask(app)).status]).toEqual([200, 500])
        expect(app.errors).toEqual([expect.objectContaining({ code: 'invalid_option', value: 'drop' })])
        const waiting = limited({ key: () => 'k', denied: { delay: '2h' } })
        expect((await ask(waiting)).status).toBe(200)
        const hungUp = new AbortController()
        const gone = waiting.request('/', { signal: hungUp.signal })
        hungUp.abort()
        expect([(await gone).status, waiting.errors]).toEqual([499, []])
      })

      it("watches the body, since Node doesn't report the response", async () => {
        const told: unknown[] = []
        const refundIf: RateLimitOptions['refundIf'] = ({ status, isComplete }) =>
          told.push([status, isComplete]) === 0
        const app = limited({ key: () => 'k', limits: [slidingWindow({ limit: 9, window: '1h' })], refundIf })
        const response = await ask(app)
        expect([response.headers.get('RateLimit'), told]).toEqual(['"9-per-1h";r=8;t=3600', []])
        expect(await response.text()).toBe('served')
        expect(told).toEqual([[200, true]])
        await (await ask(app)).body!.cancel()
        expect(told).toEqual([
          [200, true],
          [200, false],
        ])
        await app.request('/', { method: 'HEAD' })
        expect(told.length).toBe(3)
      })

      it('leaves an upgraded connection unchanged', async () => {
        const upgraded = Object.defineProperty(await fetch('data:,'), 'status', { value: 101 })
        const app = new Hono().use(rateLimit({ ...once(), key: () => 'k' })).get('/', () => upgraded)
        expect(await app.request('/')).toBe(upgraded)
      })
    })

    it('drops only the stream over HTTP/2, not the connection', async () => {
      const errors = vi.spyOn(console, 'error').mockReturnValue()
      onTestFinished(() => errors.mockRestore())
      const app = new Hono()
      app.use(rateLimit({ ...once(), denied: 'drop' })).get('/', (c) => c.text('served'))
      const { ask, isOpen } = await converseByHttp2(getRequestListener(app.fetch))
      expect([await ask(), await ask(), await ask()]).toEqual([200, CANCEL, CANCEL])
      expect([isOpen(), errors.mock.calls]).toEqual([true, []])
    })

    it('types the options with Hono types', () => {
      interface Known {
        Variables: { user: string }
      }
      const options: RateLimitOptions = {
        ...once(),
        key: (c: Context<Known>) => c.get('user'),
        cost: (c) => Number(c.req.header('x-cost')),
        onDenied(decision, c, next) {
          expectTypeOf(decision).toEqualTypeOf<Decision>()
          expectTypeOf(c.req.path).toEqualTypeOf<string>()
          expectTypeOf(next).toEqualTypeOf<Next>()
          return c.json({ wait: decision.retryAfterMs }, 429)
        },
      }
      expectTypeOf(rateLimit(options)).toEqualTypeOf<MiddlewareHandler>()
      new Hono<Known>().use(rateLimit(options)).get('/', (c) => c.text(c.get('user')))
      // @ts-expect-error: a key is a string, or an object of strings
      rateLimit({ ...once(), key: (c) => c.req.raw })
      // @ts-expect-error: an answer is a response
      rateLimit({ ...once(), onDenied: () => 'denied' })
      // @ts-expect-error: an unknown option
      expect(() => rateLimit({ ...once(), max: 5 })).toThrow('unknown option')
    })
  })
})

/** Starts an app whose handler serves every path. `mount` adds middleware before it. */
async function serve(mount: (app: Hono) => unknown): Promise<Server> {
  const errors: unknown[] = []
  let served = 0
  const app = new Hono()
  app.onError((error, c) => {
    errors.push(error)
    return error instanceof HTTPException ? error.getResponse() : c.body(null, 500)
  })
  mount(app)
  app.all('/', (c) => {
    served++
    const used = c.req.header('x-used')
    if (used !== undefined) c.header('x-used', used)
    return c.text('served', Number(c.req.header('x-status') ?? 200) as 200)
  })
  return { ...(await listen(getRequestListener(app.fetch))), served: () => served, errors }
}

const temporaryApp = (mount: (app: Hono) => unknown): Promise<Server> => temporary(serve(mount))
