// tier: integration
import { beforeEach, describe, expect, it } from 'vitest'
import {
  createLimiter,
  fixedWindow,
  type Limit,
  type LimitsOption,
  memoryStore,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import type { OverrideChange } from '../../src/limiter/overrides.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { listed } from '../support/overrides.ts'
import { useRedis } from '../support/use-redis.ts'

// Tests cases that the conformance suite and the histories don't cover: other stored forms of keys, `limits` functions, and
// rejections.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const clock = new ManualClock()
const stores: Record<string, () => Store> = {
  memory: () => memoryStore({ clock: clock.now }),
  Redis: () => redisStore(redis, { clock: clock.now }),
  'Redis with one bucket': () => redisStore(redis, { clock: clock.now, buckets: 1 }),
}

const minute = slidingWindow({ limit: 10, window: '1m', name: 'minute' })

describe.each(Object.entries(stores))('overrides in %s', (_, storeOf) => {
  const common = () => ({ store: storeOf(), overrides: true, timeoutMs: 30_000 })

  it("list the caller's key after each change, even if it is stored as a hash", async () => {
    const limiter = createLimiter({ limits: [minute], ...common() })
    const key = `user ${'ü'.repeat(200)}`
    await limiter.block(key, '1m')
    await limiter.overrides.set(key, 'exempt', { ttl: '2m' })
    await limiter.unblock(key)
    const override = { key, exempt: true, expiresInMs: 120_000 }
    expect(await listed(limiter)).toEqual([override])
    expect(await limiter.overrides.get(key)).toEqual(override)
  })

  it('list only the stored form of a key with hashKeys', async () => {
    const limiter = createLimiter({ limits: [minute], ...common(), hashKeys: 'correct horse battery staple' })
    await limiter.overrides.set('ann', { limit: 5 })
    await limiter.block('ann', '1m')
    const [override, ...others] = await listed(limiter)
    expect(others).toEqual([])
    expect(override!.key).toMatch(/^~[\w-]{22}$/)
    expect(await limiter.overrides.get('ann')).toEqual(override)
  })

  it("don't change a limit of the same name in another dimension", async () => {
    const hour = slidingWindow({ limit: 20, window: '1h', name: 'hour' })
    const dimensions = { user: () => [minute], ip: () => [hour] }
    const limiter = createLimiter({ dimensions, ...common() })
    await limiter.overrides.set({ user: 'k' }, { hour: { limit: 1 } })
    const { limits } = await limiter.peek({ user: 'k', ip: 'k' })
    expect(limits.map(({ name, limit }) => [name, limit])).toEqual([
      ['user.minute', 10],
      ['ip.hour', 20],
    ])
    expect((await limiter.consume({ user: 'k', ip: 'k' }, { cost: 2 })).allowed).toBe(true)
  })

  it('belong to one dimension and one limiter name', async () => {
    const store = common()
    const limiter = createLimiter({ name: 'api', dimensions: { user: [minute], ip: [minute] }, ...store })
    const other = createLimiter({ name: 'other', dimensions: { user: [minute], ip: [minute] }, ...store })
    await limiter.overrides.set({ user: 'k' }, { limit: 1 })
    await limiter.overrides.set({ ip: 'k' }, { minute: { limit: 2 } })
    const all = await listed(limiter)
    expect(all.map(({ dimension, limits }) => [dimension, limits])).toEqual([
      ['user', { minute: { limit: 1 } }],
      ['ip', { minute: { limit: 2 } }],
    ])
    const { limits } = await limiter.peek({ user: 'k', ip: 'k' })
    expect(limits.map(({ name, limit }) => [name, limit])).toEqual([
      ['user.minute', 1],
      ['ip.minute', 2],
    ])
    expect(await listed(other)).toEqual([])
    await limiter.overrides.delete({ user: 'k' })
    expect((await listed(limiter)).map(({ dimension }) => dimension)).toEqual(['ip'])
  })

  it('get listed without calling a limits function that needs the request', async () => {
    const requests: unknown[] = []
    const limits: LimitsOption = (_, request) => {
      requests.push(request)
      return (request as { readonly limits: readonly Limit[] }).limits
    }
    const limiter = createLimiter({ limits, ...common() })
    await limiter.overrides.set('k', { hour: { limit: 5 } })
    expect(requests).toEqual([])
    expect(await listed(limiter)).toEqual([{ key: 'k', limits: { hour: { limit: 5 } } }])
    const request = { limits: [minute] }
    expect((await limiter.overrides.get('k', { request }))!.unused).toEqual(['hour'])
    expect((await limiter.consume('k', { request })).limits[0]!.limit).toBe(10)
  })

  it('without a limit name apply to the only limit that a function returns', async () => {
    const sets = [
      [minute],
      [fixedWindow({ limit: 9, window: '1h' })],
      [minute, fixedWindow({ limit: 9, window: '1h' })],
    ]
    const limiter = createLimiter({ limits: (_, set) => sets[set as number]!, ...common() })
    await limiter.overrides.set('k', { limit: 3 })
    const limitsOf = async (request: number) =>
      (await limiter.peek('k', { request })).limits.map(({ limit }) => limit)
    expect([await limitsOf(0), await limitsOf(1), await limitsOf(2)]).toEqual([[3], [3], [10, 9]])
  })

  it('with numbers too large for the limits of a function have no effect in any process', async () => {
    const limits = [
      slidingWindow({ limit: 10, window: '1h', precision: 50, name: 'coarse' }),
      tokenBucket({ capacity: 10, refill: 1, interval: '1h', name: 'bucket' }),
    ]
    const limiter = createLimiter({ limits: () => limits, ...common() })
    await limiter.overrides.set('k', { coarse: { window: 40 }, bucket: { capacity: 2 ** 40 } })
    expect((await limiter.overrides.get('k'))!.unused).toEqual(['coarse', 'bucket'])
    const { limits: told } = await limiter.consume('k', { cost: 10 })
    expect(told.map(({ limit, windowMs }) => [limit, windowMs])).toEqual([
      [10, 3_600_000],
      [10, 36_000_000],
    ])
    expect((await limiter.consume('k')).allowed).toBe(false)
  })

  it('stay active if a change is rejected', async () => {
    const limits = [minute, tokenBucket({ capacity: 5, refill: 1, interval: '1s', name: 'bucket' })]
    const limiter = createLimiter({ limits, ...common() })
    await limiter.overrides.set('k', { minute: { limit: 5 } }, { ttl: '1h' })
    for (const change of [
      { minute: { limit: 9 }, bucket: { limit: 9 } },
      { minute: { limit: 9 }, bucket: { capacity: 2 ** 44 } },
      { minute: { capacity: 9 } },
      { minute: { limit: 2 ** 40, window: '366d' } },
      { minute: 9 },
    ]) {
      await expect(limiter.overrides.set('k', change as never)).rejects.toMatchObject({
        code: expect.stringMatching(/^invalid_(limit|precision)$/),
      })
    }
    const inForce = { key: 'k', limits: { minute: { limit: 5 } }, expiresInMs: 3_600_000 }
    expect(await limiter.overrides.get('k')).toEqual(inForce)
  })

  it('appear once each in a list of several pages', async () => {
    const limiter = createLimiter({ limits: [minute], ...common() })
    const keys = Array.from({ length: 600 }, (_, i) => `key-${i}`)
    await Promise.all(keys.map((key) => limiter.overrides.set(key, { limit: 3 })))
    expect((await listed(limiter)).map(({ key }) => key).sort()).toEqual(keys.sort())
  })
})

it.each<OverrideChange>([{ limit: 100_000 }, { limit: 100_000, window: '2h' }])(
  'an override above the maximum of the precision names it, and how to raise it: %o',
  async (change) => {
    const hourly = slidingWindow({ limit: 120, window: '1h', name: 'hourly' })
    const limiter = createLimiter({ limits: [hourly], store: memoryStore(), overrides: true })
    await expect(limiter.overrides.set('ann', change)).rejects.toMatchObject({
      code: 'invalid_limit',
      message: expect.stringContaining(
        'with a precision of 1 ms, the maximum limit for "hourly" is 65536; for more, declare it with precision: ',
      ),
    })
    await limiter.overrides.set('ann', { limit: 65_536 })
  },
)

it('an override with a window below the precision names the precision', async () => {
  const coarse = slidingWindow({ limit: 120, window: '1h', precision: '1s', name: 'coarse' })
  const limiter = createLimiter({ limits: [coarse], store: memoryStore(), overrides: true })
  const message = 'the precision is 1000; it must be whole milliseconds from 1 to 500 (the window)'
  await expect(limiter.overrides.set('ann', { window: 500 })).rejects.toMatchObject({ message })
})
