// tier: integration
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  createLimiter,
  fixedWindow,
  type Limiter,
  type LimiterOptions,
  StoreUnavailableError,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { listed } from '../support/overrides.ts'
import { useRedis } from '../support/use-redis.ts'

// Tests logs that no limit reads: bans, reservations and overrides.

const { redis } = await useRedis()
beforeEach(async () => {
  await redis.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', '0')
  await redis.flushall()
})

const HOUR = 3_600_000

function limiterWith(options: Partial<LimiterOptions> = {}, clock?: ManualClock): Limiter {
  return createLimiter({
    limits: [slidingWindow({ limit: 20, window: '1h' })],
    store: redisStore(redis, clock === undefined ? {} : { clock: clock.now }),
    timeoutMs: 30_000,
    breaker: { minRequests: 2 ** 20 },
    logger: false,
    ...options,
  } as LimiterOptions)
}

const keyOf = async (log: string, key = 'k') => (await redis.keys(`*:${key}:${log}`))[0] ?? 'slidegate:none'

/** Returns the TTL of a log that must be kept for `keepMs`. It is a quarter longer, and at least 5 s. */
const lifetimeOf = (keepMs: number) => keepMs + Math.max(5000, keepMs / 4)

async function expectLifetime(log: string, keepMs: number): Promise<void> {
  const ttlMs = await redis.pttl(await keyOf(log))
  expect(ttlMs, log).toBeGreaterThan(keepMs - 5000)
  expect(ttlMs, log).toBeLessThanOrEqual(lifetimeOf(keepMs))
}

describe('the TTL', () => {
  it("matches a block's duration", async () => {
    const limiter = limiterWith({ overrides: true })
    for (const [duration, ms] of [['366d', 366 * 24 * HOUR] as const, ['1m', 60_000] as const]) {
      await limiter.block('k', duration)
      await expectLifetime('o', ms)
      expect(await redis.dbsize()).toBe(2)
    }
    await limiter.block('k', 10)
    // The key may have expired already.
    expect(await redis.pttl(await keyOf('o'))).toBeLessThanOrEqual(lifetimeOf(10))
  })

  it('matches that of reservations, which a reset removes', async () => {
    const limiter = limiterWith({ reservationTtl: '2h' })
    const reservations = [await limiter.reserve('k', 5), await limiter.reserve('k', 5)]
    const log = `r${2 * HOUR}`
    await expectLifetime(log, 2 * HOUR)
    await reservations[0]!.settle(9)
    await expectLifetime(log, 2 * HOUR)
    await expectLifetime('w1', HOUR)
    await reservations[1]!.cancel()
    expect(await redis.exists(await keyOf(log))).toBe(0)
    const last = await limiter.reserve('k', 2)
    await limiter.reset('k')
    expect(await redis.keys('*:k:*')).toEqual([])
    // A settlement of an expired reservation writes nothing.
    await expect(last.settle(9)).rejects.toMatchObject({ code: 'invalid_reservation' })
    expect(await redis.keys('*:k:*')).toEqual([])
  })

  // Overrides are configuration, so those without a TTL must never expire.
  it("matches an override's later part, and its index has the same TTL or none", async () => {
    const limiter = limiterWith({ overrides: true })
    const expectIndex = async (key: string, isLasting: boolean) => {
      const index = (await keyOf('o', key)).replace(`${key}:o`, '~overrides')
      expect(await redis.pttl(index))[isLasting ? 'toBe' : 'toBeGreaterThan'](isLasting ? -1 : HOUR - 5000)
    }
    await limiter.overrides.set('k', { limit: 50 }, { ttl: '1h' })
    await expectLifetime('o', HOUR)
    await expectIndex('k', false)
    await limiter.overrides.set('k', 'block', { ttl: '3h' })
    await expectLifetime('o', 3 * HOUR)
    await limiter.unblock('k')
    await expectLifetime('o', HOUR)
    await limiter.overrides.set('k', 'exempt')
    expect(await redis.pttl(await keyOf('o'))).toBe(-1)
    await expectIndex('k', true)
    await limiter.reset('k')
    expect(await redis.exists(await keyOf('o'))).toBe(1)
    await limiter.overrides.delete('k')
    expect(await redis.dbsize()).toBe(0)
  })

  it('lasts at least ten minutes with a clock option', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(6), fc.integer({ min: -3000, max: 5000 })), { minLength: 1, maxLength: 40 }),
        async (acts) => {
          await redis.flushall()
          const clock = new ManualClock()
          const limits = [slidingWindow({ limit: 6, window: '5s' })]
          const brief = { after: 3, within: '4s', for: ['2s', '7s'] } as const
          const limiter = limiterWith({ limits, ban: brief, overrides: true, reservationTtl: '6s' }, clock)
          const reserved = []
          for (const [act, afterMs] of acts) {
            clock.advance(afterMs)
            if (act < 2) await limiter.consume('k', { cost: 2 })
            if (act === 2) await limiter.block('k', '3s')
            if (act === 3) await limiter.unblock('k')
            if (act === 4) reserved.push(await limiter.reserve('k', 2))
            if (act === 5)
              await reserved
                .pop()
                ?.settle(afterMs > 0 ? 1 : 4)
                .catch(() => {})
            if (act === 6) await limiter.wait('k', { cost: 3, maxWaitMs: 0 }).catch(() => {})
          }
          for (const key of await redis.keys('*')) {
            const ttlMs = await redis.pttl(key)
            expect(key).toMatch(/:(k:(w1|b|o|r6000)|~overrides)$/)
            expect(ttlMs, key).toBeGreaterThan(540_000)
            expect(ttlMs, key).toBeLessThanOrEqual(600_000)
          }
          limiter.close()
        },
      ),
      { numRuns: 60 },
    ))
})

