// tier: integration
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { type RateLimitOptions, rateLimit, withRateLimit } from '../../src/adapters/fetch.ts'
import { createLimiter, type Decision, slidingWindow } from '../../src/index.ts'
import { listen } from './listen.ts'
import { newStore } from './suite/fixture.ts'
import { type AdapterUnderTest, adapterSuite, type Server } from './suite.ts'
import { temporary } from './temporary.ts'

type Args = [request: Request, ...rest: unknown[]]
type Handler = (...args: Args) => Promise<Response>

const once = (name = 'once', limit = 1): RateLimitOptions => ({
  limits: [slidingWindow({ limit, window: '1h', name })],
  store: newStore(),
  key: () => 'k',
})

const ask = (init?: RequestInit) => new Request('http://localhost/', init)

describe.each<[string, (bindings: HttpBindings) => Partial<HttpBindings>]>([
  ['with responses that Node reports as sent', (bindings) => bindings],
  ['with response bodies that are watched', ({ incoming }) => ({ incoming })],
])('Fetch API, %s', (_, told) => {
  const adapter: AdapterUnderTest<Args> = {
    drops: false,
    sharesRequests: true,
    async serve(options, { behindProxy = false } = {}) {
      const address: RateLimitOptions = { ...(behindProxy && { address: { trust: ['loopback'] } }) }
      return await serve(
        (handler) =>
          options.reduceRight<Handler>(
            (inner, each) => withRateLimit(inner, { ...address, ...(each as RateLimitOptions) }),
            handler,
          ),
        told,
      )
    },
    header: (request, name) => request.headers.get(name) ?? undefined,
    teapot: ({ cost }) => new Response(`cost ${cost}`, { status: 418 }),
  }
  adapterSuite(adapter)
})

