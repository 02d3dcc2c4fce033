// tier: integration
import { beforeEach, describe, expect, it } from 'vitest'
import { createLimiter, distinct, type Limiter, type LimitOptions } from '../../src/index.ts'
import { MAX_VALUES } from '../../src/limits/distinct.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'
import { TwinStores } from './twin-stores.ts'

// The guarantees of an approximate limit of distinct values, besides those of all kinds.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const WINDOW_MS = 10_000
const TENTH_MS = 1000

const about = (limit: number, more: Partial<LimitOptions> = {}) =>
  distinct({ limit, window: WINDOW_MS, approximate: true, ...more })

function limiterOn(clock: ManualClock, limit: number): Limiter {
  const store = redisStore(redis, { clock: clock.now })
  return createLimiter({ limits: [about(limit)], store, timeoutMs: 30_000 })
}

/** Returns how many were admitted. */
async function admittedOf(limiter: Limiter, values: readonly string[]): Promise<number> {
  let admitted = 0
  for (let from = 0; from < values.length; from += 500) {
    const asked = values.slice(from, from + 500).map((value) => limiter.consume('k', { value }))
    for (const { allowed } of await Promise.all(asked)) if (allowed) admitted++
  }
  return admitted
}

const valuesFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, i) => `user:${first + i}`)

describe.each([100, 10_000])('a limit of %i distinct values', (limit) => {
  it.each([1, 10])('admits that many, within 2%, in %i parts of a window', async (parts) => {
    const clock = new ManualClock()
    const limiter = limiterOn(clock, limit)
    const each = Math.ceil((limit * 1.1) / parts)
    let admitted = 0
    for (let part = 0; part < parts; part++) {
      admitted += await admittedOf(limiter, valuesFrom(part * each, each))
      clock.advance(WINDOW_MS / 10)
    }
    expect(Math.abs(admitted - limit)).toBeLessThanOrEqual(0.02 * limit)
  })
})

it('known values cost next to nothing, and keep their place', async () => {
  const clock = new ManualClock()
  const limiter = limiterOn(clock, 2500)
  const values = valuesFrom(0, 2000)
  for (let part = 0; part < 12; part++) {
    expect(await admittedOf(limiter, values)).toBe(2000)
    clock.advance(TENTH_MS)
  }
  const { remaining } = await limiter.peek('k', { value: 'any' })
  expect(Math.abs(remaining - 500)).toBeLessThanOrEqual(0.02 * 2000)
})

it('the memory in Redis is bounded, whatever the number of values', async () => {
  const clock = new ManualClock()
  const limiter = limiterOn(clock, MAX_VALUES)
  const bytes = async () => {
    const used = (await redis.keys('*')).map((key) => redis.memory('USAGE', key))
    return (await Promise.all(used)).reduce<number>((sum, size) => sum + size!, 0)
  }
  await admittedOf(limiter, valuesFrom(0, 20_000))
  const before = await bytes()
  expect(before).toBeLessThan(200_000)
  for (let part = 1; part < 12; part++) {
    clock.advance(TENTH_MS)
    await admittedOf(limiter, valuesFrom(part * 20_000, 5000))
  }
  expect(await bytes()).toBe(before)
})

it('sketches of an earlier log are ignored', async () => {
  const clock = new ManualClock()
  const limiter = limiterOn(clock, 3)
  await admittedOf(limiter, ['a', 'b', 'c'])
  // This has the same effect as an eviction.
  await redis.del((await redis.keys('*')).sort()[0]!)
  expect((await limiter.peek('k', { value: 'd' })).remaining).toBe(3)
  expect((await limiter.consume('k', { value: 'd' })).remaining).toBe(2)
  expect((await limiter.peek('k', { value: 'd' })).remaining).toBe(2)
  clock.advance(TENTH_MS)
  expect((await limiter.peek('k', { value: 'd' })).remaining).toBe(2)
})

