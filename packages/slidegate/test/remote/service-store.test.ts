// tier: integration
import { Cluster } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  createLimiter,
  type LimiterOptions,
  memoryStore,
  type Store,
  slidingCount,
  slidingWindow,
  withDenyCache,
  withLeases,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type ServiceStoreOptions, serviceStore } from '../../src/stores/remote/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { recorded } from '../resilience/stores.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { type Served, served } from './served.ts'

async function behindOne(store: Store = memoryStore()): Promise<Served> {
  const service = await served(store)
  onTestFinished(() => service[Symbol.asyncDispose]())
  return service
}

function limiterOn(store: Store, options: Partial<LimiterOptions> = {}) {
  const limiter = createLimiter({
    ...{ limits: [slidingWindow({ limit: 100, window: '1h' })], store, timeoutMs: 30_000, logger: false },
    ...options,
  } as LimiterOptions)
  onTestFinished(() => limiter.close())
  return limiter
}

const opsIn = (body: string) => JSON.parse(body).ops as { count: number; parts: [number, string][] }[]

describe('simultaneous requests are sent together', () => {
  it('one body at a time, with each limit set once', async () => {
    const service = await behindOne()
    const limiter = limiterOn(service.connect())
    let underWay = 0
    let most = 0
    service.server.on('request', (_request, response) => {
      underWay++
      most = Math.max(most, underWay)
      response.on('close', () => underWay--)
    })
    const keys = Array.from({ length: 3000 }, (_, i) => `key${i}`)
    const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
    expect(decisions.every(({ allowed }) => allowed)).toBe(true)
    expect(most).toBe(1)
    expect(service.bodies.map((body) => opsIn(body).length)).toEqual([1024, 1024, 952])
    for (const body of service.bodies) expect(JSON.parse(body).sets.length).toBe(1)
  })

  it('equal requests of a key as one op, decided in order', async () => {
    const service = await behindOne()
    const limiter = limiterOn(service.connect())
    const decisions = await Promise.all(Array.from({ length: 150 }, () => limiter.consume('k')))
    expect(decisions.map(({ remaining }) => remaining)).toEqual(
      Array.from({ length: 150 }, (_, i) => Math.max(0, 99 - i)),
    )
    expect(service.bodies.flatMap(opsIn)).toMatchObject([{ count: 150 }])
  })

  it('different requests of a key in order, whatever is sent in between', async () => {
    const service = await behindOne()
    const limiter = limiterOn(service.connect())
    const requests = Array.from({ length: 5000 }, (_, i) => ({ key: `k${i % 7}`, cost: 1 + (i % 3) }))
    const here = limiterOn(memoryStore())
    const view = (all: readonly { allowed: boolean; remaining: number }[]) =>
      all.map(({ allowed, remaining }) => [allowed, remaining])
    expect(view(await limiter.consumeMany(requests))).toEqual(view(await here.consumeMany(requests)))
  })

  it('in several bodies if a decision would take too long', async () => {
    const service = await behindOne()
    const limits = Array.from({ length: 64 }, (_, i) =>
      slidingWindow({ limit: 1000, window: 1000 + i, name: `n${i}` }),
    )
    const limiter = limiterOn(service.connect(), { limits })
    const decisions = await Promise.all(Array.from({ length: 600 }, (_, i) => limiter.consume(`k${i}`)))
    expect(decisions.map(({ remaining }) => remaining)).toEqual(decisions.map(() => 999))
    await Promise.all(Array.from({ length: 60 }, (_, i) => limiter.explain(`k${i}`)))
    const plans = limiterOn(service.connect(), {
      name: 'plans',
      limits: (key) =>
        limits.map(({ windowMs }) => slidingWindow({ limit: 5 + Number(key), window: windowMs })),
    })
    const told = await Promise.all(Array.from({ length: 200 }, (_, i) => plans.consume(`${i}`)))
    expect(told.map(({ remaining }) => remaining)).toEqual(told.map((_, i) => 4 + i))
    expect(Math.max(...service.bodies.map((body) => opsIn(body).length))).toBeLessThan(300)
  })

  it('in several bodies if one would be too long', async () => {
    const service = await behindOne()
    const limiter = limiterOn(service.connect(), { overrides: true })
    const limits = (i: number) =>
      Array.from({ length: 30 }, (_, n) =>
        slidingWindow({ limit: 1000 + i, window: 1000 + n, name: `limit-${n}` }),
      )
    const many = limiterOn(service.connect(), { limits: (key) => limits(Number(key)) })
    const keys = Array.from({ length: 300 }, (_, i) => `${i}`)
    const decisions = await Promise.all(keys.map((key) => many.consume(key)))
    expect(decisions.map(({ remaining }) => remaining)).toEqual(keys.map((_, i) => 999 + i))
    expect(service.bodies.length).toBeGreaterThan(2)
    for (const body of service.bodies) expect(body.length).toBeLessThan(2 ** 19)
    await limiter.consume('k')
  })
})