describe('Fetch API specifics', () => {
  it("passes the platform's arguments to the handler", async () => {
    interface Context {
      readonly params: Promise<{ readonly id: string }>
    }
    const GET = withRateLimit(async (request: Request, { params }: Context) => {
      return new Response(`${request.method} ${(await params).id}`)
    }, once())
    expectTypeOf(GET).toEqualTypeOf<(request: Request, context: Context) => Promise<Response>>()
    const context = { params: Promise.resolve({ id: '7' }) }
    expect(await (await GET(ask(), context)).text()).toBe('GET 7')
    expect((await GET(ask(), context)).status).toBe(429)
    const seen: unknown[] = []
    const handed = [ask(), { KV: {} }, { waitUntil() {} }] as const
    const worker = withRateLimit((...args: [Request, object, object]) => {
      seen.push(...args)
      return new Response()
    }, once())
    await worker(...handed)
    expect(seen.map((each, i) => each === handed[i])).toEqual([true, true, true])
  })

  it('counts several handlers of one rateLimit together', async () => {
    const limited = rateLimit(once())
    const [one, other] = [limited(() => new Response('one')), limited(() => new Response('other'))]
    expect([(await one(ask())).status, (await other(ask())).status]).toEqual([200, 429])
  })

  it("adds to an existing RateLimit header of the handler's response", async () => {
    const elsewhere = withRateLimit(() => new Response(null, { headers: { RateLimit: '"cdn";r=5' } }), once())
    expect((await elsewhere(ask())).headers.get('RateLimit')).toBe('"once";r=0;t=3600, "cdn";r=5')
  })

  it('sets headers on immutable responses: redirects and fetched ones', async () => {
    const upstream = await listen((_req, res) => {
      res.writeHead(203, { 'Set-Cookie': ['a=1', 'b=2'], 'Content-Type': 'text/x' }).end('from afar')
    })
    onTestFinished(() => upstream.close())
    const redirect = await withRateLimit(() => Response.redirect('http://localhost/next', 307), once())(ask())
    expect([redirect.status, redirect.headers.get('Location'), redirect.headers.get('RateLimit')]).toEqual([
      307,
      'http://localhost/next',
      '"once";r=0;t=3600',
    ])
    const fetched = await withRateLimit(() => fetch(upstream.url), once())(ask())
    expect([fetched.status, fetched.headers.getSetCookie(), fetched.headers.get('RateLimit')]).toEqual([
      203,
      ['a=1', 'b=2'],
      '"once";r=0;t=3600',
    ])
    expect([fetched.headers.get('Content-Type'), await fetched.text()]).toEqual(['text/x', 'from afar'])
  })

  it('returns the same response if its headers are mutable or there are none to set', async () => {
    const [mutable, immutable] = [new Response('served'), Response.redirect('http://localhost/')]
    expect(await withRateLimit(() => mutable, once())(ask())).toBe(mutable)
    expect(await withRateLimit(() => immutable, { ...once(), headers: false })(ask())).toBe(immutable)
    expect(await withRateLimit(() => immutable, { ...once(), skip: () => true })(ask())).toBe(immutable)
  })

  it('returns upgrades, network errors and missing responses unchanged', async () => {
    const options: RateLimitOptions = { ...once('once', 9), refundIf: 'failed' }
    const upgraded = Object.defineProperty(await fetch('data:,'), 'status', { value: 101 })
    const failed = Response.error()
    for (const answer of [upgraded, failed, undefined, null]) {
      const handler = withRateLimit(() => answer, options)
      expect(await handler(ask())).toBe(answer)
    }
  })

  it('rethrows whatever the handler throws', async () => {
    for (const thrown of [new Error('thrown downstream'), new Response('thrown'), undefined]) {
      const told: unknown[] = []
      const handler = withRateLimit(
        () => {
          throw thrown
        },
        { ...once(), refundIf: ({ status, isComplete }) => told.push([status, isComplete]) === 0 },
      )
      expect(await handler(ask()).catch((reason: unknown) => [reason])).toEqual([thrown])
      expect(told).toEqual([[500, true]])
    }
  })

  it("leaves the request's body for the handler", async () => {
    const handler = withRateLimit(
      async (request) =>
        new Response(
          await request
            .clone()
            .text()
            .then((text) => text + request.bodyUsed),
        ),
      {
        ...once(),
        denied: { delay: '1s' },
        refundIf: 'failed',
      },
    )
    expect(await (await handler(ask({ method: 'POST', body: 'body ' }))).text()).toBe('body false')
  })

  it('passes all arguments to onDenied, and adds missing headers to its response', async () => {
    const handler = withRateLimit((_request: Request, _context: { id: number }) => new Response(), {
      ...once(),
      onDenied: ({ cost }, request, { id }) =>
        new Response(`${cost} ${request.method} ${id}`, { status: 418, headers: { 'Retry-After': '9' } }),
    })
    await handler(ask(), { id: 7 })
    const denied = await handler(ask(), { id: 7 })
    expect([denied.status, await denied.text()]).toEqual([418, '1 GET 7'])
    expect([denied.headers.get('Retry-After'), denied.headers.get('RateLimit')]).toEqual([
      '9',
      '"once";r=0;t=3600',
    ])
    const redirects = withRateLimit(() => new Response(), {
      ...once(),
      onDenied: () => Response.redirect('http://localhost/busy'),
    })
    await redirects(ask())
    expect((await redirects(ask())).headers.get('Retry-After')).toBe('3600')
  })

  it('rejects with an error, whatever onDenied throws', async () => {
    const handler = withRateLimit(() => new Response(), {
      ...once(),
      cost: () => 2,
      onDenied: () => Promise.reject('no'),
    })
    await expect(handler(ask())).rejects.toMatchObject({ message: 'thrown: no', cause: 'no' })
  })

  it('returns a 499 if the client disconnects while it waits', async () => {
    let served = 0
    const handler = withRateLimit(() => new Response(`${++served}`), { ...once(), denied: { delay: '2h' } })
    await handler(ask())
    const hungUp = new AbortController()
    const waiting = handler(ask({ signal: hungUp.signal }))
    hungUp.abort()
    expect([(await waiting).status, served]).toEqual([499, 1])
  })

  describe('the client address', () => {
    const byAddress = (): RateLimitOptions => ({ ...once(), key: undefined })

    it.each<[string, (address: string) => object]>([
      [
        'Deno',
        (hostname) => ({ remoteAddr: { transport: 'tcp', hostname, port: 1 }, completed: Promise.resolve() }),
      ],
      [
        'Bun',
        (address) => ({
          address,
          requestIP(request: unknown) {
            return request instanceof Request
              ? { address: (this as { address: string }).address, port: 1 }
              : null
          },
        }),
      ],
      ['Node', (remoteAddress) => ({ incoming: { socket: { remoteAddress }, rawHeaders: [] } })],
    ])('comes from %s', async (_, told) => {
      const handler = withRateLimit((_request: Request, _told: object) => new Response(), byAddress())
      const answers: number[] = []
      for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1']) {
        answers.push((await handler(ask(), told(address))).status)
      }
      expect(answers).toEqual([200, 200, 429])
    })

    it.each<[string, object]>([
      ['Deno', { remoteAddr: { transport: 'unix', path: '/run/x' } }],
      ['Bun', { requestIP: () => null }],
      ['Node', { incoming: { socket: {}, rawHeaders: [] } }],
    ])('defaults to one shared key if %s reports no address', async (_, told) => {
      const handler = withRateLimit((_request: Request, _told: object) => new Response(), byAddress())
      expect([(await handler(ask(), told)).status, (await handler(ask(), told)).status]).toEqual([200, 429])
    })

    it.each<[string, unknown[]]>([
      ['nothing', []],
      ['parameters', [{ params: Promise.resolve({}) }]],
      ['an environment', [{ KV: {} }, { waitUntil() {} }]],
      ['a string', ['GET']],
      ['null', [null]],
    ])('fails the request instead of sharing one key if the platform passes %s', async (_, rest) => {
      let served = 0
      const handler = withRateLimit((_request, ..._rest) => new Response(`${++served}`), byAddress())
      for (let i = 0; i < 2; i++) {
        await expect(handler(ask(), ...rest)).rejects.toMatchObject({
          code: 'invalid_option',
          message: expect.stringContaining('set key or address (such as'),
        })
      }
      const listed = withRateLimit(() => new Response(), { ...once(), deny: ['192.0.2.1'] })
      await expect(listed(ask())).rejects.toMatchObject({ code: 'invalid_option' })
      expect(served).toBe(0)
    })

    it("comes from the platform's header, and is shared by requests without it", async () => {
      const handler = withRateLimit(() => new Response(), {
        ...byAddress(),
        address: { trust: 1, header: 'cf-connecting-ip' },
      })
      const answers: number[] = []
      for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1']) {
        answers.push((await handler(ask({ headers: { 'CF-Connecting-IP': address } }))).status)
      }
      answers.push((await handler(ask())).status, (await handler(ask())).status)
      expect(answers).toEqual([200, 200, 429, 200, 429])
    })
  })

  describe('a watched body', () => {
    /** Returns a handler whose responses are watched, and their reported results. */
    function watching(handler: () => Response): {
      ask: (init?: RequestInit) => Promise<Response>
      told: unknown[]
    } {
      const told: unknown[] = []
      const refundIf: RateLimitOptions['refundIf'] = ({ status, isComplete }) =>
        told.push([status, isComplete]) === 0
      const watched = withRateLimit(handler, { ...once('once', 9), refundIf })
      return { ask: (init) => watched(ask(init)), told }
    }

    const bytes = (...chunks: string[]) => chunks.map((chunk) => new TextEncoder().encode(chunk))

    it('arrives unchanged with its headers, and is complete when it has been read', async () => {
      const { ask, told } = watching(
        () =>
          new Response('served', {
            status: 201,
            headers: { 'Content-Length': '6', 'Content-Encoding': 'identity' },
          }),
      )
      const response = await ask()
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-length': '6',
        'content-encoding': 'identity',
        'content-type': 'text/plain;charset=UTF-8',
        ratelimit: '"once";r=8;t=3600',
      })
      expect(told).toEqual([])
      expect(await response.text()).toBe('served')
      expect(told).toEqual([[201, true]])
    })

    it('stays unread until the client reads it', async () => {
      let pulled = 0
      const source = bytes('a', 'b', 'c')
      const body = new ReadableStream(
        {
          pull(controller) {
            pulled++
            const next = source.shift()
            if (next === undefined) controller.close()
            else controller.enqueue(next)
          },
        },
        { highWaterMark: 0 },
      )
      const { ask, told } = watching(() => new Response(body))
      const reader = (await ask()).body!.getReader()
      await new Promise((resolve) => setImmediate(resolve))
      expect(pulled).toBe(0)
      for (let i = 1; i <= 3; i++) {
        await reader.read()
        await new Promise((resolve) => setImmediate(resolve))
        expect(pulled).toBe(i)
      }
      expect(told).toEqual([])
      expect((await reader.read()).done).toBe(true)
      expect(told).toEqual([[200, true]])
    })

    it('passes its errors to the reader', async () => {
      const broken = new Error('broken')
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(bytes('a')[0]),
        pull: () => Promise.reject(broken),
      })
      const { ask, told } = watching(() => new Response(body))
      await expect((await ask()).text()).rejects.toBe(broken)
      expect(told).toEqual([[200, false]])
    })

    it('cancels its source when the reader cancels', async () => {
      let reason: unknown
      const body = new ReadableStream({
        cancel(why) {
          reason = why
        },
      })
      const { ask, told } = watching(() => new Response(body))
      await (await ask()).body!.cancel('enough')
      expect([reason, told]).toEqual(['enough', [[200, false]]])
    })

    it('counts as read if there is none or no client will read it', async () => {
      const { ask, told } = watching(() => new Response(null, { status: 204 }))
      await ask()
      expect(told).toEqual([[204, true]])
      const head = watching(() => new Response('served'))
      await head.ask({ method: 'HEAD' })
      expect(head.told).toEqual([[200, true]])
      await ask({ signal: AbortSignal.abort() })
      expect(told).toEqual([
        [204, true],
        [204, false],
      ])
    })

    it('stays the same object if no option needs its result', async () => {
      const response = new Response('served')
      const { body } = response
      expect((await withRateLimit(() => response, once())(ask())).body).toBe(body)
    })

    it.each<[string, (bindings: HttpBindings) => Partial<HttpBindings>]>([
      ['by Node', (bindings) => bindings],
      ['by its body', ({ incoming }) => ({ incoming })],
    ])('counts as incomplete if the client disconnects, as reported %s', async (_, told) => {
      const over: unknown[] = []
      let cancelled = false
      const server = await temporary(
        serve(
          () =>
            withRateLimit(
              (_request: Request) => {
                const body = new ReadableStream({
                  start: (controller) => controller.enqueue(bytes('a')[0]),
                  cancel() {
                    cancelled = true
                  },
                })
                return new Response(body)
              },
              { ...once(), refundIf: ({ isComplete }) => over.push(isComplete) === 0 },
            ),
          told,
        ),
      )
      const abort = new AbortController()
      await fetch(server.url, { signal: abort.signal })
      expect(over).toEqual([])
      abort.abort()
      await expect.poll(() => over).toEqual([false])
      await expect.poll(() => cancelled).toBe(true)
    })
  })

  it('settles by the headers of a response without a body', async () => {
    const limiter = createLimiter({ limits: [slidingWindow({ limit: 9, window: '1h' })] })
    const handler = withRateLimit(() => new Response(null, { headers: { 'x-used': '4' } }), {
      limiter,
      key: () => 'k',
      settle: (response) => Number(response.header('x-used')),
    })
    await handler(ask())
    await expect.poll(async () => (await limiter.peek('k')).remaining).toBe(5)
  })

  it("types the options with the handler's types", () => {
    interface Env {
      readonly KV: object
    }
    const fetchHandler = withRateLimit(
      (request: Request, env: Env): Response => new Response(request.url + env.KV),
      {
        ...once(),
        key: (request) => request.headers.get('x-user') ?? 'nobody',
        onDenied(decision, request, env) {
          expectTypeOf(decision).toEqualTypeOf<Decision>()
          expectTypeOf(request).toEqualTypeOf<Request>()
          expectTypeOf(env).toEqualTypeOf<Env>()
          return new Response()
        },
      },
    )
    expectTypeOf(fetchHandler).toEqualTypeOf<(request: Request, env: Env) => Promise<Response>>()
    const upgrades = rateLimit(once())(
      async (_request, _server: object): Promise<Response | undefined> => undefined,
    )
    expectTypeOf(upgrades).returns.resolves.toEqualTypeOf<Response | undefined>()
    // @ts-expect-error: a handler returns a response
    withRateLimit(() => 'served', once())
    // @ts-expect-error: a key is a string, or an object of strings
    rateLimit({ ...once(), key: (request) => request.headers })
    // @ts-expect-error: an answer is a response
    rateLimit({ ...once(), onDenied: () => 'denied' })
    // @ts-expect-error: an unknown option
    expect(() => rateLimit({ ...once(), max: 5 })).toThrow('unknown option')
  })
})

/** Starts a server whose wrapped handler serves every path. Errors get a 500. */
async function serve(
  wrap: (handler: Handler) => Handler,
  told: (bindings: HttpBindings) => Partial<HttpBindings>,
): Promise<Server> {
  const errors: unknown[] = []
  let served = 0
  const handler = wrap(async ({ headers }) => {
    served++
    const used = headers.get('x-used')
    const status = Number(headers.get('x-status') ?? 200)
    return new Response('served', { status, headers: used === null ? {} : { 'x-used': used } })
  })
  const listener = getRequestListener(
    (request, bindings) => handler(request, told(bindings as HttpBindings)),
    {
      overrideGlobalObjects: false,
      errorHandler(error) {
        errors.push(error)
        return new Response(null, { status: 500 })
      },
    },
  )
  return { ...(await listen(listener)), served: () => served, errors }
}
