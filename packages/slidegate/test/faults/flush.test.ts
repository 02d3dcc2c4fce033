// tier: system
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLimiter, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { fullestWindow } from '../audit/fullest-window.ts'
import { until } from '../support/until.ts'
import { useRedis } from '../support/use-redis.ts'
import { CLIENTS, type Connection } from './clients.ts'
import { expectExact, expectOrderly, Traffic } from './traffic.ts'

const TIMEOUT_MS = 30_000

const { server, redis: admin } = await useRedis()

describe.each(Object.entries(CLIENTS))('%s', (name, connect) => {
  let connection: Connection
  beforeEach(async () => {
    connection = await connect(server.port)
  })
  afterEach(() => connection.end())

  const limiterOf = (limit: number, window: string) =>
    createLimiter({
      name: name.replace(' ', '-'),
      limits: [slidingWindow({ limit, window })],
      store: redisStore(connection.client),
      timeoutMs: TIMEOUT_MS,
    })

  it('SCRIPT FLUSH under traffic is not felt: none is refused, none counted twice', async () => {
    const limiter = limiterOf(1_000_000, '1h')
    const traffic = new Traffic(limiter, ['a', 'b'], 50)
    for (let i = 0; i < 100 || traffic.decisions.length <= 500; i++) {
      await admin.script('FLUSH')
      await delay(5)
    }
    await traffic.stop()
    expectOrderly(traffic, TIMEOUT_MS)
    expect(traffic.complaints).toEqual([])
    const left = await Promise.all(['a', 'b'].map(async (key) => (await limiter.peek(key)).remaining))
    expect(left[0]! + left[1]!).toBe(2_000_000 - traffic.admitted.length)
    expect(traffic.admitted.length).toBeGreaterThan(500)
    limiter.close()
  })

  it('FLUSHALL under traffic resets limits, and that is all', async () => {
    const limiter = limiterOf(40, '1s')
    const traffic = new Traffic(limiter, ['c', 'd'], 50)
    let flushedMs = 0
    for (let i = 0; i < 20; i++) {
      await delay(20)
      await admin.flushall()
      const [seconds, micros] = await admin.time()
      flushedMs = Number(seconds) * 1000 + Math.ceil(Number(micros) / 1000)
    }
    await delay(1200)
    const since = () => traffic.admitted.filter(({ atMs }) => atMs > flushedMs)
    await until('both are at their limits again', async () => fullestWindow(since(), 1000) >= 70)
    await traffic.stop()
    expectOrderly(traffic, TIMEOUT_MS)
    expect(traffic.complaints).toEqual([])
    expect(fullestWindow(since(), 1000)).toBeLessThanOrEqual(80)
    await expectExact(limiter, 'new')
    limiter.close()
  })
})
