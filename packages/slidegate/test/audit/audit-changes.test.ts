// tier: system
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createLimiter, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { until } from '../support/until.ts'
import { useRedis } from '../support/use-redis.ts'
import { audit, ENOUGH, LIMITS, type LimitOrder, type Order } from './audit.ts'

// Numbers of limits that change under four processes which ask as fast as they can, by the real clock, while the server
// stands still at each change: whoever is admitted has room beside all that was admitted before it, under whatever limit.

const PROCESSES = 4
const WINDOW_MS = 500
const CHANGES = [150, 30, 90, 60, 120, 45]

const { server, redis } = await useRedis()

it('four processes, limits that change, a server that stops at each change: never above the limit', async () => {
  const limitsOf = (limit: number): LimitOrder[] => [
    { limit, window: WINDOW_MS, name: 'second' },
    // Never denies, and has to follow all the same.
    { kind: 'tokenBucket', capacity: 100 * limit, refill: 10 * limit, interval: '1s', name: 'bucket' },
  ]
  const order: Order = {
    port: server.port,
    limits: limitsOf(60),
    isReloading: true,
    keys: 1,
    costs: 2,
    durationMs: 'until told',
  }
  const auditing = audit(Array<Order>(PROCESSES).fill(order))
  const limiter = createLimiter({
    name: 'audit',
    limits: [slidingWindow({ limit: 60, window: WINDOW_MS })],
    store: redisStore(redis),
    timeoutMs: 60_000,
  })
  await until('the workers ask', async () => (await limiter.peek('key0')).remaining === 0)
  for (const limit of CHANGES) {
    await redis.set(LIMITS, JSON.stringify(limitsOf(limit)))
    process.kill(server.pid, 'SIGSTOP')
    await delay(400 + 200 * Math.random())
    process.kill(server.pid, 'SIGCONT')
    await delay(WINDOW_MS + 300)
  }
  await redis.set(ENOUGH, '')
  const { admissions, denied } = await auditing
  limiter.close()

  // Of one instant, those under a lower limit had less beside them.
  const inOrder = admissions.toSorted((a, b) => a.atMs - b.atMs || a.limit! - b.limit!)
  const fullest = new Map<number, number>()
  for (const [i, { atMs, limit }] of inOrder.entries()) {
    let units = 0
    for (let j = i; j >= 0 && inOrder[j]!.atMs > atMs - WINDOW_MS; j--) units += inOrder[j]!.cost
    fullest.set(limit!, Math.max(fullest.get(limit!) ?? 0, units))
  }
  for (const [limit, units] of fullest) {
    expect(units).toBeLessThanOrEqual(limit)
    expect(units).toBeGreaterThanOrEqual(0.8 * limit)
  }
  expect([...fullest.keys()].sort((a, b) => a - b)).toEqual([30, 45, 60, 90, 120, 150])
  expect(denied).toBeGreaterThan(admissions.length / 10)
})
