// tier: integration
import { beforeEach, describe, expect, it } from 'vitest'
import { memoryStore, slidingWindow, tokenBucket } from '../../src/index.ts'
import { type BanOptions, banLog } from '../../src/limits/ban.ts'
import { type LimitSet, limitSet, withLog } from '../../src/limits/limit-set.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { Op } from '../../src/stores/store.ts'
import { useRedis } from '../support/use-redis.ts'
import { TwinStores } from './twin-stores.ts'

const { redis } = await useRedis()
let twins: TwinStores
beforeEach(async () => {
  await redis.flushall()
  twins = new TwinStores(redis)
})

/** One request per minute, so that every further one is a denial. */
const ONE = slidingWindow({ limit: 1, window: '1m' })
const setOf = (ban: BanOptions, limiter = 'l', limits = [ONE]) =>
  withLog(limitSet(limiter, limits), banLog(ban))
const BAN = { after: 3, within: '10s', for: ['20s', '40s', '60s'], forgetAfter: '30s' } as const

/** The state of a first ban that begins now. */
const banned = () => ({ blockedMs: 20_000, sinceMs: twins.clock.now(), level: 1, denials: 0 })

/** Denies requests until the key is banned. The limit must be used up. */
async function denyTillBanned(set: LimitSet): Promise<number | undefined> {
  for (let i = 0; i < 2; i++) expect(await twins.consume(set, { cost: 2 })).toMatchObject({ admitted: 0 })
  return (await twins.consume(set, { cost: 2 })).ban?.ms
}

describe('bans', () => {
  it('keep their level for the length of the longest ban by default', async () => {
    const { forgetAfter: _, ...ban } = BAN
    const longest = setOf(ban)
    await denyTillBanned(longest)
    twins.clock.advance(20_000 + 59_999)
    expect((await twins.explain(longest)).bans).toEqual([{ blockedMs: 0, level: 1, denials: 0 }])
    twins.clock.advance(1)
    expect((await twins.explain(longest)).bans).toEqual([{ blockedMs: 0, level: 0, denials: 0 }])
  })

  it('start at the shortest length after a reset of the level, even with after: 1', async () => {
    const strict = setOf({ ...BAN, after: 1 })
    for (const [waitMs, ms] of [
      [0, 20_000],
      [20_000 + 29_999, 40_000],
      [40_000 + 30_000, 20_000],
    ] as const) {
      twins.clock.advance(waitMs)
      expect(await twins.consume(strict, { cost: 2 })).toHaveProperty('ban.ms', ms)
    }
  })

  it('count several requests that are decided together, and cause at most one ban', async () => {
    const many = setOf({ ...BAN, after: 5 })
    expect(await twins.consume(many, { count: 4 })).toMatchObject({ admitted: 1 })
    expect((await twins.explain(many)).bans).toEqual([{ blockedMs: 0, level: 0, denials: 3 }])
    expect(await twins.consume(many, { count: 50 })).toMatchObject({ admitted: 0, ban: { ms: 20_000 } })
    expect((await twins.explain(many)).bans).toEqual([banned()])
  })

  it('create one key if only some of its requests are admitted', async () => {
    const many = setOf({ ...BAN, after: 2 })
    expect(await twins.consume(many, { count: 3 })).toMatchObject({ admitted: 1, ban: { ms: 20_000 } })
    expect(twins.memory.stats()).toEqual({ keys: 1, evicted: 0 })
  })

  it('support after up to 1000', async () => {
    const many = setOf({ ...BAN, after: 1000 })
    expect(await twins.consume(many, { cost: 2, count: 998 })).not.toHaveProperty('ban')
    expect(await twins.consume(many, { cost: 2 })).not.toHaveProperty('ban')
    expect((await twins.explain(many)).bans).toEqual([{ blockedMs: 0, level: 0, denials: 999 }])
    expect(await twins.consume(many, { cost: 2 })).toHaveProperty('ban.ms', 20_000)
  })
})

describe('no denial is counted', () => {
  const set = setOf(BAN)

  it('for a caller that waits', async () => {
    for (let i = 0; i < 5; i++) await twins.consume(set, { isWaiting: true })
    expect((await twins.explain(set)).bans).toEqual([{ blockedMs: 0, level: 0, denials: 0 }])
  })

  it('for a denial by another part, even if a shadow limit of this part has no room', async () => {
    const shadow = slidingWindow({ limit: 1, window: '1m', shadow: true, name: 'shadow' })
    const parts = [
      { key: 'u', set: setOf(BAN, 'l/user') },
      { key: 'i', set: setOf(BAN, 'l/ip', [slidingWindow({ limit: 9, window: '1m' }), shadow]) },
    ]
    for (let i = 0; i < 3; i++) await twins.consume(set, { parts })
    expect(await twins.ask({ type: 'explain', parts, cost: 1, count: 1 })).toMatchObject({
      bans: [{ denials: 2 }, { denials: 0 }],
    })
  })
})

