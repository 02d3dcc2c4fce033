import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, Client, interceptors, Pool, request } from 'undici'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  createLimiter,
  failurePolicy,
  type Limiter,
  memoryStore,
  type Store,
  slidingWindow,
  WaitError,
} from '../../src/index.ts'
import {
  limitedFetch,
  limitedInterceptor,
  type OutboundOptions,
  type UpstreamLimiterOptions,
  upstreamLimiter,
} from '../../src/outbound/index.ts'
import { keyGateOf } from '../../src/outbound/learned-limit.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { errorOf } from '../input/refusal.ts'
import { held } from '../resilience/stores.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { answer, hangUp, ok, SENDERS, upstreamOf } from './senders.ts'

/** Creates a budget of 10 per 10 s on a manual clock. By default, the margin is so long that no charge is moved. */
function budget(options: Partial<UpstreamLimiterOptions> = {}) {
  const clock = new ManualClock()
  const limiter = upstreamLimiter({
    limits: [{ limit: 10, window: '10s' }],
    marginMs: 10_000,
    store: memoryStore({ clock: clock.now }),
    ...options,
  })
  const used = async (key = 'k') => 10 - (await limiter.peek(key)).remaining
  return {
    clock,
    limiter,
    used,
    usedIs: (units: number) => until(`${units} used`, async () => (await used()) === units),
  }
}

/** Records the limiter calls that late responses cause. */
function moves(limiter: Limiter): readonly string[] {
  const calls: string[] = []
  for (const name of ['charge', 'refund'] as const) {
    const call = limiter[name] as (...given: unknown[]) => Promise<unknown>
    const recorded = (...given: unknown[]) => {
      calls.push(name)
      return call.apply(limiter, given)
    }
    Object.assign(limiter, { [name]: recorded })
  }
  return calls
}

const key = { key: 'k' }

