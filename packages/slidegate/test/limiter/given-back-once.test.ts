// tier: integration
import { expect, it } from 'vitest'
import { createLimiter, fixedWindow, memoryStore, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'

// What was charged is given back once, whichever way it is asked for, and never what others were charged.

const { redis } = await useRedis()
let runs = 0

const stores = {
  memory: (clock: ManualClock) => memoryStore({ clock: clock.now }),
  Redis: (clock: ManualClock) => redisStore(redis, { clock: clock.now, prefix: `slidegate:once${runs++}` }),
}

const each = it.each(Object.entries(stores))

each('%s: a reservation is settled, not refunded', async (_, storeOf) => {
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

each(
  '%s: what counts anew, for the clock was set back, is not returned by a settlement',
  async (_, storeOf) => {
    const clock = new ManualClock(2_000_000_000_000)
    const limiter = createLimiter({
      limits: [slidingWindow({ limit: 20, window: '1m' })],
      store: storeOf(clock),
      timeoutMs: 30_000,
    })
    const reservation = await limiter.reserve('k', 10)
    clock.advance(-30_000)
    // Denied, it lets what is charged count from now on; the reservation knows nothing of it.
    await limiter.consume('k', { cost: 20 })
    clock.advance(5000)
    await limiter.consume('k', { cost: 10 })
    expect(await reservation.cancel()).toEqual({ returned: 0, added: 0 })
    expect((await limiter.peek('k')).remaining).toBe(0)
    limiter.close()
  },
)

it('many requests, one of which fails, return nothing of a request that was admitted before', async () => {
  const store = memoryStore({ maxKeys: 2 })
  const limits = [slidingWindow({ limit: 1, window: '1m', log: 'zset' })]
  const limiter = createLimiter({ limits, store })
  await limiter.consume('pay', { requestId: 'p1' })
  await limiter.consume('other', { requestId: 'o1' })
  const many = limiter.consumeMany([{ key: 'pay', requestId: 'p1' }, { key: 'new' }])
  await expect(many).rejects.toMatchObject({ reason: 'full' })
  expect((await limiter.consume('pay', { requestId: 'p2' })).allowed).toBe(false)
})

it('whoever is denied takes nobody else their room, where denials are not counted', async () => {
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

it('a function that tells a promise is refused, whatever becomes of that', async () => {
  const limits = (async () => {
    throw new Error('no such plan')
  }) as unknown as () => never
  const limiter = createLimiter({ limits })
  await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'invalid_limit' })
})
