// tier: integration

import { expect, it } from 'vitest'
import { createLimiter, type Limit, slidingCounter, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'

// Tests state in format 1, byte for byte. Every released version must read it, because old and new versions share a Redis
// during a rolling deploy. After the first release, a change that breaks one of these tests needs a new format.

const START_MS = 1_700_000_000_000

/** One unit in each of 16 seconds. Records are in the back, the front and the ring. */
const LONG_LOG =
  '01018bcfe56800000200000036ee80000000000000000000000010018bcfe5a29804030000000200000000000d018bcfe596' +
  'e000000000000e018bcfe59ac800000000000f018bcfe59eb000000000000000000000000000000000000000000000000000' +
  '0000000001018bcfe56800000000000002018bcfe56be8000000000003018bcfe56fd0000000000004018bcfe573b8000000' +
  '000005018bcfe577a0000000000006018bcfe57b88000000000007018bcfe57f70000000000008018bcfe583580000000000' +
  '09018bcfe5874000000000000a018bcfe58b2800000000000b018bcfe58f1000000000000c018bcfe592f8'

/** Four units at the start, leased for a minute. */
const LEASED_LOG =
  '01018bcfe56800000000000037d8e0000000000000000000000004018bcfe568001000000000000000000000000000000000' +
  '0000000000000000000000000000000000000000000000000000000000000000000000000000000000ea60018bcfe65260'

/** Four units in the current hour, five in the hour before. */
const SLIDING_COUNTER = '01018bcfd933000000000000000400000000000005018bcfae7980'

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

it('a window log with all its parts can be read', async () => {
  await put('slidegate:{0}:api:busy:w1', LONG_LOG)
  clock.set(START_MS + 15_000)
  const limiter = limiterOf(slidingWindow({ limit: 20, window: '1h' }))
  const waits = await Promise.all([5, 6, 10, 13, 18, 20].map((cost) => limiter.peek('busy', { cost })))
  expect(waits.map(({ retryAfterMs }) => retryAfterMs)).toEqual([
    3_585_000, 3_586_000, 3_590_000, 3_593_000, 3_598_000, 3_600_000,
  ])
  clock.set(START_MS + 3_600_000 + 5000)
  expect((await limiter.consume('busy', { cost: 10 })).remaining).toBe(0)
  expect((await limiter.consume('busy')).retryAfterMs).toBe(1000)
})

it('a window log with a lease can be read', async () => {
  await put('slidegate:{118}:api:leased:w1', LEASED_LOG)
  clock.set(START_MS)
  const limiter = limiterOf(slidingWindow({ limit: 9, window: '1h' }))
  const { remaining, resetAfterMs } = await limiter.peek('leased')
  expect([remaining, resetAfterMs]).toEqual([5, 3_660_000])
})

it('a sliding counter can be read', async () => {
  await put('slidegate:{110}:api:u:c3600000', SLIDING_COUNTER)
  clock.set(START_MS)
  const limiter = limiterOf(slidingCounter({ limit: 9, window: '1h' }))
  // 800 s of the hour have passed, so 7/9 of the 5 units count, rounded up.
  const { remaining, retryAfterMs, resetAfterMs } = await limiter.consume('u', { cost: 2 })
  expect([remaining, retryAfterMs, resetAfterMs]).toEqual([1, 640_000, 6_400_000])
  expect((await limiter.consume('u')).remaining).toBe(0)
})

it('a stream can be read and appended to', async () => {
  const key = 'slidegate:{110}:api:u:x60000'
  await redis.xadd(key, `${START_MS - 60_000}-0`, 'id', 'gone', 'cost', '5', 'total', '5')
  await redis.xadd(key, `${START_MS}-0`, 'id', 'a', 'cost', '3', 'total', '8')
  await redis.xadd(key, `${START_MS}-1`, 'id', 'b', 'cost', '1', 'total', '9')
  await redis.xadd(key, `${START_MS + 1000}-0`, 'id', 'c', 'cost', '2', 'total', '11')
  clock.set(START_MS + 2000)
  const limiter = limiterOf(slidingWindow({ limit: 9, window: '1m', log: 'stream' }))
  const waits = await Promise.all([3, 4, 7, 8].map((cost) => limiter.peek('u', { cost })))
  expect(waits.map(({ remaining, retryAfterMs }) => [remaining, retryAfterMs])).toEqual([
    [3, 0],
    [3, 58_000],
    [3, 58_000],
    [3, 59_000],
  ])
  expect((await limiter.consume('u', { cost: 3 })).remaining).toBe(0)
  const [id, fields] = (await redis.xrevrange(key, '+', '-', 'COUNT', 1))[0]!
  expect([id, ...fields]).toEqual([
    `${START_MS + 2000}-0`,
    'id',
    expect.stringMatching(/^[\w-]{12,}$/),
    'cost',
    '3',
    'total',
    '14',
  ])
})
