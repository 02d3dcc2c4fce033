// tier: integration

import { beforeEach, describe, expect, it } from 'vitest'
import { calendarWindow } from '../../src/calendar.ts'
import { concurrency, createLimiter, fixedWindow, type Limit, slidingWindow } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'

// Tests repeated decisions on one request, which is charged only once.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const stores = storesOn(redis)

const once = slidingWindow({ limit: 100, window: '1m', log: 'zset', name: 'once' })
const monthly = calendarWindow({ limit: 10, unit: 'month', name: 'monthly' })
const held = concurrency({ limit: 100, ttl: '1m', name: 'held' })

describe.each(Object.entries(stores))('%s', (_, storeOf) => {
  function setUp(...limits: Limit[]) {
    const clock = new ManualClock()
    const limiter = createLimiter({ limits, store: storeOf(clock), timeoutMs: 30_000 })
    const left = async () => (await limiter.peek('k')).limits.map(({ remaining }) => remaining)
    return { clock, limiter, left }
  }

  it("doesn't refund a later request with the same id for the decision on an earlier one", async () => {
    const { limiter, left } = setUp(once, monthly)
    const first = await limiter.consume('k', { requestId: 'a', cost: 2 })
    const again = await limiter.consume('k', { requestId: 'a', cost: 2 })
    expect(await limiter.refund('k', first)).toBe(2)
    await limiter.consume('k', { requestId: 'a', cost: 3 })
    expect(await limiter.refund('k', again)).toBe(0)
    expect(await left()).toEqual([97, 7])
  })

  it('rejects a repeated holder with a higher cost, which stays held', async () => {
    const { limiter, left } = setUp(held, monthly)
    await limiter.consume('k', { requestId: 'a', cost: 2 })
    await expect(limiter.consume('k', { requestId: 'a', cost: 3 })).rejects.toMatchObject({
      code: 'reused_request_id',
      value: 3,
      message: expect.stringContaining('was charged 2'),
    })
    expect(await left()).toEqual([98, 8])
    expect(await limiter.consume('k', { requestId: 'a' })).toMatchObject({ allowed: true, cost: 2 })
    expect(await limiter.release('k', 'a', { cost: 2 })).toBe(true)
  })

  it.each([
    ['requests', once],
    ['holders', held],
  ])('refunds only one decision of %s', async (_, limit) => {
    const { limiter, left } = setUp(limit, monthly)
    const first = await limiter.consume('k', { requestId: 'a', cost: 2 })
    const again = await limiter.consume('k', { requestId: 'a', cost: 2 })
    await limiter.consume('k', { requestId: 'b', cost: 3 })
    expect(await limiter.refund('k', first)).toBe(2)
    expect(await limiter.refund('k', again)).toBe(0)
    expect(await left()).toEqual([97, 7])
  })

  it("doesn't refund the other when the first has left its window", async () => {
    const { clock, limiter, left } = setUp(once, monthly)
    const first = await limiter.consume('k', { requestId: 'a' })
    const again = await limiter.consume('k', { requestId: 'a' })
    await limiter.consume('k')
    expect(await limiter.refund('k', first)).toBe(1)
    clock.advance(60_000)
    expect(await limiter.refund('k', again)).toBe(0)
    expect(await left()).toEqual([100, 9])
  })

  it("doesn't refund both if the clock was set back in between", async () => {
    const { clock, limiter, left } = setUp(once, monthly)
    clock.advance(20_000)
    const first = await limiter.consume('k', { requestId: 'a' })
    await limiter.consume('k')
    clock.advance(-5000)
    const again = await limiter.consume('k', { requestId: 'a' })
    const returned = (await limiter.refund('k', first)) + (await limiter.refund('k', again))
    expect(returned).toBeLessThanOrEqual(1)
    expect((await left())[1]).toBeLessThanOrEqual(9)
  })

  it('counts a repeat after the clock was set back from then on', async () => {
    const { clock, limiter } = setUp(slidingWindow({ limit: 1, window: '1m', log: 'zset' }))
    await limiter.consume('k', { requestId: 'a' })
    clock.advance(-20_000)
    for (let i = 0; i < 4; i++) {
      expect((await limiter.consume('k', { requestId: 'a' })).allowed).toBe(true)
      clock.advance(5000)
    }
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, retryAfterMs: 40_000 })
  })

  it("doesn't refund units to a shadow limit that had no room", async () => {
    const shadow = fixedWindow({ limit: 1, window: '1h', name: 'shadow', shadow: true })
    const { limiter, left } = setUp(once, shadow)
    await limiter.consume('k')
    await limiter.consume('k', { requestId: 'a' })
    const again = await limiter.consume('k', { requestId: 'a' })
    expect(await limiter.refund('k', again)).toBe(1)
    expect(await left()).toEqual([99, 0])

    const strict = setUp(
      fixedWindow({ limit: 1, window: '1h' }),
      slidingWindow({ limit: 9, window: '1m', log: 'zset', shadow: true, name: 'tried' }),
    )
    await strict.limiter.consume('other', { requestId: 'a' })
    expect((await strict.limiter.consume('other', { requestId: 'a' })).allowed).toBe(false)
  })

  it("doesn't release a holder by the decision of an earlier one with the same id", async () => {
    const shadow = concurrency({ limit: 9, ttl: '1m', name: 'tried', shadow: true })
    const { clock, limiter, left } = setUp(shadow, monthly)
    const before = await limiter.consume('k', { requestId: 'a' })
    clock.advance(60_000)
    await limiter.consume('k', { requestId: 'a', cost: 2 })
    await limiter.refund('k', before)
    expect((await left())[0]).toBe(7)
  })

  it('treats an id that is repeated after its window as another request', async () => {
    const { clock, limiter, left } = setUp(once)
    await limiter.consume('k', { requestId: 'a', cost: 50 })
    clock.advance(60_000)
    const other = await limiter.consume('k', { requestId: 'a' })
    expect(await left()).toEqual([99])
    expect(await limiter.refund('k', other)).toBe(1)
    expect(await left()).toEqual([100])
  })
})
