// tier: integration
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import {
  createLimiter,
  fixedWindow,
  type Limiter,
  StoreUnavailableError,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

let server: RedisServer
let redis: Redis
let limiter: Limiter
/** A breaker that never opens. */
const breaker = { minRequests: 2 ** 20 }
beforeAll(async () => {
  server = await startRedis(['--maxmemory-policy', 'noeviction'])
  redis = new Redis(server.port, { autoResendUnfulfilledCommands: false })
})
afterAll(async () => {
  await redis.quit()
  await server.stop()
})
beforeEach(async () => {
  await redis.config('SET', 'maxmemory', '0')
  await redis.flushall()
  limiter = createLimiter({
    limits: [slidingWindow({ limit: 9, window: '1m' }), fixedWindow({ limit: 9, window: '1h' })],
    store: redisStore(redis),
    timeoutMs: 30_000,
    breaker,
  })
})

/** Returns everything that is stored. */
async function contents(): Promise<Record<string, string>> {
  const keys = (await redis.keys('*')).sort()
  const values = await Promise.all(keys.map((key) => redis.getBuffer(key)))
  return Object.fromEntries(keys.map((key, i) => [key, values[i]!.toString('hex')]))
}

const fill = () => redis.config('SET', 'maxmemory', '1')

it('a Redis without free memory is unavailable, and no write is partial', async () => {
  await limiter.consume('known')
  const before = await contents()
  await fill()
  for (const key of ['known', 'new']) {
    const error = await limiter.consume(key).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ reason: 'error', message: expect.stringContaining('OOM') })
    await expect(limiter.charge(key, 1)).rejects.toBeInstanceOf(StoreUnavailableError)
  }
  expect(await contents()).toEqual(before)
})

it('a Redis without free memory still answers requests that need none', async () => {
  await limiter.charge('full', 9)
  await fill()
  expect((await limiter.consume('full')).allowed).toBe(false)
  expect((await limiter.peek('new')).allowed).toBe(true)
  await limiter.reset('full')
  expect(await redis.dbsize()).toBe(0)
})

it('once memory is free again, requests are decided with the stored usage', async () => {
  await limiter.consume('known')
  await fill()
  await expect(limiter.consume('known')).rejects.toBeInstanceOf(StoreUnavailableError)
  await redis.config('SET', 'maxmemory', '0')
  expect((await limiter.consume('known')).remaining).toBe(7)
})

// Redis checks memory only at a script's first write. A script that starts with a deletion would pass the check, and
// could allocate memory as long as keys are reset.
it('requests in a batch that starts with a deletion are rejected too', async () => {
  await limiter.consume('known')
  await fill()
  const [, ...consumed] = await Promise.allSettled([
    limiter.reset('known'),
    limiter.consume('a'),
    limiter.consume('b'),
  ])
  expect(consumed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await redis.keys('*:a:*')).toEqual([])
})

// A ring that grows is removed and rewritten, so it must be rejected first.
it("a log that must grow is rejected and isn't changed", async () => {
  const clock = new ManualClock()
  const limits = [slidingWindow({ limit: 5000, window: '1h' })]
  const store = redisStore(redis, { clock: clock.now })
  const growing = createLimiter({ limits, store, timeoutMs: 30_000, breaker })
  for (let i = 0; i < 540; i++) {
    if (i > 500) {
      const before = await contents()
      await fill()
      await expect(growing.consume('k')).rejects.toBeInstanceOf(StoreUnavailableError)
      expect(await contents()).toEqual(before)
      await redis.config('SET', 'maxmemory', '0')
    }
    await growing.consume('k')
    clock.advance(1)
  }
  expect((await growing.peek('k')).remaining).toBe(5000 - 540)
})
