// tier: system
import { describe, expect, it } from 'vitest'
import { createLimiter, type Decision, type Duration, slidingWindow } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'

const MAX_RECORDS = 65_536

const { redis } = await useRedis()

const stores = storesOn(redis)

/** Sends a request every millisecond from now on. On Redis, the requests share calls. */
async function everyMillisecond(
  clock: ManualClock,
  times: number,
  ask: () => Promise<Decision>,
): Promise<Decision[]> {
  const startMs = clock.now()
  const decisions: Decision[] = []
  for (let from = 0; from < times; from += 4096) {
    const requests = Array.from({ length: Math.min(4096, times - from) }, (_, i) => {
      clock.set(startMs + from + i)
      return ask()
    })
    decisions.push(...(await Promise.all(requests)))
  }
  expect(decisions.every(({ allowed }) => allowed)).toBe(true)
  return decisions
}

describe.each(Object.entries(stores))('%s', (_, createStore) => {
  it('a log at its bound is exact to the last record', async () => {
    const clock = new ManualClock()
    const startMs = clock.now()
    const limits = [slidingWindow({ limit: MAX_RECORDS, window: '10m', precision: 1 })]
    const limiter = createLimiter({ limits, store: createStore(clock), timeoutMs: 30_000 })
    await everyMillisecond(clock, MAX_RECORDS, () => limiter.consume('full'))
    const sinceFirst = MAX_RECORDS - 1
    expect((await limiter.consume('full')).retryAfterMs).toBe(600_000 - sinceFirst)
    expect((await limiter.peek('full', { cost: 1000 })).retryAfterMs).toBe(600_999 - sinceFirst)
    clock.set(startMs + 600_000 + 41_234)
    expect((await limiter.peek('full')).remaining).toBe(41_235)
    expect((await limiter.consume('full', { cost: 41_236 })).retryAfterMs).toBe(1)
    expect((await limiter.consume('full', { cost: 41_235 })).remaining).toBe(0)
    clock.advance(1)
    expect((await limiter.consume('full')).remaining).toBe(0)
  })

  it('a log beyond its bound merges the oldest records, and never admits too much', async () => {
    const clock = new ManualClock()
    const store = createStore(clock)
    const make = (limit: number, window: Duration) =>
      createLimiter({ limits: [slidingWindow({ limit, window, precision: 1 })], store, timeoutMs: 30_000 })
    // Neither limit fills a log on its own, but one needs many records, and the other keeps them for a long time.
    const short = make(200_000, '65s')
    const long = make(MAX_RECORDS, '24h')
    const units = MAX_RECORDS + 5000
    await long.consume('both')
    const decisions = await everyMillisecond(clock, units, () => short.consume('both'))
    expect((await short.peek('both')).remaining).toBe(200_000 - 65_000)
    // After refunds of the newest charges, all records would fit, but records that were merged stay merged.
    const newest = decisions.slice(-100).reverse()
    await Promise.all(newest.map((decision) => short.refund('both', decision)))
    expect((await short.peek('both')).remaining).toBe(200_000 - 64_900)
    expect((await long.consume('both')).allowed).toBe(false)
    clock.advance(86_400_000)
    expect((await long.peek('both')).remaining).toBe(MAX_RECORDS)
  })

  it('a refund in a large log is exact up to 4,096 records back, and returns nothing beyond', async () => {
    const clock = new ManualClock()
    const limits = [slidingWindow({ limit: 20_000, window: '1h', precision: 1 })]
    const limiter = createLimiter({ limits, store: createStore(clock), timeoutMs: 30_000 })
    await everyMillisecond(clock, 1000, () => limiter.consume('far'))
    clock.advance(1)
    const tooFar = await limiter.consume('far', { cost: 3 })
    clock.advance(1)
    const far = await limiter.consume('far', { cost: 3 })
    clock.advance(1)
    await everyMillisecond(clock, 4096, () => limiter.consume('far'))
    expect(await limiter.refund('far', tooFar)).toBe(0)
    expect(await limiter.refund('far', far, 2)).toBe(2)
    expect(await limiter.refund('far', far)).toBe(1)
    expect((await limiter.peek('far')).remaining).toBe(20_000 - 1000 - 3 - 4096)
    // Each later charge leaves the window at its own time.
    clock.set(far.atMs + 3_600_000)
    expect((await limiter.peek('far')).remaining).toBe(20_000 - 4096)
    clock.advance(1)
    expect((await limiter.peek('far')).remaining).toBe(20_000 - 4095)
  })
})
