// tier: integration
import { describe, expect, it } from 'vitest'
import {
  concurrency,
  createLimiter,
  distinct,
  fixedWindow,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'

// Numbers in Lua are doubles: naive conversion turns them into 1.0e+14, and replies truncate them.

const { redis } = await useRedis()

const stores = storesOn(redis)

describe.each(Object.entries(stores))('%s', (name, store) => {
  it('keeps times beyond 1e14 to the millisecond', async () => {
    // The year 6429 is the last that fits in six bytes, minus the longest window.
    const clock = new ManualClock(2 ** 47 - 40_000_000_000)
    const limits = [slidingWindow({ limit: 100, window: '1m' }), fixedWindow({ limit: 200, window: '1h' })]
    const limiter = createLimiter({ limits, store: store(clock), timeoutMs: 30_000 })
    for (let i = 0; i < 100; i++) {
      const { allowed, atMs } = await limiter.consume('late')
      expect([allowed, atMs]).toEqual([true, clock.now()])
      clock.advance(1)
    }
    expect((await limiter.consume('late')).retryAfterMs).toBe(60_000 - 100)
    clock.advance(60_000 - 101)
    expect((await limiter.consume('late')).allowed).toBe(false)
    clock.advance(1)
    expect((await limiter.consume('late')).atMs).toBe(clock.now())
  })

  it('keeps totals exact in a log that is never empty', async () => {
    const clock = new ManualClock()
    const cost = 2 ** 38
    const limits = [slidingWindow({ limit: 4 * cost, window: 1000 })]
    const limiter = createLimiter({ limits, store: store(clock), timeoutMs: 30_000 })
    await limiter.consume('endless', { cost })
    // Charges more than 2^48 units in total, which don't fit in six bytes.
    for (let i = 0; i < 1200; i++) {
      clock.advance(500)
      const { allowed, remaining } = await limiter.consume('endless', { cost })
      expect([i, allowed, remaining]).toEqual([i, true, 2 * cost])
      expect((await limiter.peek('endless')).remaining).toBe(2 * cost)
    }
    expect((await limiter.consume('endless', { cost: 4 * cost })).retryAfterMs).toBe(1000)
  })

  it('counts units up to 2^40 and costs up to 2^53 exactly', async () => {
    const clock = new ManualClock()
    const limit = 2 ** 40
    const limiter = createLimiter({
      limits: [slidingWindow({ limit, window: '1h' }), fixedWindow({ limit, window: '1d' })],
      store: store(clock),
      timeoutMs: 30_000,
    })
    expect((await limiter.consume('many')).remaining).toBe(limit - 1)
    const decision = await limiter.consume('many', { cost: limit - 3 })
    expect(decision.remaining).toBe(2)
    expect((await limiter.consume('many', { cost: 3 })).allowed).toBe(false)
    expect((await limiter.consume('many', { cost: Number.MAX_SAFE_INTEGER })).allowed).toBe(false)
    expect((await limiter.consume('many', { cost: 2 })).remaining).toBe(0)
    expect(await limiter.refund('many', decision)).toBe(limit - 3)
    expect((await limiter.peek('many')).remaining).toBe(limit - 3)
  })

  it('opens windows of up to 366 days to the millisecond', async () => {
    const clock = new ManualClock()
    const limits = [slidingWindow({ limit: 3, window: '366d' })]
    const limiter = createLimiter({ limits, store: store(clock), timeoutMs: 30_000 })
    await limiter.consume(`${name} year`)
    clock.advance(1)
    await limiter.consume(`${name} year`, { cost: 2 })
    clock.advance(366 * 86_400_000 - 2)
    expect((await limiter.consume(`${name} year`)).retryAfterMs).toBe(1)
    clock.advance(1)
    expect((await limiter.consume(`${name} year`)).allowed).toBe(true)
    expect((await limiter.consume(`${name} year`)).retryAfterMs).toBe(1)
  })

  it('keeps running totals correct beyond their maximum', async () => {
    const clock = new ManualClock()
    const limit = 2 ** 40
    const limits = [slidingWindow({ limit, window: 100 })]
    const limiter = createLimiter({ limits, store: store(clock), timeoutMs: 30_000 })
    // 600 windows of 2^39 units, each charged in two halves that are half a window apart. The log is never empty, and exceeds
    // 2^47.
    for (let i = 0; i < 600; i++) {
      expect((await limiter.consume('busy', { cost: limit / 2 })).allowed).toBe(true)
      clock.advance(50)
    }
    expect((await limiter.consume('busy', { cost: limit / 2 + 1 })).retryAfterMs).toBe(50)
    expect((await limiter.consume('busy', { cost: limit / 2 })).remaining).toBe(0)
  })

  it('keeps entries to the millisecond beyond 1e14, and for 366 days', async () => {
    const clock = new ManualClock(2 ** 47 - 40_000_000_000)
    const limits = [
      slidingWindow({ limit: 10_000, window: '366d', log: 'zset', name: 'zset' }),
      slidingWindow({ limit: 10_000, window: '366d', log: 'stream', name: 'stream' }),
      concurrency({ limit: 10_000, ttl: '366d', name: 'held' }),
    ]
    const limiter = createLimiter({ limits, store: store(clock), timeoutMs: 30_000 })
    const first = await limiter.consume('kept', { requestId: 'a', cost: 9997 })
    clock.advance(1)
    await limiter.consume('kept', { requestId: 'b' })
    clock.advance(1)
    const { allowed, atMs, limits: told } = await limiter.consume('kept', { requestId: 'c', cost: 2 })
    expect([allowed, atMs]).toEqual([true, first.atMs + 2])
    expect(told.map(({ remaining }) => remaining)).toEqual([0, 0, 0])
    const year = 366 * 86_400_000
    for (const [cost, waitMs] of [
      [1, year - 2],
      [9997, year - 2],
      [9998, year - 1],
      [10_000, year],
      [Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY],
    ] as const) {
      const { limits: denied } = await limiter.peek('kept', { cost })
      expect(denied.map(({ retryAfterMs }) => retryAfterMs)).toEqual([waitMs, waitMs, waitMs])
    }
    const lists = await limiter.list('kept')
    for (const { entries } of lists) {
      expect(entries.map(({ units, atMs }) => [units, atMs - first.atMs])).toEqual([
        [9997, 0],
        [1, 1],
        [2, 2],
      ])
    }
    expect(await limiter.refund('kept', first)).toBe(9997)
    clock.advance(year - 2)
    expect((await limiter.peek('kept')).remaining).toBe(9997)
    clock.advance(1)
    expect((await limiter.peek('kept')).remaining).toBe(9998)
  })

  it('distinguishes ten thousand values', async () => {
    const clock = new ManualClock(2 ** 47 - 40_000_000_000)
    const limits = [distinct({ limit: 10_000, window: '366d' })]
    const limiter = createLimiter({ limits, store: store(clock), timeoutMs: 30_000 })
    const asks = (value: number) => limiter.consume('values', { value: `value ${value}` })
    for (let i = 0; i < 10; i++) {
      await Promise.all(Array.from({ length: 1000 }, (_, j) => asks(1000 * i + j)))
      clock.advance(1)
    }
    expect(await asks(10_000)).toMatchObject({ allowed: false, retryAfterMs: 366 * 86_400_000 - 10 })
    expect(await asks(9999)).toMatchObject({ allowed: true, remaining: 0 })
    expect((await limiter.list('values'))[0]!.entries).toHaveLength(10_000)
  })

  it('counts token buckets of 2^40 tokens, with the same refill per second, exactly', async () => {
    const clock = new ManualClock()
    const capacity = 2 ** 40
    const limits = [tokenBucket({ capacity, refill: capacity, interval: '1s' })]
    const limiter = createLimiter({ limits, store: store(clock), timeoutMs: 30_000 })
    expect((await limiter.consume('bucket')).remaining).toBe(capacity - 1)
    const decision = await limiter.consume('bucket', { cost: capacity - 3 })
    expect([decision.remaining, decision.resetAfterMs]).toEqual([2, 1000])
    expect((await limiter.consume('bucket', { cost: 3 })).retryAfterMs).toBe(1)
    expect((await limiter.consume('bucket', { cost: Number.MAX_SAFE_INTEGER })).allowed).toBe(false)
    clock.advance(1)
    // 2^40 / 1000 + 2 tokens are free, of which the fraction of 0.624 can't be used yet.
    expect((await limiter.peek('bucket')).remaining).toBe(1_099_511_629)
    expect(await limiter.refund('bucket', decision)).toBe(capacity - 3 - 1_099_511_627)
    expect((await limiter.peek('bucket')).remaining).toBe(capacity - 1)
  })

  it('fills token buckets that take 366 days to the millisecond', async () => {
    const clock = new ManualClock()
    const limits = [tokenBucket({ capacity: 7, refill: 7, interval: '366d' })]
    const limiter = createLimiter({ limits, store: store(clock), timeoutMs: 30_000 })
    await limiter.consume('year', { cost: 7 })
    await limiter.charge('year', 5)
    const yearMs = 366 * 86_400_000
    expect((await limiter.peek('year')).resetAfterMs).toBe(yearMs)
    for (const ms of [Math.ceil(yearMs / 7), Math.ceil((3 * yearMs) / 7), yearMs]) {
      clock.set(1_700_000_000_000 + ms - 1)
      const { remaining } = await limiter.peek('year')
      clock.advance(1)
      expect((await limiter.peek('year')).remaining).toBe(remaining + 1)
    }
  })

  it('counts sliding counters of 2^40 units in 366 days exactly', async () => {
    const yearMs = 366 * 86_400_000
    const clock = new ManualClock(50 * yearMs)
    const limit = 2 ** 40
    const limits = [slidingCounter({ limit, window: '366d' })]
    const limiter = createLimiter({ limits, store: store(clock), timeoutMs: 30_000 })
    expect((await limiter.consume('counter')).remaining).toBe(limit - 1)
    const decision = await limiter.consume('counter', { cost: limit - 3 })
    expect([decision.remaining, decision.resetAfterMs]).toEqual([2, 2 * yearMs])
    // The window has 3163 steps of 10^7 ms, the last of which is shorter.
    clock.set(51 * yearMs + 10_000_000)
    const { remaining, retryAfterMs } = await limiter.consume('counter', { cost: limit })
    expect(remaining).toBe(limit - Math.ceil(((limit - 2) * 3162) / 3163))
    expect(retryAfterMs).toBe(yearMs - 10_000_000)
    clock.set(52 * yearMs - 1)
    expect((await limiter.peek('counter')).remaining).toBe(limit - Math.ceil((limit - 2) / 3163))
    expect(await limiter.refund('counter', decision)).toBe(limit - 3)
    expect((await limiter.peek('counter')).remaining).toBe(limit - 1)
    clock.advance(1)
    expect((await limiter.consume('counter', { cost: limit })).remaining).toBe(0)
  })
})