it("forged input fails only its own request and doesn't open the breaker", async () => {
  const service = await behindOne()
  const limiter = limiterOn(service.connect(), { breaker: { minRequests: 2 } })
  const { token } = await limiter.reserve('k', 1)
  const words = JSON.parse(Buffer.from(token, 'base64url').toString())
  const forge = (change: (words: unknown[]) => void) => {
    const forged = structuredClone(words)
    change(forged)
    return Buffer.from(JSON.stringify(forged)).toString('base64url')
  }
  const forged = [
    forge((told) => (told[4] = `${'x'.repeat(5000)}.1`)),
    forge((told) => (told[4] = '\uD800.1')),
    forge((told) => {
      told[3] = -5
      told[4] = 'name.-5'
    }),
  ]
  for (let i = 0; i < 5; i++) {
    const settled = forged.map((each) => limiter.settle(each, 0))
    const decision = limiter.consume(`other${i}`)
    for (const each of settled) await expect(each).rejects.toMatchObject({ name: 'SlidegateError' })
    expect((await decision).source).toBe('store')
  }
})

describe('like any store, a service', () => {
  it('counts without a limit', async () => {
    const service = await behindOne()
    const count = slidingCount({ period: '1h', store: service.connect(), timeoutMs: 30_000, logger: false })
    onTestFinished(() => count.close())
    expect(await count.add('k', 2 ** 40)).toBe(2 ** 40)
    expect(await count.add('k', 2 ** 40)).toBe(2 ** 41)
    expect(await count.get('k')).toBe(2 ** 41)
  })

  it('supports leases, which admit exactly the limit with few ops', async () => {
    const behind = recorded(memoryStore())
    const service = await behindOne(behind)
    const store = withLeases(service.connect(), { leaseMs: 1000, clock: new ManualClock().now })
    const limiter = limiterOn(store, { limits: [slidingWindow({ limit: 500, window: '1h' })] })
    let admitted = 0
    for (let i = 0; i < 900; i++) if ((await limiter.consume('k')).allowed) admitted++
    expect(admitted).toBe(500)
    expect(behind.ops.length).toBeLessThan(700)
  })

  it('supports the deny cache', async () => {
    const service = await behindOne()
    const limiter = limiterOn(withDenyCache(service.connect(), { clock: new ManualClock().now }), {
      limits: [slidingWindow({ limit: 1, window: '1h' })],
    })
    for (let i = 0; i < 10; i++) await limiter.consume('k')
    expect(service.bodies.length).toBe(2)
    expect((await limiter.consume('k')).source).toBe('denyCache')
  })
})

it('a service on a Cluster supports requests whose keys are on different servers', async () => {
  const cluster = await startCluster({ masters: 3, replicas: 0 })
  const client = new Cluster(cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
  onTestFinished(async () => {
    await client.quit()
    await cluster.stop()
  })
  const service = await behindOne(redisStore(client))
  const options = { store: service.connect(), timeoutMs: 30_000, logger: false } as const
  const limits = [slidingWindow({ limit: 3, window: '1h' })]
  const limiter = createLimiter({ ...options, dimensions: { user: limits, address: limits } })
  onTestFinished(() => limiter.close())
  for (let n = 0; n < 20; n++) {
    const key = { user: `user${n}`, address: `address${n}` }
    const decisions = []
    for (let i = 0; i < 4; i++) decisions.push(await limiter.consume(key))
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false])
    expect(await limiter.refund(key, decisions[0]!)).toBe(1)
    expect((await limiter.peek(key)).remaining).toBe(1)
  }
})

describe('options:', () => {
  const wrong: readonly (readonly [string, unknown, unknown, RegExp])[] = [
    ['no URL', undefined, {}, /the URL is undefined/],
    ['a URL that is not HTTP', 'redis://127.0.0.1:6379', {}, /the URL is "redis:/],
    ['a path', '/v1/store', {}, /the URL is/],
    ['a query', 'http://127.0.0.1/?a=1', {}, /the URL is/],
    ['null options', 'http://127.0.0.1', null, /the options for serviceStore are null/],
    ['an undefined token', 'http://127.0.0.1', { token: undefined }, /the token is of type undefined/],
    ['a token with a line feed', 'http://127.0.0.1', { token: 'a\nb' }, /the token is of type string/],
    ['an empty token', 'http://127.0.0.1', { token: '' }, /the token is of type string/],
    ['a fetch that is not a function', 'http://127.0.0.1', { fetch: 1 }, /fetch is 1/],
  ]
  it.each(wrong)('reject %s', (_, url, options, message) => {
    const make = () => serviceStore(url as string, options as ServiceStoreOptions)
    expect(make).toThrow(message)
    expect(make).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  })

  it('keep a password out of error messages', () => {
    try {
      serviceStore('http://ann:s3cret@127.0.0.1')
      expect.unreachable()
    } catch (error) {
      expect(String(error)).toContain('use the token option')
      expect(JSON.stringify([error, String(error)])).not.toContain('s3cret')
    }
  })

  it('accept a URL with a path and any fetch', async () => {
    const asked: string[] = []
    const store = serviceStore('https://example.com/limits/', {
      fetch: async (url) => {
        asked.push(url)
        return new Response('{}', { status: 503 })
      },
    })
    await expect(limiterOn(store).consume('k')).rejects.toMatchObject({ reason: 'error' })
    expect(asked).toEqual(['https://example.com/limits/v1/store'])
  })
})
