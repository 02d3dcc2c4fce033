// tier: integration
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  concurrency,
  createLimiter,
  type Decision,
  distinct,
  fixedWindow,
  type Limiter,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { SCRIPT } from '../../src/stores/redis/script.generated.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { anewClient } from '../history/rare-way.ts'
import { useRedis } from '../support/use-redis.ts'

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

/** Configurations that share keys, with the longest time that each log must be kept. */
const CONFIGURATIONS = [
  [
    slidingWindow({ limit: 6, window: '2s' }),
    fixedWindow({ limit: 20, window: '5s', name: 'fixed' }),
    slidingWindow({ limit: 3, window: '1m', name: 'shadow', shadow: true }),
  ],
  [
    slidingWindow({ limit: 9, window: '10s' }),
    slidingWindow({ limit: 9, window: '3s', precision: 500, name: 'coarse' }),
    slidingCounter({ limit: 50, window: '5s', name: 'counter' }),
    tokenBucket({ capacity: 50, refill: 20, interval: '1s' }),
    fixedWindow({ limit: 50, window: '5s', align: 'first-hit', name: 'first-hit' }),
  ],
  [
    slidingWindow({ limit: 300, window: '4s' }),
    slidingWindow({ limit: 300, window: '2s', log: 'zset', name: 'zset' }),
    slidingWindow({ limit: 300, window: '3s', log: 'stream', name: 'stream' }),
    concurrency({ limit: 300, ttl: '7s', name: 'held' }),
    slidingWindow({ limit: 6, window: '9s', log: 'stream', name: 'tried', shadow: true }),
  ],
]
const KEEP_MS: Readonly<Record<string, number>> = {
  w1: 10_000,
  f5000: 5000,
  fhit5000: 5000,
  w1sshadow: 60_000,
  w500: 3499,
  c5000: 10_000,
  // The time to refill the most units that are requested below: 60 times 5.
  t1000: 15_000,
  z2000: 2000,
  x3000: 3000,
  k7000: 7000,
  x9000stried: 9000,
}

const request = fc.record({
  what: fc.constantFrom('consume', 'consume', 'consume', 'peek', 'charge', 'refund', 'reset'),
  who: fc.nat(2),
  key: fc.constantFrom('a', 'b', 'c'),
  units: fc.integer({ min: 1, max: 5 }),
  afterMs: fc.oneof(fc.nat(100), fc.nat(5000), fc.integer({ min: -3000, max: -1 })),
})
type Request = typeof request extends fc.Arbitrary<infer R> ? R : never

class Players {
  readonly #limiters: readonly Limiter[]
  #last: { limiter: Limiter; key: string; decision: Decision } | undefined

  constructor(limiters: readonly Limiter[]) {
    this.#limiters = limiters
  }

