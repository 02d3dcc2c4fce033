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

// What docs/migrate/fastify-rate-limit.md says of both.

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

describe('a minute that begins anywhere', () => {
  it('holds 19 of 10 with theirs', async () => {
    setDate(START)
    const { ask } = await withTheirs({ max: 10, timeWindow: '1 minute' })
    expect(await aroundAnEdge(ask, (ms) => vi.setSystemTime(ms))).toEqual([1, 9, 10])
  })

  it('holds 10 of 10 with ours', async () => {
    const clock = new ManualClock(START)
    const { ask } = await withOurs(ours({ limits: perMinute(10), store: memoryStore({ clock: clock.now }) }))
    expect(await aroundAnEdge(ask, (ms) => clock.set(ms))).toEqual([1, 9, 1])
  })
})

it('theirs counts the denied towards a ban, which has no time of its own', async () => {
  setDate(START)
  const { ask } = await withTheirs({ max: 1, timeWindow: '1 minute', ban: 1 })
  expect(await statuses(ask, 4)).toEqual([200, 429, 403, 403])
  vi.setSystemTime(START + 60_000)
  expect(await statuses(ask, 1)).toEqual([200])
})

it('a ban of ours lasts as long as it says, and is answered with 429', async () => {
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

it('theirs lets one who never stops wait for ever with continueExceeding, ours has no such thing', async () => {
  setDate(START)
  const { ask } = await withTheirs({ max: 1, timeWindow: '1 minute', continueExceeding: true })
  const told: number[] = []
  for (let n = 0; n < 5; n++) {
    vi.setSystemTime(START + n * 59_000)
    told.push((await ask()).status)
  }
  expect(told).toEqual([200, 429, 429, 429, 429])

  const clock = new ManualClock(START)
  const { ask: askOurs } = await withOurs(
    ours({ limits: perMinute(1), store: memoryStore({ clock: clock.now }) }),
  )
  told.length = 0
  for (let n = 0; n < 5; n++) {
    told.push((await askOurs()).status)
    clock.advance(59_000)
  }
  expect(told).toEqual([200, 429, 200, 429, 200])
})

it('theirs tells of a backoff that its store in memory does not keep, and the one in Redis does', async () => {
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

describe('a flood of foreign callers', () => {
  const flood = Array.from({ length: 20 }, (_, n) => `198.51.100.${n}`)

  it('pushes out who is at his limit with theirs', async () => {
    const { ask } = await withTheirs({ max: 1, cache: 10 })
    expect(await statuses(ask, 2)).toEqual([200, 429])
    for (const address of flood) await ask(address)
    expect((await ask()).status).toBe(200)
  })

  it('does not with ours', async () => {
    const { ask } = await withOurs(ours({ limits: perMinute(1), store: memoryStore({ maxKeys: 10 }) }))
    expect(await statuses(ask, 2)).toEqual([200, 429])
    for (const address of flood) await ask(address)
    expect((await ask()).status).toBe(429)
  })
})

describe('an option that cannot be meant', () => {
  it('is 1000 with theirs', async () => {
    for (const max of ['3', -1, Number.NaN]) {
      const { ask } = await withTheirs({ max } as RateLimitPluginOptions)
      expect((await ask()).headers['x-ratelimit-limit']).toBe('1000')
    }
  })

  it('is refused by ours', () => {
    for (const limit of ['3', -1, Number.NaN]) {
      expect(() => perMinute(limit as number)).toThrow(expect.objectContaining({ code: 'invalid_limit' }))
    }
  })
})

describe('what is not found', () => {
  it('is not limited by theirs', async () => {
    const { ask } = await withTheirs({ max: 1 })
    expect(await statuses(() => ask('203.0.113.7', '/nowhere'), 3)).toEqual([404, 404, 404])
  })

  it('is limited by ours', async () => {
    const { ask } = await withOurs(ours({ limits: perMinute(1) }))
    expect(await statuses(() => ask('203.0.113.7', '/nowhere'), 3)).toEqual([404, 429, 429])
  })
})

describe('a trustProxy that believes anybody', () => {
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

  it('lets everybody through with theirs', async () => {
    expect(await spoofed(theirs, { max: 1 })).toEqual([200, 200, 200])
  })

  it('is an error of each request with ours', async () => {
    expect(await spoofed(ours({ limits: perMinute(1) }))).toEqual([500, 500, 500])
  })
})

describe('a route with limits of its own', () => {
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

  it('counts apart with both', async () => {
    const config: RateLimitOptions = { max: 1 }
    expect(await twoRoutes(theirs, { max: 9 }, config)).toEqual([200, 429, 200, 429])
    expect(await twoRoutes(ours({ limits: perMinute(9) }), {}, { limits: perMinute(1) })).toEqual([
      200, 429, 200, 429,
    ])
  })

  it('counts apart with theirs in spite of a groupId', async () => {
    const config: RateLimitOptions = { max: 1, groupId: 'ab' }
    for (const redis of [undefined, await ownRedis()]) {
      expect(await twoRoutes(theirs, { max: 9, redis }, config)).toEqual([200, 429, 200, 429])
    }
  })

  it('counts together with ours by name in one store, or by limiter', async () => {
    const shared = { name: 'ab', limits: perMinute(1) }
    const plugin = ours({ limits: perMinute(9), store: memoryStore() })
    expect(await twoRoutes(plugin, {}, shared)).toEqual([200, 429, 429, 429])
    const limiter = createLimiter({ limits: perMinute(1) })
    expect(await twoRoutes(ours({ limits: perMinute(9) }), {}, { limiter })).toEqual([200, 429, 429, 429])
  })
})

describe('two of them', () => {
  it('overwrite the headers of each other with theirs', async () => {
    const { ask } = await app((app) => {
      app.register(theirs, { max: 1 })
      app.register(theirs, { max: 9 })
    })
    expect((await ask()).headers['x-ratelimit-remaining']).toBe('8')
  })

  it('tell the tighter limit with ours, or both', async () => {
    for (const [headers, name, told] of [
      ['legacy', 'x-ratelimit-remaining', '0'],
      ['draft-11', 'ratelimit', '"1-per-1m";r=0;t=60, "9-per-1m";r=8;t=60'],
    ] as const) {
      const { ask } = await app((app) => {
        app.register(ours({ limits: perMinute(1), headers }))
        app.register(ours({ limits: perMinute(9), headers }))
      })
      expect((await ask()).headers[name]).toBe(told)
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

  it('goes through the error handler with theirs', async () => {
    expect(await handled((app) => void app.register(theirs, { max: 1 }))).toHaveLength(1)
  })

  it('is answered by ours', async () => {
    expect(await handled((app) => void app.register(ours({ limits: perMinute(1) })))).toEqual([])
  })
})

it('X-RateLimit-Reset is seconds from now with theirs, and since the epoch with ours', async () => {
  const clock = new ManualClock(START)
  const { ask } = await withTheirs({ max: 1 })
  expect((await ask()).headers['x-ratelimit-reset']).toBe('60')
  const store = memoryStore({ clock: clock.now })
  const { ask: askOurs } = await withOurs(ours({ limits: perMinute(1), headers: 'legacy', store }))
  expect((await askOurs()).headers['x-ratelimit-reset']).toBe(`${START / 1000 + 60}`)
})
