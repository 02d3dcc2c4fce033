import { describe, expect, it } from 'vitest'
import { createLimiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { ManualClock } from '../../src/testing/index.ts'

// Without a charge, the stamp doesn't change, so earlier charges leave the window on time.

function worldOf(...limits: Parameters<typeof slidingWindow>[0][]) {
  const clock = new ManualClock(1_700_000_000_000)
  const store = memoryStore({ clock: clock.now })
  return { clock, limiter: createLimiter({ limits: limits.map(slidingWindow), store }) }
}

describe.each(['packed', 'zset', 'stream'] as const)('the log %s keeps its stamp after', (log) => {
  it('a request that a shadow limit had no room for', async () => {
    const { clock, limiter } = worldOf(
      { name: 'enforced', limit: 10, window: 1000, log },
      { name: 'shadow', limit: 1, window: 1000, shadow: true, log },
    )
    await limiter.consume('k')
    clock.advance(500)
    const { allowed, limits } = await limiter.consume('k')
    expect([allowed, limits[1]!.allowed]).toEqual([true, false])
    clock.advance(500)
    expect((await limiter.peek('k')).limits.map(({ remaining }) => remaining)).toEqual([9, 1])
  })
})

it('a reservation that was settled for exactly its estimate', async () => {
  const { clock, limiter } = worldOf({ limit: 10, window: 1000 })
  const reservation = await limiter.reserve('k', 3)
  clock.advance(500)
  await reservation.settle(3)
  clock.advance(499)
  expect((await limiter.peek('k')).remaining).toBe(7)
  clock.advance(1)
  expect((await limiter.peek('k')).remaining).toBe(10)
})

it("settling a reservation that wasn't charged to its shadow limit", async () => {
  const { limiter } = worldOf(
    { name: 'enforced', limit: 10, window: 1000 },
    { name: 'shadow', limit: 2, window: 1000, shadow: true },
  )
  await limiter.consume('k', { cost: 2 })
  const reservation = await limiter.reserve('k', 5)
  await reservation.settle(1)
  expect((await limiter.peek('k')).limits.map(({ remaining }) => remaining)).toEqual([7, 0])
})

it("refunding a request that a shadow limit didn't keep", async () => {
  const { limiter } = worldOf(
    { name: 'enforced', limit: 10, window: 1000, log: 'zset' },
    { name: 'shadow', limit: 1, window: 1000, log: 'zset', shadow: true },
  )
  await limiter.consume('k', { requestId: 'first' })
  const decision = await limiter.consume('k', { requestId: 'second' })
  expect(await limiter.refund('k', decision)).toBe(1)
  expect(await limiter.refund('k', await limiter.consume('k', { requestId: 'second' }))).toBe(1)
  expect((await limiter.peek('k')).limits.map(({ remaining }) => remaining)).toEqual([9, 0])
})

describe('a clock that is set back', () => {
  it('by a second waits for the newest stamp, for every operation', async () => {
    for (const ask of ['consume', 'peek'] as const) {
      const { clock, limiter } = worldOf({ limit: 10, window: 5000 })
      const { atMs } = await limiter.consume('k')
      clock.set(atMs - 1000)
      expect((await limiter[ask]('k')).atMs).toBe(atMs)
    }
  })

  it('by more than a second continues from there', async () => {
    for (const ask of ['consume', 'peek'] as const) {
      const { clock, limiter } = worldOf({ limit: 10, window: 5000 })
      const { atMs } = await limiter.consume('k')
      clock.set(atMs - 1001)
      expect((await limiter[ask]('k')).atMs).toBe(atMs - 1001)
    }
  })
})

it("a full store doesn't evict a request's own keys to make room for its other keys", async () => {
  const store = memoryStore({ clock: new ManualClock().now, maxKeys: 2 })
  const set = limitSet('full', [slidingWindow({ limit: 10, window: 1000 })])
  const consume = (...keys: string[]) =>
    outcomesOf(store, [
      { type: 'consume', parts: keys.map((key) => ({ key, set })), cost: 1, count: 1, leaseMs: 0 },
    ])
  await consume('a', 'b')
  await expect(consume('a', 'b', 'c')).rejects.toMatchObject({ reason: 'full' })
  expect(store.stats()).toEqual({ keys: 2, evicted: 0 })
  expect(await consume('a', 'b')).toMatchObject([{ admitted: 1, limits: [1, 0, 1000, 1, 0, 1000] }])
  await consume('c', 'b')
  expect(store.stats()).toEqual({ keys: 2, evicted: 1 })
  expect(await consume('b', 'c')).toMatchObject([{ admitted: 1, limits: [3, 0, 1000, 1, 0, 1000] }])
})