it('all keys of a log expire, even one that was lost and created again', async () => {
  const clock = new ManualClock()
  const limiter = limiterOn(clock, 9)
  await admittedOf(limiter, ['a'])
  const keys = (await redis.keys('*')).sort()
  await redis.del(keys[3]!)
  await admittedOf(limiter, ['a'])
  for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(11 * TENTH_MS)
})

it('all keys stay after the clock was set back', async () => {
  const clock = new ManualClock()
  const limiter = limiterOn(clock, 1)
  await admittedOf(limiter, ['a'])
  const keys = await redis.keys('*')
  for (const key of keys) await redis.pexpire(key, 5000)
  clock.advance(-3_600_000)
  expect(await admittedOf(limiter, ['b'])).toBe(0)
  for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(11 * TENTH_MS)
})

it.each([
  ['an invalid sketch', (key: string) => redis.set(key, 'none')],
  ['another type', (key: string) => redis.rpush(key, 'x')],
])('%s in place of a sketch is rejected, without affecting other ops', async (_, damage) => {
  const clock = new ManualClock()
  const limiter = limiterOn(clock, 9)
  for (const place of [0, 1, 5]) {
    await admittedOf(limiter, ['a'])
    const key = (await redis.keys('*:k:*')).find((each) => each.endsWith(`~${place}`))!
    await redis.del(key)
    await damage(key)
    const value = 'b'
    const asked = [
      limiter.consume('k', { value }),
      limiter.consume('other', { value }),
      limiter.charge('k', 1, { value }),
    ] as const
    await expect(asked[0]).rejects.toMatchObject({ reason: 'invalid_state' })
    expect((await asked[1]).allowed).toBe(true)
    await expect(asked[2]).rejects.toMatchObject({ reason: 'invalid_state' })
    await limiter.reset('k')
    expect((await limiter.consume('k', { value })).remaining).toBe(8)
  }
})

it('a log with another length or impossible numbers is rejected', async () => {
  const limiter = limiterOn(new ManualClock(), 9)
  await admittedOf(limiter, ['a'])
  const key = (await redis.keys('*')).sort()[0]!
  const good = (await redis.getBuffer(key))!
  const changes: readonly Buffer[] = [
    Buffer.concat([good, Buffer.of(0)]),
    // A stamp between two sub-windows, and a place beyond the last one.
    Buffer.from(good.map((byte, i) => (i === 6 ? byte + 1 : byte))),
    Buffer.from(good.map((byte, i) => (i === 7 ? 11 : byte))),
  ]
  for (const change of changes) {
    await redis.set(key, change)
    await expect(limiter.peek('k', { value: 'a' })).rejects.toThrow('not a distinct sketch of format 1')
  }
})

it('an approximate limit works with a clock that starts at 0', async () => {
  const limiter = limiterOn(new ManualClock(0), 1)
  expect((await limiter.peek('k', { value: 'a' })).resetAfterMs).toBe(0)
  expect(await admittedOf(limiter, ['a'])).toBe(1)
  expect(await admittedOf(limiter, ['b'])).toBe(0)
})

it('the count of a damaged sketch stays below the maximum', async () => {
  const limiter = limiterOn(new ManualClock(), 9)
  await admittedOf(limiter, ['a'])
  // Bytes 8 to 15 are the cached count.
  for (const key of await redis.keys('*~*')) await redis.setrange(key, 8, '\u007f'.repeat(8))
  const { allowed, remaining } = await limiter.peek('k', { value: 'b' })
  expect([allowed, remaining]).toEqual([false, 0])
  expect((await limiter.explain('k')).limits[0]!.used).toBeLessThanOrEqual(2 ** 46)
})