describe('without free memory', () => {
  const NUMBERS = { fixed: { limit: 5 } }
  const fill = () => redis.config('SET', 'maxmemory', '1')
  const contents = async () => {
    const keys = (await redis.keys('*')).sort()
    return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await redis.dumpBuffer(key)])))
  }

  it('writes are rejected, and none is partial', async () => {
    const limiter = limiterWith({
      limits: [
        slidingWindow({ limit: 20, window: '1h' }),
        fixedWindow({ limit: 20, window: '1h', name: 'fixed' }),
      ],
      ban: { after: 9, within: '1h', for: '1h' },
      overrides: true,
    })
    const [high, low] = [await limiter.reserve('k', 6), await limiter.reserve('k', 6)]
    await limiter.overrides.set('other', NUMBERS)
    await limiter.consume('known')
    // Blocks the key manually, so that a block already exists.
    await limiter.block('blocked', '1h')
    const before = await contents()
    await fill()
    for (const [name, ask] of Object.entries({
      block: () => limiter.block('k', '1m'),
      'block again': () => limiter.block('blocked', '2h'),
      reserve: () => limiter.reserve('k', 1),
      'settle above': () => limiter.settle(low.token, 7),
      'set an override': () => limiter.overrides.set('k', NUMBERS),
      'set it again': () => limiter.overrides.set('other', 'exempt'),
    })) {
      const error = await ask().then(
        () => undefined,
        (reason: unknown) => reason,
      )
      expect(error, name).toBeInstanceOf(StoreUnavailableError)
      expect(error, name).toMatchObject({ reason: 'error', message: expect.stringContaining('OOM') })
      expect(await contents(), name).toEqual(before)
    }
    // A denial is still returned, although it isn't counted. A waiter waits without a queue entry.
    expect((await limiter.consume('k', { cost: 19 })).deniedBy).toEqual(['20-per-1h', 'fixed'])
    await expect(limiter.wait('k', { cost: 19, maxWaitMs: 50 })).rejects.toMatchObject({ reason: 'timeout' })
    expect(await contents()).toEqual(before)
    // Operations that need no memory still work.
    expect((await limiter.consume('blocked')).blockedMs).toBeGreaterThan(0)
    expect((await limiter.explain('k')).allowed).toBe(true)
    expect((await limiter.peek('other')).limits[1]!.limit).toBe(5)
    expect(await listed(limiter)).toHaveLength(2)
    expect(await limiter.overrides.delete('other')).toBe(true)
    await redis.config('SET', 'maxmemory', '0')
    expect(await high.settle(1)).toEqual({ returned: 5, added: 0 })
    expect(await low.settle(7)).toEqual({ returned: 0, added: 1 })
    expect((await limiter.peek('k')).remaining).toBe(12)
    await limiter.block('k', '1m')
    limiter.close()
  })

  it('a key can be unblocked, and a settlement succeeds or is rejected without a partial write', async () => {
    const limiter = limiterWith({ overrides: true })
    const reservation = await limiter.reserve('k', 6)
    await limiter.block('k', '1h')
    await fill()
    await limiter.unblock('k')
    expect(await limiter.isBlocked('k')).toBe(false)
    const before = await contents()
    const settled = await reservation.settle(2).catch((reason: unknown) => reason)
    if (settled instanceof StoreUnavailableError) expect(await contents()).toEqual(before)
    else expect((await limiter.peek('k')).remaining).toBe(18)
    await redis.config('SET', 'maxmemory', '0')
    limiter.close()
  })
})