  async play({ what, who, key, units }: Request): Promise<void> {
    const limiter = this.#limiters[who]!
    if (what === 'peek') await limiter.peek(key, { cost: units })
    if (what === 'charge') await limiter.charge(key, units)
    if (what === 'reset') await limiter.reset(key)
    if (what === 'refund' && this.#last) await this.#last.limiter.refund(this.#last.key, this.#last.decision)
    if (what === 'consume') {
      // Slots need an id.
      const isHeld = limiter.limits.some(({ kind }) => kind.entries?.are === 'holder')
      const options = isHeld ? { cost: units, requestId: randomUUID() } : { cost: units }
      const decision = await limiter.consume(key, options)
      if (decision.allowed) this.#last = { limiter, key, decision }
    }
  }
}

function limitersOf(clock?: ManualClock): Limiter[] {
  const store = redisStore(redis, clock === undefined ? {} : { clock: clock.now })
  return CONFIGURATIONS.map((limits) => createLimiter({ limits, store, timeoutMs: 30_000 }))
}

/** Returns the TTL of a log that must be kept for `keepMs`. It is a quarter longer, and at least 5 s. */
const lifetimeOf = (keepMs: number) => keepMs + Math.max(5000, keepMs / 4)

/** TTLs of keys that haven't expired since they were listed. */
async function lifetimes(): Promise<{ log: string; ttlMs: number }[]> {
  const keys = await redis.keys('*')
  const all = await Promise.all(
    keys.map(async (key) => ({ log: key.slice(key.lastIndexOf(':') + 1), ttlMs: await redis.pttl(key) })),
  )
  return all.filter(({ ttlMs }) => ttlMs !== -2)
}

describe('every key has a TTL that is no longer than needed', () => {
  it('with the clock of Redis', () =>
    fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 60 }), async (requests) => {
        await redis.flushall()
        const players = new Players(limitersOf())
        for (const each of requests) await players.play(each)
        for (const { log, ttlMs } of await lifetimes()) {
          expect(ttlMs, log).toBeGreaterThan(0)
          expect(ttlMs, log).toBeLessThanOrEqual(lifetimeOf(KEEP_MS[log]!))
        }
      }),
      { numRuns: 100 },
    ))

  it('with a clock option, at least ten minutes', () =>
    fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 60 }), async (requests) => {
        await redis.flushall()
        const clock = new ManualClock()
        const players = new Players(limitersOf(clock))
        for (const each of requests) {
          clock.advance(each.afterMs)
          await players.play(each)
        }
        for (const { log, ttlMs } of await lifetimes()) {
          expect(ttlMs, log).toBeGreaterThan(540_000)
          expect(ttlMs, log).toBeLessThanOrEqual(600_000)
        }
      }),
      { numRuns: 100 },
    ))
})

it("the TTL isn't renewed by denials, peeks, refunds or most admissions", async () => {
  const limits = [slidingWindow({ limit: 50, window: '1h' })]
  const limiter = createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 })
  await limiter.consume('k')
  await redis.config('RESETSTAT')
  const decisions = []
  for (let i = 0; i < 60; i++) decisions.push(await limiter.consume('k'))
  await limiter.peek('k')
  await limiter.refund('k', decisions[7]!)
  const stats = await redis.info('commandstats')
  expect(stats).toMatch(/cmdstat_getrange:calls=\d+/)
  expect(stats).not.toMatch(/cmdstat_(p?expire|pexpireat)/)
  const [key = ''] = await redis.keys('*')
  expect(await redis.pttl(key)).toBeGreaterThan(3_600_000)
})

it('a log that is refunded or reset to zero is removed', async () => {
  const [limiter] = limitersOf()
  const decision = await limiter!.consume('k', { cost: 2 })
  await limiter!.refund('k', decision)
  expect((await redis.keys('*:w1*')).length).toBe(0)
  await limiter!.charge('k', 3)
  await limiter!.reset('k')
  expect(await redis.dbsize()).toBe(0)
})

it('the TTL is renewed by a request that counts for longer', async () => {
  const clock = new ManualClock()
  const limits = [slidingWindow({ limit: 50, window: '1h' })]
  const limiter = createLimiter({ limits, store: redisStore(redis, { clock: clock.now }), timeoutMs: 30_000 })
  for (let i = 0; i < 12; i++) {
    await limiter.consume('k')
    clock.advance(1)
  }
  const [key = ''] = await redis.keys('*')
  for (let i = 0; i < 8; i++) {
    clock.advance(1_200_000)
    // Shortens the TTL as if Redis used this clock.
    await redis.pexpire(key, 3_300_000)
    await limiter.consume('k')
    expect(await redis.pttl(key)).toBeGreaterThan(3_600_000)
  }
  // Charges from before a clock step back count for a whole window from then on.
  clock.advance(-1_200_000)
  await redis.pexpire(key, 2_000_000)
  await limiter.consume('k')
  expect(await redis.pttl(key)).toBeGreaterThan(3_600_000)
})

