// tier: integration
import { afterEach, expect, it } from 'vitest'
import { createLimiter, fixedWindow, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { useRedis } from '../support/use-redis.ts'

const { redis } = await useRedis()

const wallClock = Date.now
afterEach(() => {
  Date.now = wallClock
})

it('a call reads the time once, however many decisions it contains', async () => {
  const limits = [
    slidingWindow({ limit: 5, window: '1m' }),
    fixedWindow({ limit: 5, window: '1m', name: 'fixed' }),
  ]
  const limiter = createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 })
  await limiter.consume('warm')
  await redis.config('RESETSTAT')
  const decisions = await Promise.all(
    Array.from({ length: 100 }, (_, i) => limiter.consume(`k${i}`, { cost: 1 + (i % 2) })),
  )
  const calls = async (command: string) =>
    Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await redis.info('commandstats'))?.[1])
  expect(await calls('time')).toBe(await calls('evalsha'))
  expect(await calls('evalsha')).toBe(1)
  expect(new Set(decisions.map(({ atMs }) => atMs)).size).toBe(1)
})

it('times come from the clock of Redis, not of this process, unless a clock is passed', async () => {
  const limits = [slidingWindow({ limit: 5, window: '1m' })]
  const limiter = createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 })
  Date.now = () => 1_000_000_000_000
  const [seconds, micros] = await redis.time()
  const beforeMs = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
  const { atMs } = await limiter.consume('whose')
  expect(atMs).toBeGreaterThanOrEqual(beforeMs)
  expect(atMs).toBeLessThan(beforeMs + 30_000)
})

it("a memory store isn't affected when the machine's clock is set", async () => {
  const limiter = createLimiter({ limits: [slidingWindow({ limit: 2, window: '1h' })] })
  const { atMs } = limiter.consumeSync('k')
  expect(Math.abs(atMs - wallClock())).toBeLessThan(60_000)
  for (const shiftMs of [-7_200_000, 7_200_000]) {
    Date.now = () => wallClock() + shiftMs
    const decision = limiter.consumeSync('k')
    expect(decision.atMs - atMs).toBeGreaterThanOrEqual(0)
    expect(decision.atMs - atMs).toBeLessThan(30_000)
    expect(decision.remaining).toBe(0)
  }
  expect(limiter.consumeSync('k').allowed).toBe(false)
})
