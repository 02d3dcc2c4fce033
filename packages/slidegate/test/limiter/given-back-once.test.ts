// tier: integration
import { expect, it } from 'vitest'
import { createLimiter, fixedWindow, memoryStore, type Store, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'

// A charge is refunded only once, whatever triggers the refund, and never at the expense of other charges.

const { redis } = await useRedis()
let runs = 0

const stores = {
  memory: (clock: ManualClock) => memoryStore({ clock: clock.now }),
  Redis: (clock: ManualClock) => redisStore(redis, { clock: clock.now, prefix: `slidegate:once${runs++}` }),
}

const each = it.each(Object.entries(stores))

each('%s: a reservation can be settled, but not refunded', async (_, storeOf) => {
  const clock = new ManualClock(2_000_000_000_000)
  const limiter = createLimiter({
    limits: [fixedWindow({ limit: 20, window: '1h' })],
    store: storeOf(clock),
    timeoutMs: 30_000,
  })
  const reservation = await limiter.reserve('k', 10)
  await limiter.consume('k', { cost: 10 })
  expect(await limiter.refund('k', reservation.decision)).toBe(0)
  expect(await reservation.cancel()).toEqual({ returned: 10, added: 0 })
  expect((await limiter.peek('k')).remaining).toBe(10)
  limiter.close()
})

each("%s: settling doesn't return units restamped after the clock was set back", async (_, storeOf) => {
  const clock = new ManualClock(2_000_000_000_000)
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 20, window: '1m' })],
    store: storeOf(clock),
    timeoutMs: 30_000,
  })
  const reservation = await limiter.reserve('k', 10)
  clock.advance(-30_000)
  // This denial restamps the charge, but the reservation keeps the old timestamp.
  await limiter.consume('k', { cost: 20 })
  clock.advance(5000)
  await limiter.consume('k', { cost: 10 })
  expect(await reservation.cancel()).toEqual({ returned: 0, added: 0 })
  expect((await limiter.peek('k')).remaining).toBe(0)
  limiter.close()
})

each("%s: the caller's changes to a decision don't change its refund", async (_, storeOf) => {
  const limiter = createLimiter({
    limits: [
      slidingWindow({ limit: 5, window: '1m' }),
      slidingWindow({ limit: 1, window: '1h', shadow: true }),
    ],
    store: storeOf(new ManualClock(2_000_000_000_000)),
    timeoutMs: 30_000,
  })
  const [withRoom, withoutRoom] = [await limiter.consume('k'), await limiter.consume('k')]
  const limits = withoutRoom.limits as unknown[]
  limits.reverse()
  Object.assign(withRoom, { limits: undefined })
  expect(await limiter.refund('k', withoutRoom)).toBe(1)
  expect((await limiter.peek('k')).limits.map(({ remaining }) => remaining)).toEqual([4, 0])
  expect(await limiter.refund('k', withRoom)).toBe(1)
  expect((await limiter.peek('k')).limits.map(({ remaining }) => remaining)).toEqual([5, 1])
  limiter.close()
})

it('a refund is for its own decision, even if the store reuses its outcomes', async () => {
  const clock = new ManualClock(2_000_000_000_000)
  const store = memoryStore({ clock: clock.now })
  const reused = {}
  const applySync: Store['applySync'] = (ops) => [Object.assign(reused, store.applySync!(ops)[0])]
  const limits = [slidingWindow({ limit: 5, window: '1m' })]
  const limiter = createLimiter({ limits, store: { ...store, applySync, fastPath: undefined } as Store })
  const expired = limiter.consumeSync('k')
  clock.advance(61_000)
  limiter.consumeSync('k')
  expect(await limiter.refund('k', expired)).toBe(0)
  expect((await limiter.peek('k')).remaining).toBe(4)
})

it("a failing consumeMany doesn't refund an earlier request with the same id", async () => {
  const store = memoryStore({ maxKeys: 2 })
  const limits = [slidingWindow({ limit: 1, window: '1m', log: 'zset' })]
  const limiter = createLimiter({ limits, store })
  await limiter.consume('pay', { requestId: 'p1' })
  await limiter.consume('other', { requestId: 'o1' })
  const many = limiter.consumeMany([{ key: 'pay', requestId: 'p1' }, { key: 'new' }])
  await expect(many).rejects.toMatchObject({ reason: 'full' })
  expect((await limiter.consume('pay', { requestId: 'p2' })).allowed).toBe(false)
})

it('a denied key evicts no other key, unless denials cause bans', async () => {
  const store = memoryStore({ maxKeys: 1 })
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 2, window: '1m' })],
    store,
    overrides: true,
  })
  await limiter.consume('a')
  expect((await limiter.consume('b', { cost: 3 })).allowed).toBe(false)
  await limiter.unblock('b')
  expect((await limiter.peek('a')).remaining).toBe(1)
})

it('a limits function that returns a promise is rejected, even if the promise rejects', async () => {
  const limits = (async () => {
    throw new Error('no such plan')
  }) as unknown as () => never
  const limiter = createLimiter({ limits })
  await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'invalid_limit' })
})