it('held slots and counted values live for their window plus a quarter', async () => {
  const common = { store: redisStore(redis), timeoutMs: 30_000 }
  const limiter = createLimiter({ ...common, limits: [concurrency({ limit: 3, ttl: '1h' })] })
  const values = createLimiter({ ...common, limits: [distinct({ limit: 3, window: '2h' })] })
  const permit = await limiter.acquire('k')
  const acts = [
    () => values.consume('k', { value: 'a' }),
    () => limiter.acquire('k'),
    () => values.charge('k', 1, { value: 'a' }),
    () => permit.extend(),
  ]
  for (const act of acts) {
    await act()
    for (const { log, ttlMs } of await lifetimes()) {
      const keepMs = log.startsWith('k') ? 3_600_000 : 7_200_000
      expect(ttlMs, log).toBeGreaterThan(lifetimeOf(keepMs) - 60_000)
      expect(ttlMs, log).toBeLessThanOrEqual(lifetimeOf(keepMs))
    }
  }
  // A renewal extends the TTL as well. This makes the slot look as if it was renewed 15 minutes ago.
  const [held = ''] = await redis.keys('*:k3600000')
  for (const holder of await redis.zrange(held, 0, -1)) await redis.zadd(held, Date.now() - 900_000, holder)
  await redis.pexpire(held, 3_600_000)
  await permit.extend()
  expect(await redis.pttl(held)).toBeGreaterThan(lifetimeOf(3_600_000) - 60_000)
  limiter.close()
})

it.each([
  ['set rarely', redis],
  ['set by each request', anewClient(redis)],
])('a log that outgrows its ring keeps its TTL, %s', async (_, client) => {
  const clock = new ManualClock()
  const limits = [slidingWindow({ limit: 5000, window: '1h' })]
  const limiter = createLimiter({
    limits,
    store: redisStore(client, { clock: clock.now }),
    timeoutMs: 30_000,
  })
  for (let i = 0; i < 1200; i++) {
    await limiter.consume('k')
    clock.advance(1)
    if (i % 4 > 0) continue
    const [key = ''] = await redis.keys('*')
    expect(await redis.pttl(key), `after ${i}`).toBeGreaterThan(3_600_000)
  }
})

describe('the TTL of a window log, by the clock of Redis,', () => {
  const hour = 3_600_000
  /** The remaining TTL before a request, in milliseconds. A renewed TTL is longer than the window. */
  const leftMs = 9000

  /** Returns the TTL of a log after a charge at this time and another request. */
  async function afterOneMore(window: number, stampOf: (nowMs: number) => number, longerMs = window) {
    await redis.flushall()
    const limiterOf = (ms: number) =>
      createLimiter({
        limits: [slidingWindow({ limit: 99, window: ms })],
        store: redisStore(redis),
        timeoutMs: 30_000,
      })
    await limiterOf(window).consume('k')
    const [key = ''] = await redis.keys('*')
    const value = (await redis.getBuffer(key))!
    value.writeUIntBE(stampOf(Date.now()), 27, 6)
    await redis.set(key, value, 'PX', leftMs)
    await limiterOf(longerMs).consume('k')
    return redis.pttl(key)
  }

  /** Waits until the time isn't near an edge between parts of the slack. */
  async function betweenEdges(partMs: number) {
    const sinceMs = Date.now() % partMs
    if (sinceMs > partMs - 1000) await delay(partMs - sinceMs + 400)
    if (sinceMs < 400) await delay(400 - sinceMs)
  }

  it.each([
    [hour, 899_000],
    [10_000, 4000],
  ])('changes with the first request in a part of its slack: a window of %i ms', async (window, partMs) => {
    await betweenEdges(partMs)
    expect(await afterOneMore(window, (nowMs) => nowMs - (nowMs % partMs) - 1)).toBeGreaterThan(window)
    expect(await afterOneMore(window, (nowMs) => nowMs - (nowMs % partMs))).toBeLessThanOrEqual(leftMs)
  })

  it('changes with a request that must keep charges longer', async () => {
    expect(await afterOneMore(hour, (nowMs) => nowMs, 2 * hour)).toBeGreaterThan(2 * hour)
  })

  it('changes with a request after the clock was set back', async () => {
    expect(await afterOneMore(hour, (nowMs) => nowMs + hour)).toBeGreaterThan(hour)
  })

  it('includes leases', async () => {
    const store = redisStore(redis)
    const parts = [{ key: 'k', set: limitSet('l', [slidingWindow({ limit: 99, window: '1m' })]) }]
    for (const leaseMs of [500_000, 700_000]) {
      await outcomesOf(store, [{ type: 'consume', parts, cost: 1, count: 1, leaseMs }])
      const [key = ''] = await redis.keys('*')
      expect(await redis.pttl(key)).toBeGreaterThan(60_000 + leaseMs)
    }
  })

  it('changes with a charge to more than 2^46 units, but not with a refund', async () => {
    const limits = [slidingWindow({ limit: 2 ** 40, window: hour })]
    const limiter = createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 })
    for (let i = 0; i < 4; i++) await limiter.charge('k', 2 ** 46)
    const [key = ''] = await redis.keys('*')
    await redis.pexpire(key, leftMs)
    await limiter.charge('k', 1)
    expect(await redis.pttl(key)).toBeGreaterThan(hour)
    await limiter.reset('k')
    await limiter.consume('k')
    const decision = await limiter.consume('k')
    await redis.pexpire(key, leftMs)
    expect(await limiter.refund('k', decision)).toBe(1)
    expect(await redis.pttl(key)).toBeLessThanOrEqual(leftMs)
    expect(await redis.pttl(key)).toBeGreaterThan(0)
  })
})