describe('after the clock was set back', () => {
  const set = setOf(BAN)

  it('by more than a second, a ban keeps the time that was left at its last write', async () => {
    await denyTillBanned(set)
    twins.clock.advance(5000 - 3_600_000)
    expect((await twins.explain(set)).bans).toEqual([banned()])
    expect(await twins.consume(set)).toMatchObject({ ban: { ms: 20_000 } })
  })

  it("by less than a second, time doesn't advance until the clock catches up", async () => {
    await denyTillBanned(set)
    twins.clock.advance(-1000)
    expect(await twins.consume(set)).toMatchObject({ ban: { ms: 20_000 }, atMs: twins.clock.now() + 1000 })
    twins.clock.advance(500)
    expect(await twins.consume(set)).toMatchObject({ ban: { ms: 20_000 } })
    twins.clock.advance(501)
    expect(await twins.consume(set)).toMatchObject({ ban: { ms: 19_999 } })
  })

  it('time advances after a ban was removed', async () => {
    await twins.unblock(set)
    twins.clock.advance(-500)
    expect(await twins.consume(set)).toMatchObject({ atMs: twins.clock.now() })
  })

  it('denials keep their age', async () => {
    const many = setOf({ ...BAN, after: 5 })
    await twins.consume(many, { cost: 2 })
    twins.clock.advance(9_000)
    await twins.consume(many, { cost: 2 })
    twins.clock.advance(-100_000)
    expect((await twins.explain(many)).bans).toMatchObject([{ denials: 2 }])
    // This denial writes the log. Then the first denial is 9 s old, and the second is new.
    await twins.consume(many, { cost: 2 })
    twins.clock.advance(999)
    expect((await twins.explain(many)).bans).toMatchObject([{ denials: 3 }])
    twins.clock.advance(1)
    expect((await twins.explain(many)).bans).toMatchObject([{ denials: 2 }])
  })

  it('a ban also works with a clock at 0', async () => {
    twins.clock.set(0)
    expect(await denyTillBanned(set)).toBe(20_000)
    expect(await twins.consume(set)).toMatchObject({ ban: { ms: 20_000 } })
    twins.clock.set(50_000)
    await twins.unblock(set)
    await twins.consume(set, { cost: 2 })
    twins.clock.advance(5000)
    await twins.consume(set, { cost: 2 })
    twins.clock.set(1)
    expect(await twins.consume(set, { cost: 2 })).toMatchObject({ ban: { ms: 20_000 } })
  })
})

it('a request of a blocked key costs one read of each log, and writes nothing', async () => {
  const set = setOf(BAN, 'l', [ONE, tokenBucket({ capacity: 9, refill: 9, interval: '1m', name: 'more' })])
  const op: Op = { type: 'consume', parts: [{ key: 'k', set }], cost: 1, count: 1, leaseMs: 0 }
  const store = redisStore(redis)
  for (let i = 0; i < 3; i++) await outcomesOf(store, [{ ...op, cost: 10 }])
  for (const asked of [op, { type: 'peek', parts: op.parts, cost: 1, count: 1 } as const]) {
    await redis.config('RESETSTAT')
    await outcomesOf(store, [asked])
    const stats = await redis.info('commandstats')
    const calls = Array.from(stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g), ([, name, n]) => `${name} ${n}`)
    expect(calls.filter((each) => !each.startsWith('config')).sort()).toEqual([
      'evalsha 1',
      'getrange 3',
      'time 1',
    ])
  }
})

it("a full memory store doesn't evict a blocked key", async () => {
  const store = memoryStore({ clock: twins.clock.now, maxKeys: 3 })
  const set = setOf({ ...BAN, after: 1, for: '10s', forgetAfter: 10 })
  const ask = async (key: string) =>
    await outcomesOf(store, [{ type: 'consume', parts: [{ key, set }], cost: 1, count: 1, leaseMs: 0 }])
  const denied = { type: 'consume', parts: [{ key: 'bad', set }], cost: 2, count: 1, leaseMs: 0 } as const
  await outcomesOf(store, [denied])
  const lax = setOf(BAN, 'lax', [slidingWindow({ limit: 5, window: '1m' })])
  for (let i = 0; i < 20; i++) {
    const op = {
      type: 'consume',
      parts: [{ key: `k${i}`, set: lax }],
      cost: 1,
      count: 1,
      leaseMs: 0,
    } as const
    await outcomesOf(store, [op])
  }
  expect(await ask('bad')).toMatchObject([{ ban: { ms: 10_000 } }])
  twins.clock.advance(10_000)
  expect(await ask('bad')).toMatchObject([{ admitted: 1 }])
})

