import { describe, expect, it } from 'vitest'
import type { HandlerArguments } from '../../../src/http/index.ts'
import { createLimiter, slidingWindow } from '../../../src/index.ts'
import {
  type AdapterUnderTest,
  limitedTo,
  list,
  newStore,
  perMinute,
  rateLimitHeaders,
  serve,
  statuses,
  time,
} from './fixture.ts'

/** Tests the headers and bodies that a caller sees. */
export function verdictSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  describe('a request within the limits', () => {
    it('gets served, with the remaining quota in headers', async () => {
      const server = await serve(adapter, limitedTo(3))
      const response = await fetch(server.url)
      expect([response.status, await response.text()]).toEqual([200, 'served'])
      expect(list(response, 'RateLimit-Policy')).toEqual([['per-minute', { q: 3, w: 60 }]])
      expect(list(response, 'RateLimit')).toEqual([['per-minute', { r: 2, t: 60 }]])
      expect(response.headers.has('Retry-After')).toBe(false)
    })

    it('gets headers with all limits except shadow limits', async () => {
      const limits = [
        slidingWindow({ limit: 5, window: '500ms', name: 'burst' }),
        slidingWindow({ limit: 1, window: '1h', name: 'tried', shadow: true }),
        slidingWindow({ limit: 9, window: '1h', name: 'hourly' }),
      ]
      const response = await fetch((await serve(adapter, { limits, store: newStore() })).url)
      expect(list(response, 'RateLimit-Policy')).toEqual([
        ['burst', { q: 5 }],
        ['hourly', { q: 9, w: 3600 }],
      ])
      expect(list(response, 'RateLimit')).toEqual([
        ['burst', { r: 4, t: 1 }],
        ['hourly', { r: 8, t: 3600 }],
      ])
    })

    it('gets no rate limit headers if all limits are shadow limits', async () => {
      const limits = [slidingWindow({ limit: 1, window: '1m', shadow: true })]
      const server = await serve(adapter, { limits, store: newStore() })
      await fetch(server.url)
      const response = await fetch(server.url)
      expect([response.status, rateLimitHeaders(response)]).toEqual([200, []])
    })

    it('counts in the memory of the process if no store is set', async () => {
      const server = await serve(adapter, { limits: [perMinute(1)] })
      expect(await statuses(server, 2)).toEqual([200, 429])
    })
  })

  describe('a denied request', () => {
    it("gets a 429 with a problem body and isn't served", async () => {
      const server = await serve(adapter, limitedTo(1))
      await fetch(server.url)
      time.nowMs += 12_345
      const response = await fetch(server.url)
      expect(response.status).toBe(429)
      expect(response.headers.get('Content-Type')).toBe('application/problem+json')
      expect(await response.json()).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: expect.any(String),
        status: 429,
        'violated-policies': ['per-minute'],
      })
      expect(response.headers.get('Retry-After')).toBe('48')
      expect(list(response, 'RateLimit')).toEqual([['per-minute', { r: 0, t: 48 }]])
      expect([server.served(), server.errors]).toEqual([1, []])
    })

    it('gets a body with the active block, a wait that includes the limits, and the remaining units', async () => {
      const limiter = createLimiter({
        dimensions: {
          user: [slidingWindow({ limit: 1, window: '1h', name: 'hourly' })],
          ip: [slidingWindow({ limit: 50, window: '10m', name: 'burst' })],
        },
        overrides: true,
        store: newStore(),
      })
      const server = await serve(adapter, { limiter, key: () => ({ user: 'ann', ip: 'here' }) })
      await fetch(server.url)
      await limiter.block({ ip: 'here' }, '2m')
      const response = await fetch(server.url)
      expect([response.status, response.headers.get('Retry-After')]).toEqual([429, '3600'])
      expect(await response.json()).toMatchObject({ 'violated-policies': ['ip.block', 'user.hourly'] })
      expect(list(response, 'RateLimit-Policy')).toEqual([
        ['ip.block', { q: 0 }],
        ['user.hourly', { q: 1, w: 3600 }],
        ['ip.burst', { q: 50, w: 600 }],
      ])
      expect(list(response, 'RateLimit')).toEqual([
        ['ip.block', { r: 0, t: 120 }],
        ['user.hourly', { r: 0, t: 3600 }],
        ['ip.burst', { r: 49 }],
      ])
      expect(server.served()).toBe(1)
    })

    it('charges nothing, so the next one is admitted after Retry-After, however many came in between', async () => {
      const server = await serve(adapter, limitedTo(1))
      expect(await statuses(server, 20)).toEqual([200, ...Array(19).fill(429)])
      time.nowMs += 59_999
      expect(await statuses(server, 1)).toEqual([429])
      time.nowMs += 1
      expect(await statuses(server, 2)).toEqual([200, 429])
    })

    it('gets the same headers but no body for HEAD', async () => {
      const server = await serve(adapter, limitedTo(1))
      await fetch(server.url)
      const head = await fetch(server.url, { method: 'HEAD' })
      const get = await fetch(server.url)
      expect([head.status, await head.text()]).toEqual([429, ''])
      // A response to HEAD may omit Content-Length.
      const ofTheMoment = ['date', 'connection', 'keep-alive', 'content-length']
      const comparable = ({ headers }: Response) =>
        [...headers].filter(([name]) => !ofTheMoment.includes(name))
      expect(comparable(head)).toEqual(comparable(get))
    })

    it('gets the response of onDenied, with the headers already set', async () => {
      const server = await serve(adapter, limitedTo(1, { cost: () => 1, onDenied: adapter.teapot }))
      await fetch(server.url)
      const response = await fetch(server.url)
      expect([response.status, await response.text()]).toEqual([418, 'cost 1'])
      expect(response.headers.get('Retry-After')).toBe('60')
      expect(list(response, 'RateLimit')).toEqual([['per-minute', { r: 0, t: 60 }]])
      expect(server.served()).toBe(1)
    })

    it('gets no Retry-After and no t if it will never be admitted', async () => {
      const response = await fetch((await serve(adapter, limitedTo(3, { cost: () => 4 }))).url)
      expect([response.status, response.headers.get('Retry-After')]).toEqual([429, null])
      expect(list(response, 'RateLimit')).toEqual([['per-minute', { r: 3 }]])
    })
  })

  it('several limiters on one route merge into one list', async () => {
    const hourly = slidingWindow({ limit: 9, window: '1h', name: 'hourly' })
    const server = await serve(adapter, [limitedTo(2), { limits: [hourly], store: newStore() }])
    const response = await fetch(server.url)
    expect(list(response, 'RateLimit-Policy')).toEqual([
      ['per-minute', { q: 2, w: 60 }],
      ['hourly', { q: 9, w: 3600 }],
    ])
    expect(list(response, 'RateLimit')).toEqual([
      ['per-minute', { r: 1, t: 60 }],
      ['hourly', { r: 8, t: 3600 }],
    ])
  })

  it('several limiters on one route send only the time of the one that denied', async () => {
    const hourly = slidingWindow({ limit: 9, window: '1h', name: 'hourly' })
    const server = await serve(adapter, [{ limits: [hourly], store: newStore() }, limitedTo(1)])
    await fetch(server.url)
    const response = await fetch(server.url)
    expect(list(response, 'RateLimit')).toEqual([
      ['hourly', { r: 7 }],
      ['per-minute', { r: 0, t: 60 }],
    ])
    expect(response.headers.get('Retry-After')).toBe('60')
  })

  it("the tighter of several limiters on one route sets headers that can't be lists", async () => {
    const server = await serve(adapter, [
      limitedTo(2, { headers: 'legacy' }),
      limitedTo(9, { headers: 'legacy' }),
    ])
    expect((await fetch(server.url)).headers.get('X-RateLimit-Limit')).toBe('2')
  })
}
