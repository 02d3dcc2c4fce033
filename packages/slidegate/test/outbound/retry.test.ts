import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { limitedFetch, upstreamLimiter } from '../../src/outbound/index.ts'
import { delayMs, isNetworkError, isRepeatable, neverArrived } from '../../src/outbound/retry.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { errorOf } from '../input/refusal.ts'
import { until } from '../support/until.ts'
import { answer, hangUp, ok, SENDERS, upstreamOf } from './senders.ts'

/** Creates a budget of 10 per 10 s on a manual clock. The margin is so long that no charge is moved. */
function budget() {
  const clock = new ManualClock()
  const limiter = upstreamLimiter({
    limits: [{ limit: 10, window: '10s' }],
    marginMs: 10_000,
    store: memoryStore({ clock: clock.now }),
  })
  return { limiter, used: async () => 10 - (await limiter.peek('k')).remaining }
}

const refused = answer(429, { 'Retry-After': '0' }, 'too many')
const busy = answer(503, {}, 'busy')

describe.each(Object.entries(SENDERS))('%s', (_, sender) => {
  const send = (limiter: ReturnType<typeof budget>['limiter'], retry = {}, more = {}) =>
    sender(limiter, { key: 'k', retry: { maxDelayMs: 20, ...retry }, ...more })

  it.each([
    ['GET', 'a 429', refused],
    ['GET', 'a 503', busy],
    ['GET', 'a connection that breaks', hangUp],
    ['PUT', 'a 429', refused],
    ['PUT', 'a 503', busy],
    ['DELETE', 'a connection that breaks', hangUp],
  ])('sends %s again after %s, with its body and a new charge', async (method, _, first) => {
    const { limiter, used } = budget()
    const { url, asked } = await upstreamOf(first, ok)
    const body = method === 'PUT' ? 'a body' : undefined
    expect(await send(limiter)(url, { method, ...(body && { body }) })).toEqual({ status: 200, text: 'done' })
    expect(asked).toEqual(Array.from({ length: 2 }, () => ({ url: `${method} /path`, body: body ?? '' })))
    expect(await used()).toBe(2)
  })

  it.each([
    ['POST', 'a 429', refused, 429],
    ['PATCH', 'a 503', busy, 503],
    ['GET', 'a 500', answer(500), 500],
  ])("doesn't send %s again after %s", async (method, _, first, status) => {
    const { limiter } = budget()
    const { url, asked } = await upstreamOf(first, ok)
    const body = method === 'GET' ? undefined : 'a body'
    expect((await send(limiter)(url, { method, ...(body && { body }) })).status).toBe(status)
    expect(asked).toHaveLength(1)
  })

  it("doesn't send POST again after a connection that breaks", async () => {
    const { limiter } = budget()
    const { url, asked } = await upstreamOf(hangUp, ok)
    expect(
      await errorOf(() => send(limiter, { anyMethodOn429: true })(url, { method: 'POST', body: 'x' })),
    ).toBeInstanceOf(Error)
    expect(asked).toHaveLength(1)
  })

  it('sends any method again with anyMethodOn429, but only after a 429', async () => {
    const { limiter } = budget()
    const { url, asked } = await upstreamOf(refused, busy)
    expect((await send(limiter, { anyMethodOn429: true })(url, { method: 'POST', body: 'x' })).status).toBe(
      503,
    )
    expect(asked.map(({ body }) => body)).toEqual(['x', 'x'])
  })

  it('sends a stream only once', async () => {
    const { limiter } = budget()
    const { url, asked } = await upstreamOf(refused, ok)
    const sent = { method: 'PUT', body: 'a body', isStreamed: true }
    expect((await send(limiter)(url, sent)).status).toBe(429)
    expect(asked.map(({ body }) => body)).toEqual(['a body'])
  })

  it('stops after maxAttempts and returns the last response', async () => {
    const { limiter, used } = budget()
    const { url, asked } = await upstreamOf(refused)
    expect(await send(limiter, { maxAttempts: 4 })(url)).toEqual({ status: 429, text: 'too many' })
    expect(asked).toHaveLength(4)
    expect(await used()).toBe(4)
  })

  it('sends nothing again with retry: false', async () => {
    const { limiter } = budget()
    const { url, asked } = await upstreamOf(refused)
    expect((await sender(limiter, { key: 'k', retry: false })(url)).status).toBe(429)
    expect(asked).toHaveLength(1)
  })

  it.each([
    ['maxDelayMs', { retry: { maxDelayMs: 4000 } }],
    ['maxWaitMs', { maxWaitMs: 4000 }],
    ['maxDelayMs, and maxHoldMs is shorter', { retry: { maxDelayMs: 4000 }, maxHoldMs: 10 }],
  ])('returns the response if the upstream requests a longer delay than %s', async (_, options) => {
    const { limiter } = budget()
    const { url, asked } = await upstreamOf(answer(503, { 'Retry-After': '5' }), ok)
    expect((await sender(limiter, { key: 'k', ...options })(url)).status).toBe(503)
    expect(asked).toHaveLength(1)
  })

  it("rejects with the signal's reason if aborted before the next attempt", async () => {
    const { limiter, used } = budget()
    const { url, asked } = await upstreamOf(answer(503, { 'Retry-After': '25' }))
    const abort = new AbortController()
    const waiting = sender(limiter, { key: 'k', learn: false })(url, { signal: abort.signal })
    await until('a request', async () => asked.length === 1)
    const reason = new Error('hung up')
    setTimeout(() => abort.abort(reason), 20)
    const startMs = performance.now()
    expect(await errorOf(() => waiting)).toBe(reason)
    expect(performance.now() - startMs).toBeLessThan(20_000)
    expect(asked).toHaveLength(1)
    expect(await used()).toBe(1)
  })

  it('reads only a little of a response that never ends', async () => {
    const { limiter } = budget()
    let isEnded = false
    const { url, asked } = await upstreamOf((request, response) => {
      response.writeHead(503)
      const timer = setInterval(() => response.write(Buffer.alloc(16_384)), 1)
      request.socket.once('close', () => {
        clearInterval(timer)
        isEnded = true
      })
    }, ok)
    expect((await send(limiter)(url)).status).toBe(200)
    expect(asked).toHaveLength(2)
    await until('the end of the response', async () => isEnded)
  })
})

