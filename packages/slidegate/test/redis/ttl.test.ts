// tier: integration
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

/** Configurations on the same keys, and what each log has to keep at most: its longest window. */
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
  // As long as it takes to pay for the most that is asked for below: 60 times 5 units.
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
      const decision = await limiter.consume(key, { cost: units })
      if (decision.allowed) this.#last = { limiter, key, decision }
    }
  }
}

function limitersOf(clock?: ManualClock): Limiter[] {
  const store = redisStore(redis, clock === undefined ? {} : { clock: clock.now })
  return CONFIGURATIONS.map((limits) => createLimiter({ limits, store, timeoutMs: 30_000 }))
}

/** What a log is given to live for: what it must keep, a quarter more, and at least four seconds more. */
const lifetimeOf = (keepMs: number) => keepMs + Math.max(5000, keepMs / 4)

/** Of those keys that have not expired since they were listed. */
async function lifetimes(): Promise<{ log: string; ttlMs: number }[]> {
  const keys = await redis.keys('*')
  const all = await Promise.all(
    keys.map(async (key) => ({ log: key.slice(key.lastIndexOf(':') + 1), ttlMs: await redis.pttl(key) })),
  )
  return all.filter(({ ttlMs }) => ttlMs !== -2)
}

describe('every key has a time to live, and not a longer one than it needs', () => {
  it('by the clock of Redis', () =>
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

  it('by a clock that is handed in: ten minutes at least', () =>
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

it('the lifetime is not renewed by denials, peeks and refunds, and not by every admission', async () => {
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

it('what is refunded or reset to nothing leaves no key behind', async () => {
  const [limiter] = limitersOf()
  const decision = await limiter!.consume('k', { cost: 2 })
  await limiter!.refund('k', decision)
  expect((await redis.keys('*:w1*')).length).toBe(0)
  await limiter!.charge('k', 3)
  await limiter!.reset('k')
  expect(await redis.dbsize()).toBe(0)
})

it('the lifetime is renewed by a request that it would not outlast', async () => {
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
    // As much as would be left by now, were Redis to go by this clock.
    await redis.pexpire(key, 3_300_000)
    await limiter.consume('k')
    expect(await redis.pttl(key)).toBeGreaterThan(3_600_000)
  }
  // What was charged before a clock was set back counts from then on for a whole window.
  clock.advance(-1_200_000)
  await redis.pexpire(key, 2_000_000)
  await limiter.consume('k')
  expect(await redis.pttl(key)).toBeGreaterThan(3_600_000)
})

it('what is held, and the values that count, live as long as their window and a quarter more', async () => {
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
  // What is renewed lives on, by itself: here as if it had been renewed a quarter of an hour ago.
  const [held = ''] = await redis.keys('*:k3600000')
  for (const holder of await redis.zrange(held, 0, -1)) await redis.zadd(held, Date.now() - 900_000, holder)
  await redis.pexpire(held, 3_600_000)
  await permit.extend()
  expect(await redis.pttl(held)).toBeGreaterThan(lifetimeOf(3_600_000) - 60_000)
  limiter.close()
})

it.each([
  ['set rarely', redis],
  ['set anew by each', anewClient(redis)],
])('a log that outgrows its ring keeps its lifetime, %s', async (_, client) => {
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

describe('the TTL of a window log, by the clock of Redis', () => {
  const hour = 3_600_000
  /** Milliseconds that a key has left before a request. If renewed, it has more than the window. */
  const leftMs = 9000

  /** The TTL of a log whose last charge was at this time, after one more request. */
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

  /** Waits for a time that isn't near an edge between parts of the slack. */
  async function betweenEdges(partMs: number) {
    const sinceMs = Date.now() % partMs
    if (sinceMs > partMs - 1000) await delay(partMs - sinceMs + 400)
    if (sinceMs < 400) await delay(400 - sinceMs)
  }

  it.each([
    [hour, 899_000],
    [10_000, 4000],
  ])(
    'only the first request in a part of its slack sets the TTL: a window of %i ms',
    async (window, partMs) => {
      await betweenEdges(partMs)
      expect(await afterOneMore(window, (nowMs) => nowMs - (nowMs % partMs) - 1)).toBeGreaterThan(window)
      expect(await afterOneMore(window, (nowMs) => nowMs - (nowMs % partMs))).toBeLessThanOrEqual(leftMs)
    },
  )

  it('a request that has to keep charges for longer sets the TTL', async () => {
    expect(await afterOneMore(hour, (nowMs) => nowMs, 2 * hour)).toBeGreaterThan(2 * hour)
  })

  it('a request after the clock was set back sets the TTL', async () => {
    expect(await afterOneMore(hour, (nowMs) => nowMs + hour)).toBeGreaterThan(hour)
  })

  it('counts leases', async () => {
    const store = redisStore(redis)
    const parts = [{ key: 'k', set: limitSet('l', [slidingWindow({ limit: 99, window: '1m' })]) }]
    for (const leaseMs of [500_000, 700_000]) {
      await outcomesOf(store, [{ type: 'consume', parts, cost: 1, count: 1, leaseMs }])
      const [key = ''] = await redis.keys('*')
      expect(await redis.pttl(key)).toBeGreaterThan(60_000 + leaseMs)
    }
  })

  it('a charge to more than 2^46 units sets the TTL, and a refund does not', async () => {
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

it('a token bucket lives until its debt is paid, and not much longer', async () => {
  const limits = [tokenBucket({ capacity: 100, refill: 10, interval: '1s' })]
  const limiter = createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 })
  const startMs = performance.now()
  const expectDebt = async (debtMs: number, mostMs = debtMs) => {
    const [key = 'slidegate:none'] = await redis.keys('*')
    const ttlMs = await redis.pttl(key)
    expect(ttlMs).toBeLessThanOrEqual(lifetimeOf(mostMs))
    // Meanwhile it is being paid, and the key grows older.
    const passedMs = performance.now() - startMs
    expect(ttlMs).toBeGreaterThan(lifetimeOf(debtMs) - 5000 - 2 * passedMs)
  }
  const decision = await limiter.consume('k', { cost: 50 })
  await expectDebt(5000)
  await limiter.charge('k', 10_000)
  await expectDebt(1_005_000)
  await limiter.refund('k', decision)
  // What is returned leaves the TTL alone.
  await expectDebt(1_000_000, 1_005_000)
  await limiter.reset('k')
  await limiter.consume('k')
  await expectDebt(100)
})

it('the TTL of a token bucket is renewed where it would end before its debt is paid, and only there', async () => {
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
  // It ends after 75 minutes. What is owed is paid after 74, after 75, and after 76.
  expect(await charged(14)).toBeLessThanOrEqual(1_000_000)
  clock.advance(hour / 2)
  expect(await charged(1)).toBeLessThanOrEqual(1_000_000)
  expect(await charged(1)).toBeGreaterThan(46 * 60_000)
})

it('a token bucket that owes more than its refill of now allows lives for 366 days', async () => {
  const clock = new ManualClock()
  const bucket = (refill: number) => tokenBucket({ capacity: 10, refill, interval: '10s' })
  let limits = [bucket(10)]
  const store = redisStore(redis, { clock: clock.now })
  const limiter = createLimiter({ limits: () => limits, store, timeoutMs: 30_000 })
  await limiter.charge('k', Number.MAX_SAFE_INTEGER)
  limits = [bucket(1)]
  // A denial writes a log that is ahead of the clock.
  clock.advance(-3_600_000)
  await limiter.consume('k')
  const [key = ''] = await redis.keys('*')
  expect(await redis.pttl(key)).toBeLessThanOrEqual(lifetimeOf(366 * 86_400_000))
})

it('a sliding counter lives until its window and the next are over', async () => {
  const clock = new ManualClock()
  const hour = 3_600_000
  clock.set(Math.ceil(clock.now() / hour) * hour)
  const limits = [slidingCounter({ limit: 50, window: '1h' })]
  const limiter = createLimiter({ limits, store: redisStore(redis, { clock: clock.now }), timeoutMs: 30_000 })
  let decision = await limiter.consume('k')
  const [key = ''] = await redis.keys('*')
  for (let i = 0; i < 40; i++) {
    // As much as would be left by now, were Redis to go by this clock.
    const ttlMs = await redis.pttl(key)
    clock.advance(hour / 4)
    await redis.pexpire(key, ttlMs - hour / 4)
    if (i % 3 === 0) expect(await limiter.refund('k', decision)).toBe(1)
    decision = await limiter.consume('k')
    expect(await redis.pttl(key)).toBeGreaterThan(decision.resetAfterMs)
    expect(await redis.pttl(key)).toBeLessThanOrEqual(lifetimeOf(2 * hour))
  }
  // What was charged before a clock was set back counts from then on for two windows.
  clock.advance(-5 * hour)
  await redis.pexpire(key, hour)
  await limiter.consume('k')
  expect(await redis.pttl(key)).toBeGreaterThan(2 * hour)
})

it.each([
  fixedWindow({ limit: 9, window: '1h' }),
  fixedWindow({ limit: 9, window: '1h', align: 'first-hit', name: 'first-hit' }),
  slidingCounter({ limit: 9, window: '1h', name: 'counter' }),
])('the first charge in a window gives a key its time, and no other does: $name', async (limit) => {
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

it('a key that is charged when the clock says 0 has a time to live, too', async () => {
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

it('a receipt whose TTL is due is renewed, even if its call charges nothing', async () => {
  const key = 'slidegate:{0}:~store:0'
  const numberOf = (call: number) => String(call).padStart(17, '0')
  await redis.set(key, `${numberOf(1)}reply`, 'PX', 1000)
  await redis.eval(SCRIPT, 1, key, numberOf(2))
  expect(await redis.pttl(key)).toBeLessThanOrEqual(1000)
  await redis.eval(SCRIPT, 1, key, `${numberOf(3)}r`)
  expect(await redis.pttl(key)).toBeGreaterThan(540_000)
})
