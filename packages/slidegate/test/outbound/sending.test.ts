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

/** A budget of 10 per 10 s on a clock that stands still. Unless told, no answer is so late that it is moved. */
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

/** What is asked of a limiter for answers that are late. */
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
  it('charges a request to the origin that it goes to', async () => {
    const { limiter, used } = budget()
    const { url } = await upstreamOf(ok)
    expect(await sender(limiter)(url)).toEqual({ status: 200, text: 'done' })
    expect(await used(new URL(url).origin)).toBe(1)
  })

  it('charges what the functions tell', async () => {
    const { limiter, used } = budget()
    const { url } = await upstreamOf(ok)
    const send = sender(limiter, {
      key: ({ url, method }) => `${method} ${url.pathname}`,
      cost: ({ method }) => (method === 'PUT' ? 3 : 1),
    })
    await send(url, { method: 'PUT', body: 'x' })
    expect(await used('PUT /path')).toBe(3)
  })

  it('rejects with what a function throws, and sends nothing', async () => {
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

  it('waits for a slot, and sends those of a higher priority first', async () => {
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

  it('aborted while it waits it frees its place, and charges nothing', async () => {
    const { limiter, used } = budget()
    const { url, asked } = await upstreamOf(ok)
    await limiter.consume('k', { cost: 10 })
    const abort = new AbortController()
    const waiting = sender(limiter, key)(url, { signal: abort.signal })
    await until('it waits', async () => limiter.waiting('k').length === 1)
    const reason = new Error('hung up')
    abort.abort(reason)
    expect(await errorOf(() => waiting)).toBe(reason)
    expect(limiter.waiting('k').length).toBe(0)
    expect(await used()).toBe(10)
    expect(asked).toEqual([])
  })

  it('aborted between its admission and its sending it returns what it was charged', async () => {
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
  ] as const)('says why there is no slot: %s', async (reason, limits, options) => {
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

  it('returns what was charged where nobody has answered the call', async () => {
    const { limiter, usedIs } = budget()
    const url = `http://127.0.0.1:${await freePort()}/`
    const charged: number[] = []
    limiter.on('decision', ({ decision }) => charged.push(decision.cost))
    const error = await errorOf(() => sender(limiter, { ...key, retry: false })(url))
    expect(error).toBeInstanceOf(Error)
    await usedIs(0)
    expect(charged).toEqual([1])
  })

  it('keeps the charge where the upstream may have seen the request', async () => {
    const { limiter, used } = budget()
    const { url, asked } = await upstreamOf(hangUp)
    await errorOf(() => sender(limiter, { ...key, retry: false })(url))
    expect(asked).toHaveLength(1)
    expect(await used()).toBe(1)
  })

  it('an answer within the margin: it counts for the window and the margin from its admission on', async () => {
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

  it('the time in line is no part of it', async () => {
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
    await until('it waits', async () => limiter.waiting('k').length === 1)
    passedMs = 60_000
    await limiter.reset('k')
    await sent
    expect(calls).toEqual([])
  })

  it('an answer that is later: it counts from then on, and never did not', async () => {
    const { clock, limiter, used, usedIs } = budget({ marginMs: 1 })
    const { url } = await upstreamOf(async (request, response) => {
      clock.advance(5000)
      await delay(5)
      return ok(request, response)
    })
    await sender(limiter, key)(url)
    await until('it is moved', async () => (await limiter.peek('k')).resetAfterMs === 10_001)
    await usedIs(1)
    clock.advance(10_000)
    expect(await used()).toBe(1)
    clock.advance(1)
    expect(await used()).toBe(0)
  })

  it.each([
    [
      'on limits without a margin',
      () => createLimiter({ limits: [slidingWindow({ limit: 10, window: '10s' })] }),
    ],
    [
      'on limits that were set by hand',
      async () => {
        const { limiter } = budget()
        await limiter.overrides.set('k', { limit: 10, window: '10s' })
        return limiter
      },
    ],
  ])('%s every request counts from its answer on, charged before it is returned', async (_, make) => {
    const limiter = await make()
    const calls = moves(limiter)
    const { url } = await upstreamOf(async (request, response) => {
      await delay(5)
      return ok(request, response)
    })
    await sender(limiter, key)(url)
    await until('it is moved', async () => calls.length === 2)
    expect(calls).toEqual(['charge', 'refund'])
    await until('it is counted once', async () => (await limiter.peek('k')).remaining === 9)
  })

  it('a request that fails may still be on its way: it counts from then on', async () => {
    const { clock, limiter } = budget({ marginMs: 10_000 })
    const { url } = await upstreamOf((request, response) => {
      clock.advance(5000)
      return hangUp(request, response)
    })
    await errorOf(() => sender(limiter, { ...key, retry: false })(url))
    await until('it is moved', async () => (await limiter.peek('k')).resetAfterMs === 20_000)
  })

  it('an answer that takes longer than the window: it counts until then all the same', async () => {
    const clock = new ManualClock()
    const store = memoryStore({ clock: clock.now })
    const limiter = upstreamLimiter({ limits: [{ limit: 10, window: 99 }], marginMs: 1, store })
    let finish = () => {}
    const { url } = await upstreamOf((request, response) => {
      finish = () => ok(request, response)
    })
    const sent = sender(limiter, key)(url)
    await until('it is charged', async () => (await limiter.peek('k')).remaining === 9)
    for (let renewals = 0; renewals < 3; renewals++) {
      clock.advance(90)
      expect((await limiter.peek('k')).remaining).toBeLessThan(10)
      await until('it is renewed', async () => (await limiter.peek('k')).resetAfterMs === 100)
    }
    finish()
    await sent
  })

  it('nobody is sent while an answer is being heeded, nor by an admission from before', async () => {
    const { limiter, usedIs } = budget()
    const { url, asked } = await upstreamOf(ok)
    const gate = keyGateOf(limiter, 'k')
    let finish = () => {}
    const heeding = () => new Promise<void>((resolve) => (finish = resolve))
    // The admission is asked for in this tick, and decided before the answer.
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

  it('aborted while an answer is being heeded it ends at once', async () => {
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

  it('an admission that was decided before an answer, and told after it was heeded, is asked for again', async () => {
    const store = held(memoryStore())
    const limits = [slidingWindow({ limit: 10, window: '10s' })]
    const limiter = createLimiter({ limits, store, timeoutMs: 60_000 })
    const calls = moves(limiter)
    const { url } = await upstreamOf(ok)
    store.isHolding = true
    const sent = sender(limiter, key)(url)
    await until('it is asked for', async () => store.waiting.length === 1)
    const gate = keyGateOf(limiter, 'k')
    gate.learn(async () => {})
    await gate.learning
    store.isHolding = false
    store.release()
    await sent
    expect(calls[0]).toBe('refund')
  })

  it('what could not be heeded holds nobody up', async () => {
    const { limiter } = budget()
    const { url } = await upstreamOf(ok)
    keyGateOf(limiter, 'k').learn(() => Promise.reject(new Error('no store')))
    expect((await sender(limiter, key)(url)).status).toBe(200)
  })

  it('keeps nothing of a key when none of its requests is under way', async () => {
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

  it('passes on answers that are no success, and their bodies', async () => {
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
])('%s: a body that fails while its request waits ends it, and not the process', async (_, make) => {
  const { limiter, used } = budget()
  const { url, asked } = await upstreamOf(ok)
  await limiter.consume('k', { cost: 10 })
  const body = new Readable({ read() {} })
  const sent = errorOf(() =>
    make(limiter)(url, { method: 'PUT', body: body as never, duplex: 'half' } as object),
  )
  await until('it waits', async () => limiter.waiting('k').length === 1)
  const error = new Error('no such file')
  body.destroy(error)
  expect(await sent).toBe(error)
  expect(asked).toEqual([])
  expect(await used()).toBe(10)
})

it.each([
  ['Client', (origin: string) => new Client(origin)],
  ['Pool', (origin: string) => new Pool(origin)],
])('a %s does not tell its origin: the key has to be given', async (_, make) => {
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
    message: expect.stringContaining('give the option key'),
  })
})

it('a tunnel that is refused is not asked for again', async () => {
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

it('in a page URLs are relative to it', async () => {
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

it('a call of undici for which no connection was made is returned, whatever the reason', async () => {
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

it('redirects that undici follows behind it are charged one by one', async () => {
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

it('a budget within another: both are charged', async () => {
  const [inner, outer] = [budget(), budget()]
  const { url } = await upstreamOf(ok)
  const within = limitedFetch(limitedFetch(fetch, inner.limiter, key), outer.limiter, key)
  expect((await within(url)).status).toBe(200)
  expect([await inner.used(), await outer.used()]).toEqual([1, 1])
})

it('a response that is late is handed over when it counts from then on: the process may end with it', async () => {
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