describe.each(Object.entries(SENDERS))('%s', (_, sender) => {
  it('charges a request to its origin', async () => {
    const { limiter, used } = budget()
    const { url } = await upstreamOf(ok)
    expect(await sender(limiter)(url)).toEqual({ status: 200, text: 'done' })
    expect(await used(new URL(url).origin)).toBe(1)
  })

  it('charges the key and cost that functions return', async () => {
    const { limiter, used } = budget()
    const { url } = await upstreamOf(ok)
    const send = sender(limiter, {
      key: ({ url, method }) => `${method} ${url.pathname}`,
      cost: ({ method }) => (method === 'PUT' ? 3 : 1),
    })
    await send(url, { method: 'PUT', body: 'x' })
    expect(await used('PUT /path')).toBe(3)
  })

  it('rejects with the error of a function and sends nothing', async () => {
    const { limiter } = budget()
    const { url, asked } = await upstreamOf(ok)
    const error = new Error('no key')
    const send = sender(limiter, {
      key() {
        throw error
      },
    })
    expect(await errorOf(() => send(url))).toBe(error)
    expect(await errorOf(() => sender(limiter, { cost: 0.5 })(url))).toMatchObject({ code: 'invalid_cost' })
    expect(asked).toEqual([])
  })

  it('waits for the limiter, and sends requests with a higher priority first', async () => {
    const { limiter } = budget({ limits: [{ limit: 1, window: '10s' }] })
    const { url, asked } = await upstreamOf(ok)
    const priority = ({ url }: { readonly url: URL }) => Number(url.searchParams.get('p') ?? 0)
    const send = sender(limiter, { ...key, priority })
    await send(`${url}?p=0`)
    const waiting = [send(`${url}?p=1`), send(`${url}?p=2`)]
    await until('both wait', async () => limiter.waiting('k').length === 2)
    expect(asked).toHaveLength(1)
    await limiter.reset('k')
    await waiting[1]
    await limiter.reset('k')
    await waiting[0]
    expect(asked.map((each) => each.url.slice(-1)).join('')).toBe('021')
  })

  it('frees its place and charges nothing if aborted while it waits', async () => {
    const { limiter, used } = budget()
    const { url, asked } = await upstreamOf(ok)
    await limiter.consume('k', { cost: 10 })
    const abort = new AbortController()
    const waiting = sender(limiter, key)(url, { signal: abort.signal })
    await until('a waiter', async () => limiter.waiting('k').length === 1)
    const reason = new Error('hung up')
    abort.abort(reason)
    expect(await errorOf(() => waiting)).toBe(reason)
    expect(limiter.waiting('k').length).toBe(0)
    expect(await used()).toBe(10)
    expect(asked).toEqual([])
  })

  it('refunds the charge if aborted between admission and sending', async () => {
    const { limiter, usedIs } = budget()
    const { url, asked } = await upstreamOf(ok)
    const abort = new AbortController()
    const reason = new Error('hung up')
    limiter.on('decision', () => abort.abort(reason))
    expect(await errorOf(() => sender(limiter, key)(url, { signal: abort.signal }))).toBe(reason)
    await usedIs(0)
    expect(asked).toEqual([])
  })

  it.each([
    ['full', { maxWaiting: 1 }, {}],
    ['timeout', {}, { maxWaitMs: 0 }],
    ['impossible', {}, { cost: 11 }],
  ] as const)('rejects with the reason of the wait error: %s', async (reason, limits, options) => {
    const { limiter } = budget(limits)
    const { url } = await upstreamOf(ok)
    await limiter.consume('k', { cost: 10 })
    const send = sender(limiter, { ...key, ...options })
    const abort = new AbortController()
    const first = reason === 'full' ? send(url, { signal: abort.signal }) : undefined
    if (first) await until('one waits', async () => limiter.waiting('k').length === 1)
    const error = await errorOf(() => send(url))
    expect(error).toBeInstanceOf(WaitError)
    expect(error).toMatchObject({ reason })
    abort.abort()
    await errorOf(() => first)
  })

  it('refunds the charge if there was no connection', async () => {
    const { limiter, usedIs } = budget()
    const url = `http://127.0.0.1:${await freePort()}/`
    const charged: number[] = []
    limiter.on('decision', ({ decision }) => charged.push(decision.cost))
    const error = await errorOf(() => sender(limiter, { ...key, retry: false })(url))
    expect(error).toBeInstanceOf(Error)
    await usedIs(0)
    expect(charged).toEqual([1])
  })

  it('keeps the charge if the upstream may have received the request', async () => {
    const { limiter, used } = budget()
    const { url, asked } = await upstreamOf(hangUp)
    await errorOf(() => sender(limiter, { ...key, retry: false })(url))
    expect(asked).toHaveLength(1)
    expect(await used()).toBe(1)
  })

  it('counts a response within the margin from the admission, for the window plus the margin', async () => {
    const { clock, limiter, used } = budget({ marginMs: 10_000 })
    const { url } = await upstreamOf((request, response) => {
      clock.advance(5000)
      return ok(request, response)
    })
    await sender(limiter, key)(url)
    clock.advance(14_999)
    expect(await used()).toBe(1)
    clock.advance(1)
    expect(await used()).toBe(0)
  })

  it("doesn't count the time in the queue as transit", async () => {
    const { limiter } = budget({ limits: [{ limit: 1, window: '10s' }], marginMs: 9000 })
    const calls = moves(limiter)
    const { url } = await upstreamOf(ok)
    const now = performance.now.bind(performance)
    let passedMs = 0
    vi.spyOn(performance, 'now').mockImplementation(() => now() + passedMs)
    onTestFinished(() => void vi.restoreAllMocks())
    const send = sender(limiter, { ...key, maxWaitMs: 600_000 })
    await send(url)
    const sent = send(url)
    await until('a waiter', async () => limiter.waiting('k').length === 1)
    passedMs = 60_000
    await limiter.reset('k')
    await sent
    expect(calls).toEqual([])
  })

  it('counts a later response from its arrival, without a gap', async () => {
    const { clock, limiter, used, usedIs } = budget({ marginMs: 1 })
    const { url } = await upstreamOf(async (request, response) => {
      clock.advance(5000)
      await delay(5)
      return ok(request, response)
    })
    await sender(limiter, key)(url)
    await until('the moved charge', async () => (await limiter.peek('k')).resetAfterMs === 10_001)
    await usedIs(1)
    clock.advance(10_000)
    expect(await used()).toBe(1)
    clock.advance(1)
    expect(await used()).toBe(0)
  })

  it.each([
    [
      'limits without a margin',
      () => createLimiter({ limits: [slidingWindow({ limit: 10, window: '10s' })] }),
    ],
    [
      'limits that an operator set',
      async () => {
        const { limiter } = budget()
        await limiter.overrides.set('k', { limit: 10, window: '10s' })
        return limiter
      },
    ],
  ])('counts every request from its response, charged again before the refund, with %s', async (_, make) => {
    const limiter = await make()
    const calls = moves(limiter)
    const { url } = await upstreamOf(async (request, response) => {
      await delay(5)
      return ok(request, response)
    })
    await sender(limiter, key)(url)
    await until('the moved charge', async () => calls.length === 2)
    expect(calls).toEqual(['charge', 'refund'])
    await until('a single charge', async () => (await limiter.peek('k')).remaining === 9)
  })

  it('counts a failed request from its failure, since it may still be in transit', async () => {
    const { clock, limiter } = budget({ marginMs: 10_000 })
    const { url } = await upstreamOf((request, response) => {
      clock.advance(5000)
      return hangUp(request, response)
    })
    await errorOf(() => sender(limiter, { ...key, retry: false })(url))
    await until('the moved charge', async () => (await limiter.peek('k')).resetAfterMs === 20_000)
  })

  it('keeps a request charged if its response takes longer than the window', async () => {
    const clock = new ManualClock()
    const store = memoryStore({ clock: clock.now })
    const limiter = upstreamLimiter({ limits: [{ limit: 10, window: 99 }], marginMs: 1, store })
    let finish = () => {}
    const { url } = await upstreamOf((request, response) => {
      finish = () => ok(request, response)
    })
    const sent = sender(limiter, key)(url)
    await until('the charge', async () => (await limiter.peek('k')).remaining === 9)
    for (let renewals = 0; renewals < 3; renewals++) {
      clock.advance(90)
      expect((await limiter.peek('k')).remaining).toBeLessThan(10)
      await until('the renewed charge', async () => (await limiter.peek('k')).resetAfterMs === 100)
    }
    finish()
    await sent
  })

  it('sends nothing while a learned limit is being written, not even requests admitted before', async () => {
    const { limiter, usedIs } = budget()
    const { url, asked } = await upstreamOf(ok)
    const gate = keyGateOf(limiter, 'k')
    let finish = () => {}
    const heeding = () => new Promise<void>((resolve) => (finish = resolve))
    // Admission is requested in this tick, and decided before the response arrives.
    const first = sender(limiter, key)(url)
    queueMicrotask(() => gate.learn(heeding))
    const second = sender(limiter, key)(url)
    await usedIs(0)
    await delay(20)
    expect(asked).toEqual([])
    finish()
    await Promise.all([first, second])
    expect(asked).toHaveLength(2)
    await usedIs(2)
  })

  it('rejects immediately if aborted while a learned limit is being written', async () => {
    const { limiter, used } = budget()
    const { url, asked } = await upstreamOf(ok)
    const gate = keyGateOf(limiter, 'k')
    let finish = () => {}
    gate.learn(() => new Promise<void>((resolve) => (finish = resolve)))
    const abort = new AbortController()
    const sent = Promise.all([1, 2].map(() => errorOf(() => sender(limiter, key)(url, abort))))
    await delay(20)
    const reason = new Error('hung up')
    abort.abort(reason)
    expect(await sent).toEqual([reason, reason])
    expect([asked.length, await used()]).toEqual([0, 0])
    finish()
    await gate.learning
    expect(keyGateOf(limiter, 'k')).not.toBe(gate)
  })

  it('requests admission again if it was decided before a learned limit was written', async () => {
    const store = held(memoryStore())
    const limits = [slidingWindow({ limit: 10, window: '10s' })]
    const limiter = createLimiter({ limits, store, timeoutMs: 60_000 })
    const calls = moves(limiter)
    const { url } = await upstreamOf(ok)
    store.isHolding = true
    const sent = sender(limiter, key)(url)
    await until('the request for admission', async () => store.waiting.length === 1)
    const gate = keyGateOf(limiter, 'k')
    gate.learn(async () => {})
    await gate.learning
    store.isHolding = false
    store.release()
    await sent
    expect(calls[0]).toBe('refund')
  })

  it("continues if a learned limit can't be written", async () => {
    const { limiter } = budget()
    const { url } = await upstreamOf(ok)
    keyGateOf(limiter, 'k').learn(() => Promise.reject(new Error('no store')))
    expect((await sender(limiter, key)(url)).status).toBe(200)
  })

  it('keeps no state of a key without requests in flight', async () => {
    const { limiter } = budget()
    const { url } = await upstreamOf(answer(429, { 'Retry-After': '0' }), hangUp, ok)
    const send = sender(limiter, { ...key, retry: { maxDelayMs: 5 } })
    const tooMuch = sender(limiter, { ...key, cost: 11 })
    for (const ask of [() => send(url), () => tooMuch(url)]) {
      const sent = errorOf(ask)
      const gate = keyGateOf(limiter, 'k')
      await sent
      await gate.learning
      expect(keyGateOf(limiter, 'k')).not.toBe(gate)
    }
  })

  it('returns unsuccessful responses with their bodies', async () => {
    const { limiter } = budget()
    const { url } = await upstreamOf(answer(404, {}, 'nothing here'))
    expect(await sender(limiter)(url)).toEqual({ status: 404, text: 'nothing here' })
  })
})

