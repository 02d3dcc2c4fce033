import { once } from 'node:events'
import express, { type RequestHandler, type Response } from 'express'
import { rateLimit as theirs } from 'express-rate-limit'
import { describe, expect, it, vi } from 'vitest'
import { rateLimit as ours } from '../../../packages/slidegate/src/adapters/express.ts'
import { memoryStore, slidingWindow } from '../../../packages/slidegate/src/index.ts'
import { ManualClock } from '../../../packages/slidegate/src/testing/index.ts'
import { START, setDate } from './fake-date.ts'
import { admitted, aroundAnEdge, serve, statuses } from './serve.ts'

// Tests the statements of docs/migrate/express-rate-limit.md about both packages.

const hello: RequestHandler = (_req, res) => {
  res.send('hello')
}

function app(limit: RequestHandler, handler = hello) {
  const app = express()
  app.use(limit)
  app.get('/', handler)
  return serve(app)
}

const perMinute = (limit: number) => [slidingWindow({ limit, window: '1m' })]

describe('the fullest minute', () => {
  it('contains 19 requests for a limit of 10 with express-rate-limit', async () => {
    setDate(START)
    const ask = await app(theirs({ limit: 10, windowMs: 60_000 }))
    expect(await aroundAnEdge(ask, (ms) => vi.setSystemTime(ms))).toEqual([1, 9, 10])
  })

  it('contains 10 requests for a limit of 10 with slidegate', async () => {
    const clock = new ManualClock(START)
    const ask = await app(ours({ limits: perMinute(10), store: memoryStore({ clock: clock.now }) }))
    expect(await aroundAnEdge(ask, (ms) => clock.set(ms))).toEqual([1, 9, 1])
  })
})

describe('a denied request', () => {
  // Two requests are in flight and a third is denied. Then the two succeed and are refunded. Returns how many fit now.
  async function roomAfterwards(limit: RequestHandler): Promise<number> {
    const held: Response[] = []
    const ask = await app(limit, (_req, res) => {
      if (held.length < 2) held.push(res)
      else res.status(500).send('failed')
    })
    const two = [ask(), ask()]
    await vi.waitFor(() => expect(held.length).toBe(2), { timeout: 30_000 })
    expect((await ask()).status).toBe(429)
    const over = held.map((res) => once(res, 'close'))
    for (const res of held) res.send('hello')
    await Promise.all([...two, ...over])
    return (await statuses(ask, 2)).filter((status) => status === 500).length
  }

  it('stays charged with express-rate-limit', async () => {
    expect(await roomAfterwards(theirs({ limit: 2, skipSuccessfulRequests: true }))).toBe(1)
  })

  it('costs nothing with slidegate', async () => {
    expect(await roomAfterwards(ours({ limits: perMinute(2), refundIf: 'successful' }))).toBe(2)
  })
})

describe('a client that hangs up before the response', () => {
  async function roomAfterwards(limit: RequestHandler): Promise<number> {
    const held: Response[] = []
    const ask = await app(limit, (_req, res) => {
      if (held.length === 0) held.push(res)
      else res.send('hello')
    })
    const hangUp = new AbortController()
    const gone = ask('/', { signal: hangUp.signal }).catch(() => undefined)
    await vi.waitFor(() => expect(held.length).toBe(1), { timeout: 30_000 })
    const over = once(held[0]!, 'close')
    hangUp.abort()
    await Promise.all([gone, over])
    return await admitted(ask, 2)
  }

  it('goes free with express-rate-limit and skipFailedRequests', async () => {
    expect(await roomAfterwards(theirs({ limit: 2, skipFailedRequests: true }))).toBe(2)
  })

  it('stays charged with slidegate and refundIf: failed', async () => {
    expect(await roomAfterwards(ours({ limits: perMinute(2), refundIf: 'failed' }))).toBe(1)
  })
})