describe('the key of a ban in Redis', () => {
  const lifetimeOf = (keepMs: number) => keepMs + Math.max(5000, keepMs / 4)

  async function ttl(): Promise<number> {
    const [key = ''] = await redis.keys('*:b')
    return await redis.pttl(key)
  }

  it('expires soon after everything in it has expired', async () => {
    const set = setOf({ ...BAN, within: '100s' })
    const store = redisStore(redis)
    const ask = (op: Op) => outcomesOf(store, [op])
    const parts = [{ key: 'k', set }]
    const deny: Op = { type: 'consume', parts, cost: 2, count: 1, leaseMs: 0 }
    const expectKept = async (keepMs: number) => {
      const ttlMs = await ttl()
      expect(ttlMs).toBeGreaterThan(lifetimeOf(keepMs) - 20_000)
      expect(ttlMs).toBeLessThanOrEqual(lifetimeOf(keepMs))
    }
    await ask(deny)
    await expectKept(100_000)
    await ask(deny)
    await ask(deny)
    // The log is kept until the ban level is reset.
    await expectKept(50_000)
    await ask({ type: 'override', parts, blockMs: 0 })
    expect(await redis.dbsize()).toBe(0)
  })

  it('drops everything expired at the next write', async () => {
    const set = setOf(BAN)
    const storedOf = async (key: string) => await redis.getBuffer((await redis.keys(`*:${key}:b`))[0]!)
    await denyTillBanned(set)
    // The last denial and the level have just expired.
    twins.clock.advance(40_000)
    await twins.consume(set, { cost: 2 })
    twins.clock.advance(10_000)
    await twins.consume(set, { cost: 2 })
    await twins.consume(set, { cost: 2 }, 'new')
    expect(await storedOf('k')).toEqual(await storedOf('new'))
  })

  it('expires after ten minutes at the earliest with a given clock', async () => {
    await denyTillBanned(setOf(BAN))
    expect(await ttl()).toBeGreaterThan(590_000)
    expect(await ttl()).toBeLessThanOrEqual(600_000)
  })

  const set = setOf(BAN)
  const foreign: Readonly<Record<string, (key: string, value: Buffer) => Promise<unknown>>> = {
    'a list': (key) => redis.rpush(key, 'x'),
    'a hash': (key) => redis.hset(key, 'x', 'y'),
    'a text': (key) => redis.set(key, 'x'.repeat(25)),
    'a later format': (key, value) => redis.set(key, Buffer.concat([Buffer.from([2]), value.subarray(1)])),
    'one byte less': (key, value) => redis.set(key, value.subarray(0, -1)),
    'one byte more': (key, value) => redis.set(key, Buffer.concat([value, Buffer.from([0])])),
    'a header cut off': (key, value) => redis.set(key, value.subarray(0, 19)),
    'too many denials': (key, value) => redis.set(key, Buffer.concat([value, Buffer.alloc(6006)])),
    'a denial in the future': (key, value) =>
      redis.set(key, Buffer.concat([value.subarray(0, 25), Buffer.alloc(6, 255)])),
  }

  it.each(Object.entries(foreign))(
    'makes requests fail with invalid_state if it holds %s, which stays unchanged',
    async (_, put) => {
      await twins.consume(set, { cost: 2 })
      await twins.consume(set, { cost: 2 })
      const [key = ''] = await redis.keys('*:b')
      const value = (await redis.getBuffer(key))!
      expect(value.length).toBe(37)
      await redis.del(key)
      await put(key, value)
      const stored = await redis.dumpBuffer(key)
      const parts = [{ key: 'k', set }]
      const ops: Op[] = [
        { type: 'consume', parts, cost: 1, count: 1, leaseMs: 0 },
        { type: 'peek', parts, cost: 1, count: 1 },
        { type: 'explain', parts, cost: 1, count: 1 },
        { type: 'override', parts, blockMs: 0 },
        { type: 'charge', parts, units: 1 },
      ]
      for (const op of ops) {
        await expect(outcomesOf(twins.redis, [op])).rejects.toMatchObject({
          reason: 'invalid_state',
          name: 'StoreUnavailableError',
        })
      }
      expect(await redis.dumpBuffer(key)).toEqual(stored)
      await outcomesOf(twins.redis, [{ type: 'reset', parts }])
      expect(await outcomesOf(twins.redis, [ops[0]!])).toMatchObject([{ admitted: 1 }])
    },
  )
})