it.each([
  ['limitedFetch', (limiter: Limiter) => limitedFetch(fetch, limiter, key)],
  [
    'limitedInterceptor',
    (limiter: Limiter) => {
      const dispatcher = new Agent().compose(limitedInterceptor(limiter, key))
      return (url: string, { body }: { body?: unknown }) =>
        request(url, { method: 'PUT', body: body as Readable, dispatcher })
    },
  ],
])(
  "%s: a body that fails while its request waits rejects the request and doesn't end the process",
  async (_, make) => {
    const { limiter, used } = budget()
    const { url, asked } = await upstreamOf(ok)
    await limiter.consume('k', { cost: 10 })
    const body = new Readable({ read() {} })
    const sent = errorOf(() =>
      make(limiter)(url, { method: 'PUT', body: body as never, duplex: 'half' } as object),
    )
    await until('a waiter', async () => limiter.waiting('k').length === 1)
    const error = new Error('no such file')
    body.destroy(error)
    expect(await sent).toBe(error)
    expect(asked).toEqual([])
    expect(await used()).toBe(10)
  },
)

it.each([
  ['Client', (origin: string) => new Client(origin)],
  ['Pool', (origin: string) => new Pool(origin)],
])("a %s doesn't pass its origin, so the key option is required", async (_, make) => {
  const { limiter, used } = budget()
  const { url } = await upstreamOf(ok)
  const own = make(new URL(url).origin)
  onTestFinished(() => own.destroy())
  const call = { path: '/path?p=1', method: 'GET' } as const
  const options: OutboundOptions = { key: ({ url, method }) => `${method} ${url.pathname}` }
  const { body } = await own.compose(limitedInterceptor(limiter, options)).request(call)
  expect(await body.text()).toBe('done')
  expect(await used('GET /path')).toBe(1)
  const error = await errorOf(() => own.compose(limitedInterceptor(limiter)).request(call))
  expect(error).toMatchObject({
    code: 'invalid_option',
    message: expect.stringContaining('set key'),
  })
})