describe('limitedFetch, given a Request', () => {
  const limited = () => limitedFetch(fetch, budget().limiter, { key: 'k', retry: { maxDelayMs: 20 } })

  it('sends it again only if it has no body', async () => {
    const { url, asked } = await upstreamOf(refused)
    await limited()(new Request(url))
    expect(asked.map((each) => each.url)).toEqual(Array(3).fill('GET /path'))
    await limited()(new Request(url, { method: 'PUT', body: 'x' }))
    expect(asked.slice(3)).toEqual([{ url: 'PUT /path', body: 'x' }])
  })

  it('rejects when its signal is aborted', async () => {
    const { url } = await upstreamOf(ok)
    const { limiter } = budget()
    await limiter.consume('k', { cost: 10 })
    const abort = new AbortController()
    const waiting = limitedFetch(fetch, limiter, { key: 'k' })(new Request(url, { signal: abort.signal }))
    await until('a waiter', async () => limiter.waiting('k').length === 1)
    abort.abort(new Error('hung up'))
    expect(await errorOf(() => waiting)).toMatchObject({ message: 'hung up' })
  })
})

describe('the delay', () => {
  const retry = { maxAttempts: 3, maxDelayMs: 10_000 }

  it('adds a random part that doubles to the requested time', () => {
    expect(delayMs(retry, 1, 0, () => 0)).toBe(0)
    expect(delayMs(retry, 1, 3000, () => 0)).toBe(3000)
    expect(delayMs(retry, 1, 3000, () => 0.5)).toBe(3250)
    expect(delayMs(retry, 2, 3000, () => 0.5)).toBe(3500)
    expect(delayMs(retry, 3, 3000, () => 0.5)).toBeUndefined()
    expect(delayMs(retry, 1, 10_001, () => 0)).toBeUndefined()
  })

  it('stays between the requested time and maxDelayMs', () => {
    const numbers = fc.tuple(
      fc.nat(1e5),
      fc.nat(1e5),
      fc.integer({ min: 1, max: 100 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
    )
    fc.assert(
      fc.property(numbers, ([maxDelayMs, requestedMs, attempt, chance]) => {
        const delay = delayMs({ maxAttempts: 100, maxDelayMs }, attempt, requestedMs, () => chance)
        if (attempt >= 100 || requestedMs > maxDelayMs) expect(delay).toBeUndefined()
        else expect(delay! >= requestedMs && delay! <= maxDelayMs).toBe(true)
      }),
    )
  })
})

describe('a failed request', () => {
  const url = new URL('http://api.example:8080/path')
  const failure = (cause: object) => Object.assign(new TypeError('fetch failed'), { cause })

  it.each([
    ['refused, and no redirect was followed', { code: 'ECONNREFUSED' }, false, true],
    ['not found, and no redirect was followed', { code: 'ENOTFOUND' }, false, true],
    ['not found at its own host', { code: 'ENOTFOUND', hostname: 'api.example' }, true, true],
    [
      'not found at another host, where it may have been redirected',
      { code: 'ENOTFOUND', hostname: 'other.example' },
      true,
      false,
    ],
    ['refused by an unknown server', { code: 'ECONNREFUSED', address: '192.0.2.1', port: 8080 }, true, false],
    ['broken', { code: 'ECONNRESET' }, false, false],
  ])('reached the upstream or not: %s', (_, cause, isFollowed, expected) => {
    expect(neverArrived(failure(cause), url, isFollowed)).toBe(expected)
    expect(isNetworkError(failure(cause))).toBe(true)
  })

  it.each([
    ['192.0.2.1', 'http://192.0.2.1:8080/', 8080, true],
    ['192.0.2.1', 'http://192.0.2.1/', 80, true],
    ['::1', 'https://[::1]/', 443, true],
    ['::1', 'https://[::1]/', 444, false],
  ])('reached the upstream or not, by address: %s for %s', (address, to, port, expected) => {
    expect(neverArrived(failure({ code: 'ECONNREFUSED', address, port }), new URL(to), true)).toBe(expected)
  })

  it.each([new TypeError('Invalid URL'), new DOMException('aborted', 'AbortError'), undefined, 'gone', null])(
    "didn't fail in the network with %s",
    (error) => {
      expect(isNetworkError(error)).toBe(false)
    },
  )
})

it('isRepeatable recognizes bodies that can be sent twice', () => {
  const twice = [
    undefined,
    null,
    'text',
    new Uint8Array(1),
    new ArrayBuffer(1),
    new URLSearchParams(),
    new Blob(),
    new FormData(),
  ]
  expect(twice.map(isRepeatable)).toEqual(twice.map(() => true))
  const once = [new Blob().stream(), (async function* () {})(), {}]
  expect(once.map(isRepeatable)).toEqual(once.map(() => false))
})
