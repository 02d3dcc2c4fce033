// tier: integration
import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  concurrency,
  createLimiter,
  distinct,
  type LimiterOptions,
  memoryStore,
  slidingCount,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { listed } from '../support/overrides.ts'
import { useRedis } from '../support/use-redis.ts'

const { redis } = await useRedis()

const SECRET = 'a secret of some length'
const EMAIL = 'ada.lovelace@example.com'
const OTHER = 'other.person@example.com'

const limits = [slidingWindow({ limit: 5, window: '1h' })]

function limiterWith(options: Partial<LimiterOptions>) {
  return createLimiter({ limits, hashKeys: SECRET, timeoutMs: 30_000, ...options } as LimiterOptions)
}

/** Returns everything in Redis as text, keys and values. */
async function allOf(): Promise<string> {
  const keys = await redis.keys('*')
  // A small value isn't compressed in a dump.
  await Promise.all(keys.map((key) => redis.persist(key)))
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)))
  return [...keys, ...dumps.map((dump) => dump!.toString('latin1'))].join('\n')
}

describe('with hashKeys', () => {
  it('Redis contains no key, value or request id in plain text', async () => {
    await redis.flushall()
    await redis.config('SET', 'rdbcompression', 'no')
    const store = redisStore(redis)
    const limiter = limiterWith({
      limits: [
        ...limits,
        tokenBucket({ capacity: 5, refill: 5, interval: '1h', name: 'bucket' }),
        slidingWindow({ limit: 5, window: '1h', log: 'zset', name: 'entries' }),
        slidingWindow({ limit: 5, window: '1h', log: 'stream', name: 'stream' }),
        concurrency({ limit: 5, ttl: '1h', name: 'held' }),
      ],
      overrides: true,
      store,
    })
    await limiter.consume(EMAIL, { requestId: `id of ${EMAIL}` })
    await limiter.acquire(EMAIL)
    await limiter.wait(EMAIL)
    await limiter.block(EMAIL, '1h')
    await limiter.overrides.set(EMAIL, { bucket: { capacity: 50 } })
    await limiterWith({ name: 'reserving', store }).reserve(EMAIL, 3)
    const values = limiterWith({ name: 'values', store, limits: [distinct({ limit: 5, window: '1h' })] })
    await values.consume(EMAIL, { value: `value of ${EMAIL}` })
    await createLimiter({
      dimensions: { user: limits, mail: limits },
      ...{ name: 'several', hashKeys: SECRET, store, timeoutMs: 30_000 },
    }).consume({ user: EMAIL, mail: EMAIL })
    const count = slidingCount({ name: 'count', period: '1h', hashKeys: SECRET, store, timeoutMs: 30_000 })
    await count.add(EMAIL)
    const all = await allOf()
    expect(all).not.toMatch(/ada|lovelace/i)
    expect(all.match(/~[\w-]{22}/g)!.length).toBeGreaterThan(15)
    // Does the same without `hashKeys`, to verify that the check works.
    await createLimiter({ limits, store, timeoutMs: 30_000 }).consume(EMAIL)
    expect(await allOf()).toMatch(/ada/)
  })

  it('a key is stored as 132 bits of an HMAC, in every version', async () => {
    await redis.flushall()
    await limiterWith({ store: redisStore(redis) }).consume(EMAIL)
    const mac = createHmac('sha256', SECRET).update(`key:${EMAIL}`).digest('base64url').slice(0, 22)
    const keys = (await redis.keys('*')).filter((key) => key.includes(':default:'))
    expect(keys).toEqual([expect.stringMatching(new RegExp(`^slidegate:\\{\\d+\\}:default:~${mac}:w1$`))])
    expect(keys[0]).toContain(':~RFHtpymicxkf0bQXO8n91g:')
  })

  it('all operations work as without it', async () => {
    for (const store of [memoryStore(), redisStore(redis, { prefix: 'slidegate:asked' })]) {
      const limiter = limiterWith({ store, overrides: true })
      const same = limiterWith({ store, overrides: true, hashKeys: Buffer.from(SECRET) })
      const first = await limiter.consume(EMAIL, { cost: 2 })
      expect(first.remaining).toBe(3)
      expect((await same.peek(EMAIL)).remaining).toBe(3)
      expect((await limiter.peek(OTHER)).remaining).toBe(5)
      expect(await limiter.refund(EMAIL, first, 1)).toBe(1)
      await limiter.overrides.set(EMAIL, { limit: 50 })
      expect((await limiter.peek(EMAIL)).remaining).toBe(49)
      const [override] = await listed(limiter)
      expect(override!.key).toMatch(/^~[\w-]{22}$/)
      expect(await limiter.overrides.get(EMAIL)).toEqual(override)
      expect((await limiter.explain(EMAIL)).overrides).toEqual([override])
      expect(await limiter.overrides.delete(EMAIL)).toBe(true)
      await limiter.block(EMAIL, '1h')
      expect([await limiter.isBlocked(EMAIL), await limiter.isBlocked(OTHER)]).toEqual([true, false])
      await limiter.unblock(EMAIL)
      await limiter.reset(EMAIL)
      expect((await limiter.consume(EMAIL)).remaining).toBe(4)
      const reservation = await limiter.reserve(EMAIL, 3)
      expect(await same.settle(reservation.token, 1)).toEqual({ returned: 2, added: 0 })
    }
  })

  it("limits functions get the caller's key", async () => {
    const told: string[] = []
    const limiter = limiterWith({
      limits: (key) => {
        told.push(key)
        return limits
      },
    })
    await limiter.consume(EMAIL)
    expect(told).toEqual([EMAIL])
  })

  it('another secret, or none, has its own counts', async () => {
    const store = memoryStore()
    const remaining = async (options: { hashKeys?: string }) =>
      (await createLimiter({ limits, store, ...options }).consume(EMAIL)).remaining
    const own = { hashKeys: SECRET }
    const other = { hashKeys: `${SECRET}!` }
    expect([await remaining(own), await remaining(other), await remaining({}), await remaining(own)]).toEqual(
      [4, 4, 4, 3],
    )
  })

  it('a value and a key with the same text are stored differently', async () => {
    const limiter = limiterWith({ limits: [distinct({ limit: 5, window: '1h' })], store: redisStore(redis) })
    await redis.flushall()
    await limiter.consume(EMAIL, { value: EMAIL })
    const [, key] = /default:~([\w-]{22}):d/.exec((await redis.keys('*:d*')).join())!
    expect(await allOf()).not.toMatch(new RegExp(`~${key}(?!:d)`))
  })

  it.each(['', 7, null, {}, Array(3)])('an invalid key is rejected as usual: %j', async (key) => {
    await expect(limiterWith({}).consume(key as never)).rejects.toMatchObject({ code: 'invalid_key' })
  })

  it.each([
    ['short', 'fifteen bytes.', /14 bytes/],
    ['empty', '', /0 bytes/],
    ['too few bytes', new Uint8Array(15), /15 bytes/],
    ['a number', 7, /of type number/],
    ['true', true, /of type boolean/],
    ['null', null, /of type object/],
    ['an unset variable', undefined, /of type undefined/],
  ])('a secret that is %s is rejected, without showing it', (_, hashKeys, message) => {
    for (const make of [
      () => createLimiter({ limits, hashKeys: hashKeys as string }),
      () => slidingCount({ period: '1h', hashKeys: hashKeys as string }),
    ]) {
      expect(make).toThrow(
        expect.objectContaining({
          code: 'invalid_option',
          value: undefined,
          message: expect.stringMatching(message),
        }),
      )
    }
    if (typeof hashKeys === 'string' && hashKeys !== '') {
      expect(() => createLimiter({ limits, hashKeys })).not.toThrow(new RegExp(hashKeys))
    }
  })

  it('an inherited secret is used and checked like any other', async () => {
    class Settings {
      limits = limits
      get hashKeys() {
        return SECRET
      }
    }
    const store = memoryStore()
    await createLimiter({ ...new Settings(), hashKeys: SECRET, store }).consume(EMAIL)
    const inherited = Object.assign(new Settings(), { store })
    expect((await createLimiter(inherited).consume(EMAIL)).remaining).toBe(3)
    const unset = Object.create({ limits, hashKeys: undefined })
    expect(() => createLimiter(unset)).toThrow(/of type undefined/)
  })

  it('a secret of 16 bytes is accepted', () => {
    expect(() => createLimiter({ limits, hashKeys: 'x'.repeat(16) })).not.toThrow()
    expect(() => createLimiter({ limits, hashKeys: new Uint8Array(16) })).not.toThrow()
  })
})
