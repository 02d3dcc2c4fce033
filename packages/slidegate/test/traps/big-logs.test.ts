import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLimiter, type Decision, memoryStore, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

const MAX_RECORDS = 65_536

let server: RedisServer
let redis: Redis
beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.port)
})
afterAll(async () => {
  await redis.quit()
  await server.stop()
})

const stores = {
  memory: (clock: ManualClock) => memoryStore({ clock: clock.now }),
  Redis: (clock: ManualClock) => redisStore(redis, { clock: clock.now }),
}

describe.each(Object.entries(stores))('%s', (_, store) => {
  it('a log at its bound is exact to the last record', async () => {
    const clock = new ManualClock()
    const startMs = clock.now()
    const limits = [slidingWindow({ limit: MAX_RECORDS, window: '10m' })]
    const limiter = createLimiter({ limits, store: store(clock), timeoutMs: 30_000 })
    // One unit in every millisecond; on Redis they travel together.
    const requests: Promise<Decision>[] = []
    for (let i = 0; i < MAX_RECORDS; i++) {
      clock.set(startMs + i)
      requests.push(limiter.consume('full'))
      if (requests.length === 4096) {
        for (const { allowed } of await Promise.all(requests.splice(0))) if (!allowed) expect(allowed).toBe(true)
      }
    }
    expect((await limiter.consume('full')).retryAfterMs).toBe(600_000 - MAX_RECORDS + 1)
    expect((await limiter.peek('full', { cost: 1000 })).retryAfterMs).toBe(600_000 - MAX_RECORDS + 1000)
    clock.set(startMs + 600_000 + 41_234)
    expect((await limiter.peek('full')).remaining).toBe(41_235)
    expect((await limiter.consume('full', { cost: 41_236 })).retryAfterMs).toBe(1)
    expect((await limiter.consume('full', { cost: 41_235 })).remaining).toBe(0)
    clock.advance(1)
    expect((await limiter.consume('full')).remaining).toBe(0)
  })

  it('beyond its bound the oldest records are merged: under, never over', async () => {
    const clock = new ManualClock()
    const startMs = clock.now()
    const limit = 200_000
    // Two configurations on one log can fill it further than either of them.
    const day = createLimiter({
      limits: [slidingWindow({ limit: 60_000, window: '24h' })],
      store: store(clock),
      timeoutMs: 30_000,
    })
    const short = createLimiter({
      limits: [slidingWindow({ limit, window: '65s' })],
      store: day === undefined ? undefined : store(clock),
      timeoutMs: 30_000,
    })
    expect(short.limits[0]!.precisionMs).toBe(1)
    await day.consume('both')
    const admitted = 3 * MAX_RECORDS
    const requests: Promise<Decision>[] = []
    for (let i = 1; i < admitted; i++) {
      clock.set(startMs + i)
      requests.push(short.consume('both'))
      if (requests.length === 4096) await Promise.all(requests.splice(0))
    }
    await Promise.all(requests)
    expect((await short.peek('both')).remaining).toBe(limit - 65_000)
    expect((await day.consume('both')).allowed).toBe(false)
  })
})