describe('headers', () => {
  async function denial(limit: RequestHandler): Promise<globalThis.Response> {
    const ask = await app(limit)
    await ask()
    return await ask()
  }

  it('default to X-RateLimit-* with express-rate-limit, and the body to plain text', async () => {
    setDate(START)
    const response = await denial(theirs({ limit: 1 }))
    expect(await response.text()).toBe('Too many requests, please try again later.')
    expect(response.headers.get('x-ratelimit-limit')).toBe('1')
    expect(response.headers.get('x-ratelimit-reset')).toBe(`${START / 1000 + 60}`)
    expect(response.headers.get('ratelimit')).toBe(null)
    expect(response.headers.get('retry-after')).toBe('60')
  })

  it('lack Retry-After with express-rate-limit if they are off', async () => {
    const response = await denial(theirs({ limit: 1, legacyHeaders: false }))
    expect(response.status).toBe(429)
    expect(response.headers.get('retry-after')).toBe(null)
  })

  it('keep Retry-After with slidegate if they are off', async () => {
    const store = memoryStore({ clock: new ManualClock(START).now })
    const response = await denial(ours({ limits: perMinute(1), headers: false, store }))
    expect(response.headers.get('ratelimit')).toBe(null)
    expect(response.headers.get('retry-after')).toBe('60')
  })

  it('lack Retry-After with slidegate and disclose: false', async () => {
    const response = await denial(ours({ limits: perMinute(1), disclose: false }))
    expect(response.headers.get('retry-after')).toBe(null)
  })

  it('overwrite each other with two limiters of express-rate-limit', async () => {
    const parent = express()
    parent.use(theirs({ limit: 1 }), theirs({ limit: 9 }), hello)
    const { headers } = await (await serve(parent))()
    expect(headers.get('x-ratelimit-remaining')).toBe('8')
  })

  it('list both limiters with express-rate-limit and draft-8', async () => {
    setDate(START)
    const draft8 = (limit: number, identifier: string) =>
      theirs({ limit, identifier, standardHeaders: 'draft-8' })
    const parent = express()
    parent.use(draft8(1, 'tight'), draft8(9, 'wide'), hello)
    const { headers } = await (await serve(parent))()
    expect(headers.get('ratelimit')).toBe('"tight"; r=0; t=60, "wide"; r=8; t=60')
  })

  it('report the tighter of two limiters with slidegate', async () => {
    const [tight, wide] = [
      ours({ name: 'tight', limits: perMinute(1), headers: 'legacy' }),
      ours({ name: 'wide', limits: perMinute(9), headers: 'legacy' }),
    ]
    const parent = express()
    parent.use(tight, wide, hello)
    const { headers } = await (await serve(parent))()
    expect(headers.get('x-ratelimit-remaining')).toBe('0')
  })
})

describe("a 'trust proxy' that trusts every address", () => {
  async function spoofed(limit: RequestHandler): Promise<number[]> {
    const parent = express()
    parent.set('trust proxy', true)
    parent.use(limit, hello)
    parent.use(((_error, _req, res, _next) => {
      res.sendStatus(500)
    }) as express.ErrorRequestHandler)
    const ask = await serve(parent)
    let n = 0
    return await statuses(() => ask('/', { headers: { 'X-Forwarded-For': `203.0.113.${n++}` } }), 3)
  }

  it('logs an error once with express-rate-limit, and admits all clients', async () => {
    const errors: unknown[] = []
    const logger = { warn: () => {}, error: (error: unknown) => errors.push(error) }
    expect(await spoofed(theirs({ limit: 1, logger }))).toEqual([200, 200, 200])
    expect(errors.map((error) => (error as { code: string }).code)).toEqual([
      'ERR_ERL_PERMISSIVE_TRUST_PROXY',
    ])
  })

  it('fails each request with slidegate', async () => {
    expect(await spoofed(ours({ limits: perMinute(1) }))).toEqual([500, 500, 500])
  })
})

it('express-rate-limit groups IPv6 addresses by /56, slidegate by /64', async () => {
  async function seenTogether(limit: RequestHandler): Promise<number[]> {
    const parent = express()
    parent.set('trust proxy', 1)
    parent.use(limit, hello)
    const ask = await serve(parent)
    const of = (address: string) => ask('/', { headers: { 'X-Forwarded-For': address } })
    return [(await of('2001:db8:0:1::1')).status, (await of('2001:db8:0:2::1')).status]
  }
  expect(await seenTogether(theirs({ limit: 1 }))).toEqual([200, 429])
  expect(await seenTogether(ours({ limits: perMinute(1) }))).toEqual([200, 200])
  const address = { trust: 1, ipv6Prefix: 56 }
  expect(await seenTogether(ours({ limits: perMinute(1), address }))).toEqual([200, 429])
})

it('express-rate-limit denies all requests for a limit of 0, slidegate rejects it', async () => {
  const logger = { warn: () => {}, error: () => {} }
  expect((await (await app(theirs({ limit: 0, logger })))()).status).toBe(429)
  expect(() => perMinute(0)).toThrow(expect.objectContaining({ code: 'invalid_limit' }))
})

it('express-rate-limit logs an unknown option and continues', () => {
  const errors: unknown[] = []
  const logger = { warn: () => {}, error: (error: unknown) => errors.push(error) }
  const wrong = { limit: 1, windowMS: 1000, logger }
  expect(() => theirs(wrong)).not.toThrow()
  expect(errors.length).toBe(1)
})