it('a token bucket lives slightly longer than its debt', async () => {
  const limits = [tokenBucket({ capacity: 100, refill: 10, interval: '1s' })]
  const limiter = createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 })
  const startMs = performance.now()
  const expectDebt = async (debtMs: number, mostMs = debtMs) => {
    const [key = 'slidegate:none'] = await redis.keys('*')
    const ttlMs = await redis.pttl(key)
    expect(ttlMs).toBeLessThanOrEqual(lifetimeOf(mostMs))
    // As time passes, the debt shrinks and the TTL runs down.
    const passedMs = performance.now() - startMs
    expect(ttlMs).toBeGreaterThan(lifetimeOf(debtMs) - 5000 - 2 * passedMs)
  }
  const decision = await limiter.consume('k', { cost: 50 })
  await expectDebt(5000)
  await limiter.charge('k', 10_000)
  await expectDebt(1_005_000)
  await limiter.refund('k', decision)
  // Refunds don't change the TTL.
  await expectDebt(1_000_000, 1_005_000)
  await limiter.reset('k')
  await limiter.consume('k')
  await expectDebt(100)
})

it('the TTL of a token bucket is renewed only if it would end before the debt is paid', async () => {
  const clock = new ManualClock()
  const limits = [tokenBucket({ capacity: 1000, refill: 1, interval: '1m' })]
  const limiter = createLimiter({ limits, store: redisStore(redis, { clock: clock.now }), timeoutMs: 30_000 })
  const hour = 3_600_000
  await limiter.consume('k', { cost: 60 })
  const [key = ''] = await redis.keys('*')
  const charged = async (cost: number) => {
    await redis.pexpire(key, 1_000_000)
    await limiter.consume('k', { cost })
    return redis.pttl(key)
  }
  // The TTL ends after 75 minutes. The debts below are paid off after 74, 75 and 76 minutes.
  expect(await charged(14)).toBeLessThanOrEqual(1_000_000)
  clock.advance(hour / 2)
  expect(await charged(1)).toBeLessThanOrEqual(1_000_000)
  expect(await charged(1)).toBeGreaterThan(46 * 60_000)
})

