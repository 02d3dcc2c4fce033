import theirs, { type RateLimitOptions, type RateLimitPluginOptions } from '@fastify/rate-limit'
import {
  type FastifyInstance,
  type FastifyPluginCallback,
  type FastifyReply,
  type FastifyRequest,
  fastify,
} from 'fastify'
import type { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { rateLimit as ours } from '../../../packages/slidegate/src/adapters/fastify.ts'
import { createLimiter, memoryStore, slidingWindow } from '../../../packages/slidegate/src/index.ts'
import { ManualClock } from '../../../packages/slidegate/src/testing/index.ts'
import { startOpenRedis } from '../../../packages/slidegate/test/docs/open-redis.ts'
import { START, setDate } from './fake-date.ts'
import { aroundAnEdge, statuses } from './serve.ts'

// Tests the statements of docs/migrate/fastify-rate-limit.md about both packages.

const perMinute = (limit: number) => [slidingWindow({ limit, window: '1m' })]

async function app(register: (app: FastifyInstance) => void) {
  const app = fastify()
  onTestFinished(() => app.close())
  register(app)
  await app.after()
  app.get('/', async () => 'hello')
  await app.ready()
  const ask = async (remoteAddress = '203.0.113.7', url = '/') => {
    const response = await app.inject({ url, remoteAddress })
    return { status: response.statusCode, headers: response.headers, body: response.body }
  }
  return { app, ask }
}

const withTheirs = (options: RateLimitPluginOptions) => app((app) => void app.register(theirs, options))
const withOurs = (plugin: FastifyPluginCallback) => app((app) => void app.register(plugin))

async function ownRedis(): Promise<Redis> {
  const { redis, stop } = await startOpenRedis()
  onTestFinished(stop)
  return redis
}

describe('the fullest minute', () => {
  it('contains 19 requests for a limit of 10 with @fastify/rate-limit', async () => {
    setDate(START)
    const { ask } = await withTheirs({ max: 10, timeWindow: '1 minute' })
    expect(await aroundAnEdge(ask, (ms) => vi.setSystemTime(ms))).toEqual([1, 9, 10])
  })

  it('contains 10 requests for a limit of 10 with slidegate', async () => {
    const clock = new ManualClock(START)
    const { ask } = await withOurs(ours({ limits: perMinute(10), store: memoryStore({ clock: clock.now }) }))
    expect(await aroundAnEdge(ask, (ms) => clock.set(ms))).toEqual([1, 9, 1])
  })
})

it('@fastify/rate-limit bans after denials, until the window ends', async () => {
  setDate(START)
  const { ask } = await withTheirs({ max: 1, timeWindow: '1 minute', ban: 1 })
  expect(await statuses(ask, 4)).toEqual([200, 429, 403, 403])
  vi.setSystemTime(START + 60_000)
  expect(await statuses(ask, 1)).toEqual([200])
})

it('a slidegate ban lasts for its configured time, with status 429', async () => {
  const clock = new ManualClock(START)
  const limiter = createLimiter({
    limits: perMinute(1),
    ban: { after: 2, within: '1m', for: ['10m', '1h'] },
    store: memoryStore({ clock: clock.now }),
  })
  const { ask } = await withOurs(ours({ limiter }))
  expect(await statuses(ask, 3)).toEqual([200, 429, 429])
  expect((await ask()).headers['retry-after']).toBe('600')
  clock.advance(60_000)
  expect(await statuses(ask, 1)).toEqual([429])
})

it('@fastify/rate-limit with continueExceeding never admits a persistent client, slidegate does', async () => {
  setDate(START)
  const { ask } = await withTheirs({ max: 1, timeWindow: '1 minute', continueExceeding: true })
  const seen: number[] = []
  for (let n = 0; n < 5; n++) {
    vi.setSystemTime(START + n * 59_000)
    seen.push((await ask()).status)
  }
  expect(seen).toEqual([200, 429, 429, 429, 429])

  const clock = new ManualClock(START)
  const { ask: askOurs } = await withOurs(
    ours({ limits: perMinute(1), store: memoryStore({ clock: clock.now }) }),
  )
  seen.length = 0
  for (let n = 0; n < 5; n++) {
    seen.push((await askOurs()).status)
    clock.advance(59_000)
  }
  expect(seen).toEqual([200, 429, 200, 429, 200])
})

it('@fastify/rate-limit announces a backoff that only its Redis store enforces', async () => {
  setDate(START)
  const backoff = { max: 1, timeWindow: '1 minute', exponentialBackoff: true }
  const { ask } = await withTheirs(backoff)
  expect(await statuses(ask, 3)).toEqual([200, 429, 429])
  expect((await ask()).headers['retry-after']).toBe('240')
  vi.setSystemTime(START + 60_000)
  expect((await ask()).status).toBe(200)

  const redis = await ownRedis()
  const { ask: askRedis } = await withTheirs({ ...backoff, redis })
  expect(await statuses(askRedis, 4)).toEqual([200, 429, 429, 429])
  expect(await redis.pttl('fastify-rate-limit-203.0.113.7')).toBeGreaterThan(180_000)
})

describe('a flood of other clients', () => {
  const flood = Array.from({ length: 20 }, (_, n) => `198.51.100.${n}`)

  it('evicts a client at its limit with @fastify/rate-limit', async () => {
    const { ask } = await withTheirs({ max: 1, cache: 10 })
    expect(await statuses(ask, 2)).toEqual([200, 429])
    for (const address of flood) await ask(address)
    expect((await ask()).status).toBe(200)
  })

  it('evicts no client at its limit with slidegate', async () => {
    const { ask } = await withOurs(ours({ limits: perMinute(1), store: memoryStore({ maxKeys: 10 }) }))
    expect(await statuses(ask, 2)).toEqual([200, 429])
    for (const address of flood) await ask(address)
    expect((await ask()).status).toBe(429)
  })
})

describe('an invalid limit', () => {
  it('becomes 1000 with @fastify/rate-limit', async () => {
    for (const max of ['3', -1, Number.NaN]) {
      const { ask } = await withTheirs({ max } as RateLimitPluginOptions)
      expect((await ask()).headers['x-ratelimit-limit']).toBe('1000')
    }
  })

  it('throws with slidegate', () => {
    for (const limit of ['3', -1, Number.NaN]) {
      expect(() => perMinute(limit as number)).toThrow(expect.objectContaining({ code: 'invalid_limit' }))
    }
  })
})

describe('a route that is not found', () => {
  it('passes without a limit with @fastify/rate-limit', async () => {
    const { ask } = await withTheirs({ max: 1 })
    expect(await statuses(() => ask('203.0.113.7', '/nowhere'), 3)).toEqual([404, 404, 404])
  })

  it('counts with slidegate', async () => {
    const { ask } = await withOurs(ours({ limits: perMinute(1) }))
    expect(await statuses(() => ask('203.0.113.7', '/nowhere'), 3)).toEqual([404, 429, 429])
  })
})

describe('a trustProxy that trusts every address', () => {
  async function spoofed(plugin: FastifyPluginCallback, options: object = {}): Promise<number[]> {
    const app = fastify({ trustProxy: true })
    onTestFinished(() => app.close())
    await app.register(plugin, options)
    app.get('/', async () => 'hello')
    let n = 0
    return await statuses(async () => {
      const headers = { 'x-forwarded-for': `203.0.113.${n++}` }
      return { status: (await app.inject({ url: '/', headers })).statusCode }
    }, 3)
  }

  it('admits all clients with @fastify/rate-limit', async () => {
    expect(await spoofed(theirs, { max: 1 })).toEqual([200, 200, 200])
  })

  it('fails each request with slidegate', async () => {
    expect(await spoofed(ours({ limits: perMinute(1) }))).toEqual([500, 500, 500])
  })
})

describe('a route with its own limits', () => {
  async function twoRoutes(
    plugin: FastifyPluginCallback,
    options: object,
    config: object,
  ): Promise<number[]> {
    const app = fastify()
    onTestFinished(() => app.close())
    await app.register(plugin, options)
    for (const url of ['/a', '/b'])
      app.get(url, { config: { rateLimit: { ...config } } }, async () => 'hello')
    const ask = async (url: string) => (await app.inject({ url })).statusCode
    return [await ask('/a'), await ask('/a'), await ask('/b'), await ask('/b')]
  }

  it('counts separately with both', async () => {
    const config: RateLimitOptions = { max: 1 }
    expect(await twoRoutes(theirs, { max: 9 }, config)).toEqual([200, 429, 200, 429])
    expect(await twoRoutes(ours({ limits: perMinute(9) }), {}, { limits: perMinute(1) })).toEqual([
      200, 429, 200, 429,
    ])
  })

  it('counts separately with @fastify/rate-limit, even with a groupId', async () => {
    const config: RateLimitOptions = { max: 1, groupId: 'ab' }
    for (const redis of [undefined, await ownRedis()]) {
      expect(await twoRoutes(theirs, { max: 9, redis }, config)).toEqual([200, 429, 200, 429])
    }
  })

  it('counts together with slidegate if it shares a store and name, or a limiter', async () => {
    const shared = { name: 'ab', limits: perMinute(1) }
    const plugin = ours({ limits: perMinute(9), store: memoryStore() })
    expect(await twoRoutes(plugin, {}, shared)).toEqual([200, 429, 429, 429])
    const limiter = createLimiter({ limits: perMinute(1) })
    expect(await twoRoutes(ours({ limits: perMinute(9) }), {}, { limiter })).toEqual([200, 429, 429, 429])
  })
})

describe('two plugins in one app', () => {
  it("overwrite each other's headers with @fastify/rate-limit", async () => {
    const { ask } = await app((app) => {
      app.register(theirs, { max: 1 })
      app.register(theirs, { max: 9 })
    })
    expect((await ask()).headers['x-ratelimit-remaining']).toBe('8')
  })

  it('report the tighter limit, or both, with slidegate', async () => {
    for (const [headers, name, seen] of [
      ['legacy', 'x-ratelimit-remaining', '0'],
      ['draft-11', 'ratelimit', '"1-per-1m";r=0;t=60, "9-per-1m";r=8;t=60'],
    ] as const) {
      const { ask } = await app((app) => {
        app.register(ours({ limits: perMinute(1), headers }))
        app.register(ours({ limits: perMinute(9), headers }))
      })
      expect((await ask()).headers[name]).toBe(seen)
    }
  })
})

describe('a denial', () => {
  async function handled(register: (app: FastifyInstance) => void): Promise<unknown[]> {
    const errors: unknown[] = []
    const { ask } = await app((app) => {
      app.setErrorHandler((error: unknown, _request: FastifyRequest, reply: FastifyReply) => {
        errors.push(error)
        reply.code(429).send('denied')
      })
      register(app)
    })
    expect(await statuses(ask, 2)).toEqual([200, 429])
    return errors
  }

  it('goes through the error handler with @fastify/rate-limit', async () => {
    expect(await handled((app) => void app.register(theirs, { max: 1 }))).toHaveLength(1)
  })

  it('skips the error handler with slidegate', async () => {
    expect(await handled((app) => void app.register(ours({ limits: perMinute(1) })))).toEqual([])
  })
})

it('X-RateLimit-Reset counts seconds from now with @fastify/rate-limit, and from the epoch with slidegate', async () => {
  const clock = new ManualClock(START)
  const { ask } = await withTheirs({ max: 1 })
  expect((await ask()).headers['x-ratelimit-reset']).toBe('60')
  const store = memoryStore({ clock: clock.now })
  const { ask: askOurs } = await withOurs(ours({ limits: perMinute(1), headers: 'legacy', store }))
  expect((await askOurs()).headers['x-ratelimit-reset']).toBe(`${START / 1000 + 60}`)
})