it("a rejected CONNECT isn't sent again", async () => {
  const { limiter } = budget()
  const server = createServer().on('connect', (_, socket) => {
    socket.end('HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\n\r\n')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const options = { ...key, retry: { anyMethodOn429: true } }
  const agent = new Agent()
  onTestFinished(() => agent.destroy())
  const dispatcher = agent.compose(limitedInterceptor(limiter, options))
  const gate = keyGateOf(limiter, 'k')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { statusCode, socket } = await dispatcher.connect({ origin, path: 'example.com:80' })
  socket.destroy()
  expect(statusCode).toBe(429)
  await gate.learning
  expect(keyGateOf(limiter, 'k')).not.toBe(gate)
})

it("relative URLs use the page's address in a browser", async () => {
  vi.stubGlobal('location', { href: 'https://page.example/shop/cart' })
  onTestFinished(() => void vi.unstubAllGlobals())
  const { limiter, used } = budget()
  const urls: string[] = []
  const upstream = async (url: string) => {
    urls.push(url)
    return new Response()
  }
  const limited = limitedFetch(upstream, limiter)
  await limited('../api')
  await limited('https://api.example/')
  expect(urls).toEqual(['../api', 'https://api.example/'])
  expect([await used('https://page.example'), await used('https://api.example')]).toEqual([1, 1])
})

it('an undici call without a connection is refunded, whatever the reason', async () => {
  const { limiter, usedIs } = budget()
  const agent = new Agent({ connect: (_, connected) => void connected(new Error('no way there'), null) })
  const dispatcher = agent.compose(limitedInterceptor(limiter, key))
  const calls = moves(limiter)
  expect(await errorOf(() => request('http://upstream.example/', { dispatcher }))).toMatchObject({
    message: 'no way there',
  })
  expect(calls).toEqual(['refund'])
  await usedIs(0)
})

it('redirects that undici follows after the interceptor are charged one by one', async () => {
  const { limiter, used } = budget()
  const { url, asked } = await upstreamOf(answer(302, { Location: '/elsewhere' }), ok)
  const agent = new Agent()
  onTestFinished(() => agent.destroy())
  const redirect = interceptors.redirect({ maxRedirections: 3 })
  const dispatcher = agent.compose(limitedInterceptor(limiter, key), redirect)
  const { statusCode, body } = await request(url, { dispatcher })
  await body.dump()
  expect(statusCode).toBe(200)
  expect(asked.map((each) => each.url)).toEqual(['GET /path', 'GET /elsewhere'])
  expect(await used()).toBe(2)
})

it('nested budgets are both charged', async () => {
  const [inner, outer] = [budget(), budget()]
  const { url } = await upstreamOf(ok)
  const within = limitedFetch(limitedFetch(fetch, inner.limiter, key), outer.limiter, key)
  expect((await within(url)).status).toBe(200)
  expect([await inner.used(), await outer.used()]).toEqual([1, 1])
})

it('a late response is returned after its charge was moved, since the process may then exit', async () => {
  const memory = memoryStore()
  const kinds: string[] = []
  const later: Store = {
    failurePolicy,
    apply(ops, call) {
      setTimeout(() => {
        memory.apply(ops, call)
        kinds.push(...ops.map(({ type }) => type))
      }, 20)
    },
    close() {},
  }
  const { limiter } = budget({ marginMs: 1, store: later, timeoutMs: 30_000 })
  const { url } = await upstreamOf(async (request, response) => {
    await delay(5)
    return ok(request, response)
  })
  await limitedFetch(fetch, limiter, key)(url)
  expect(kinds).toContain('charge')
})