it('a token bucket with more debt than its current refill allows lives for 366 days', async () => {
  const clock = new ManualClock()
  const bucket = (refill: number) => tokenBucket({ capacity: 10, refill, interval: '10s' })
  let limits = [bucket(10)]
  const store = redisStore(redis, { clock: clock.now })
  const limiter = createLimiter({ limits: () => limits, store, timeoutMs: 30_000 })
  await limiter.charge('k', Number.MAX_SAFE_INTEGER)
  limits = [bucket(1)]
  // A denial rewrites a log that is ahead of the clock.
  clock.advance(-3_600_000)
  await limiter.consume('k')
  const [key = ''] = await redis.keys('*')
  expect(await redis.pttl(key)).toBeLessThanOrEqual(lifetimeOf(366 * 86_400_000))
})

it('a sliding counter lives until its window and the next one are over', async () => {
  const clock = new ManualClock()
  const hour = 3_600_000
  clock.set(Math.ceil(clock.now() / hour) * hour)
  const limits = [slidingCounter({ limit: 50, window: '1h' })]
  const limiter = createLimiter({ limits, store: redisStore(redis, { clock: clock.now }), timeoutMs: 30_000 })
  let decision = await limiter.consume('k')
  const [key = ''] = await redis.keys('*')
  for (let i = 0; i < 40; i++) {
    // Shortens the TTL as if Redis used this clock.
    const ttlMs = await redis.pttl(key)
    clock.advance(hour / 4)
    await redis.pexpire(key, ttlMs - hour / 4)
    if (i % 3 === 0) expect(await limiter.refund('k', decision)).toBe(1)
    decision = await limiter.consume('k')
    expect(await redis.pttl(key)).toBeGreaterThan(decision.resetAfterMs)
    expect(await redis.pttl(key)).toBeLessThanOrEqual(lifetimeOf(2 * hour))
  }
  // Charges from before a clock step back count for two windows from then on.
  clock.advance(-5 * hour)
  await redis.pexpire(key, hour)
  await limiter.consume('k')
  expect(await redis.pttl(key)).toBeGreaterThan(2 * hour)
})

it.each([
  fixedWindow({ limit: 9, window: '1h' }),
  fixedWindow({ limit: 9, window: '1h', align: 'first-hit', name: 'first-hit' }),
  slidingCounter({ limit: 9, window: '1h', name: 'counter' }),
])('only the first charge in a window sets the TTL: $name', async (limit) => {
  const clock = new ManualClock()
  const limiter = createLimiter({
    limits: [limit],
    store: redisStore(redis, { clock: clock.now }),
    timeoutMs: 30_000,
  })
  const first = await limiter.consume('k')
  const [key = ''] = await redis.keys('*')
  expect(await redis.pttl(key)).toBeGreaterThan(first.resetAfterMs)
  await redis.pexpire(key, 1_000_000)
  await limiter.consume('k')
  await limiter.refund('k', first)
  expect(await redis.pttl(key)).toBeLessThanOrEqual(1_000_000)
})

it('a key that is charged at time 0 has a TTL', async () => {
  const clock = new ManualClock(0)
  const limits = [
    slidingWindow({ limit: 5, window: '1m' }),
    fixedWindow({ limit: 5, window: '1m', name: 'fixed' }),
    slidingCounter({ limit: 5, window: '1m', name: 'counter' }),
    tokenBucket({ capacity: 5, refill: 5, interval: '1m' }),
  ]
  for (const limit of limits) {
    await redis.flushall()
    const store = redisStore(redis, { clock: clock.now })
    await createLimiter({ limits: [limit], store, timeoutMs: 30_000 }).consume('k')
    const [key = ''] = await redis.keys('*')
    expect(await redis.pttl(key), key).toBeGreaterThan(540_000)
  }
})

it('a receipt is renewed when its TTL is due, even if its call charges nothing', async () => {
  const key = 'slidegate:{0}:~store:0'
  const numberOf = (call: number) => String(call).padStart(17, '0')
  await redis.set(key, `${numberOf(1)}reply`, 'PX', 1000)
  await redis.eval(SCRIPT, 1, key, numberOf(2))
  expect(await redis.pttl(key)).toBeLessThanOrEqual(1000)
  await redis.eval(SCRIPT, 1, key, `${numberOf(3)}r`)
  expect(await redis.pttl(key)).toBeGreaterThan(540_000)
})
