import { expect, it } from 'vitest'
import { createLimiter, fixedWindow, type Limit, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing.ts'
import { useRedis } from '../support/use-redis.ts'

// State as format 1 was first released, byte for byte. Every later version reads it: in a rolling deploy old
// and new share a Redis. Where a change makes one of these fail, it needs a format of its own.

const START_MS = 1_700_000_000_000

/** One unit at the start, two a second later, one more a second after that. */
const WINDOW_LOG =
  '0100000036ee80018bd02a1220000000000000000000000000000004000000000000000000000004018bcfe56fd0000000000002' +
  '000000000001018bcfe56800000000000001018bcfe56800000000000003018bcfe56be8000000000000000000000000000000000000000000000000'

/** Four units at the start, leased for a minute. */
const LEASED_LOG =
  '0100000037d8e0018bd02b371800000000ea60018bcfe65260000000000000000000000000000004018bcfe5680000000000000000' +
  '0000000000000000000000'

/** Four units in the day in which the start is. */
const FIXED_WINDOW = '01018bcb20b400000000000004'

const { redis } = await useRedis()

const clock = new ManualClock(START_MS)
const limiterOf = (...limits: Limit[]) =>
  createLimiter({
    name: 'api',
    limits,
    store: redisStore(redis, { clock: clock.now }),
    timeoutMs: 30_000,
  })

const put = (key: string, hex: string) => redis.set(key, Buffer.from(hex, 'hex'), 'PX', 60_000)

it('a window log', async () => {
  await put('slidegate:{110}:api:u:w1', WINDOW_LOG)
  clock.set(START_MS + 2000)
  const limiter = limiterOf(slidingWindow({ limit: 9, window: '1h' }))
  const waits = await Promise.all([6, 7, 8, 9].map((cost) => limiter.peek('u', { cost })))
  expect(waits.map(({ remaining, retryAfterMs }) => [remaining, retryAfterMs])).toEqual([
    [5, 3_598_000],
    [5, 3_599_000],
    [5, 3_599_000],
    [5, 3_600_000],
  ])
  expect((await limiter.consume('u', { cost: 5 })).remaining).toBe(0)
})

it('a window log with a lease', async () => {
  await put('slidegate:{118}:api:leased:w1', LEASED_LOG)
  clock.set(START_MS)
  const limiter = limiterOf(slidingWindow({ limit: 9, window: '1h' }))
  const { remaining, resetAfterMs } = await limiter.peek('leased')
  expect([remaining, resetAfterMs]).toEqual([5, 3_660_000])
})

it('a fixed window', async () => {
  await put('slidegate:{110}:api:u:f86400000', FIXED_WINDOW)
  clock.set(START_MS + 2000)
  const limiter = limiterOf(fixedWindow({ limit: 9, window: '1d' }))
  expect((await limiter.peek('u')).remaining).toBe(5)
  expect((await limiter.consume('u', { cost: 6 })).retryAfterMs).toBe(
    86_400_000 - ((START_MS + 2000) % 86_400_000),
  )
})