it.each(Object.entries(storesOn(redis)))(
  'a key at its limit is denied for all values on %s',
  async (_, storeOf) => {
    const clock = new ManualClock()
    const limiter = createLimiter({ limits: [about(2)], store: storeOf(clock), timeoutMs: 30_000 })
    await limiter.consume('k', { value: 'a' })
    clock.advance(2500)
    await limiter.consume('k', { value: 'b' })
    const denied = await limiter.consume('k', { value: 'a' })
    expect([denied.allowed, denied.retryAfterMs, denied.resetAfterMs]).toEqual([false, 8500, 10_500])
    expect(denied.limits[0]!.precisionMs).toBe(TENTH_MS)
    const { limits } = await limiter.explain('k')
    expect(limits[0]).toMatchObject({
      used: 2,
      frees: [
        { afterMs: 8500, units: 1 },
        { afterMs: 10_500, units: 2 },
      ],
    })
    expect(await limiter.list('k')).toMatchObject([{ entries: [] }])
  },
)

it('the memory store keeps at most as many values as the maximum limit, and drops the oldest', () => {
  const limit = about(MAX_VALUES)
  const { kind } = limit
  const params = kind.params([limit])
  const logs = kind.createLogs()
  const log = logs.create()
  const used: number[] = []
  const add = (entry: string, nowMs: number) =>
    kind.commit(logs.at(log), params, nowMs, { units: 1, leaseMs: 0, entry })
  add('first', 50_000)
  for (let n = 0; n < MAX_VALUES; n++) add(`v${n}`, 52_000)
  kind.check(logs.at(log), params, 52_000, used)
  expect(used).toEqual([MAX_VALUES])
  // The values of the first sub-window have left the window.
  expect(kind.retryAfter(logs.at(log), params, 0, 52_000, 1)).toBe(11 * TENTH_MS)
})

/** Returns a generator of random numbers that are the same in each run. */
function numbersOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

describe('memory, Redis and a model agree on', () => {
  it.each(Array.from({ length: 8 }, (_, seed) => seed))('the random history %i', async (seed) => {
    const next = numbersOf(seed)
    const windowMs = [100, 1005, WINDOW_MS][next(3)]!
    const tenthMs = Math.ceil(windowMs / 10)
    const limit = 1 + next(6)
    const set = limitSet('l', [about(limit, { window: windowMs, shadow: next(4) === 0 })])
    const stores = new TwinStores(redis)
    const tenthOf = (ms: number) => Math.floor(ms / tenthMs)
    /** The sub-window in which each value was last added. */
    let added = new Map<string, number>()
    let stampMs = 0
    for (let event = 0; event < 80; event++) {
      stores.clock.advance([0, 1, next(tenthMs), next(4 * tenthMs), next(12 * tenthMs)][next(5)]!)
      if (next(12) === 0) stores.clock.advance(-next(2) * (1001 + tenthMs + next(2 * windowMs)))
      const value = `v${next(limit + 3)}`
      const named = { requestId: value, mayRepeat: false }
      const clockMs = stores.clock.now()
      const nowMs = stampMs > clockMs && stampMs <= clockMs + 1000 ? stampMs : clockMs
      const asked = next(8)
      // Peeks and resets don't restamp.
      if (stampMs > nowMs && asked > 1) {
        const ahead = tenthOf(stampMs) - tenthOf(nowMs)
        added = new Map(Array.from(added, ([name, tenth]) => [name, tenth - ahead]))
        stampMs = tenthOf(nowMs) * tenthMs
      }
      const used = [...added.values()].filter((tenth) => tenth > tenthOf(nowMs) - 11).length
      if (asked === 0) await stores.ask({ type: 'reset', parts: [{ key: 'k', set }] })
      if (asked === 0) [added, stampMs] = [new Map(), 0]
      if (asked === 1) await stores.explain(set)
      if (asked === 2) {
        await stores.ask({ type: 'charge', parts: [{ key: 'k', set }], units: 1, ...named })
      }
      if (asked > 2) {
        const { limits } = await stores.consume(set, named)
        expect(limits[0]).toBe(used)
      }
      if (asked === 2 || (asked > 2 && used < limit)) {
        added.set(value, tenthOf(nowMs))
        stampMs = tenthOf(nowMs) * tenthMs
      }
    }
  })
})
