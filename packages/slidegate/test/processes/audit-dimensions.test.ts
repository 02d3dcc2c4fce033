// tier: system
import { Cluster } from 'ioredis'
import { expect, it } from 'vitest'
import { createLimiter, slidingWindow } from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { until } from '../support/until.ts'
import { audit, type Order, type Report } from './audit.ts'
import { fullestWindow } from './fullest-window.ts'

// Requests that count for three keys at a time, under real concurrency and the real clock: every key is held to its limits,
// and what one key denies the others are not charged.

const PROCESSES = 4
const WINDOW_MS = 1000

/** Admits all, and counts what has been charged since the beginning. */
const TOTAL = { limit: 65_536, window: 3_600_000, name: 'total' }

const DIMENSIONS = {
  user: { keys: 8, limits: [{ limit: 25, window: WINDOW_MS }, TOTAL] },
  ip: { keys: 4, limits: [{ limit: 70, window: WINDOW_MS }, TOTAL] },
  endpoint: { keys: 2, limits: [{ limit: 120, window: WINDOW_MS }, TOTAL] },
} as const

const order = { limits: [], dimensions: DIMENSIONS, keys: 1, costs: 1, durationMs: 2500 } as const

/** What each key has admitted, and the limit that it is held to. */
function* admittedBy({ admissions }: Report) {
  for (const [name, { keys, limits }] of Object.entries(DIMENSIONS)) {
    for (let i = 0; i < keys; i++) {
      const key = `${name}${i}`
      const ofKey = admissions.flatMap(({ charges, cost }) => {
        const { key: charged, atMs } = charges![name]!
        return charged === key ? [{ atMs, cost }] : []
      })
      yield { name, key, ofKey, limit: limits[0].limit }
    }
  }
}

async function expectHeld(report: Report, client: RedisClient): Promise<void> {
  const dimension = (limit: number) => [slidingWindow({ limit, window: WINDOW_MS }), slidingWindow(TOTAL)]
  const auditor = createLimiter({
    name: 'audit',
    dimensions: { user: dimension(25), ip: dimension(70), endpoint: dimension(120) },
    store: redisStore(client),
    timeoutMs: 60_000,
  })
  expect(report.denied).toBeGreaterThan(report.admissions.length / 10)
  for (const { name, key, ofKey, limit } of admittedBy(report)) {
    const fullest = fullestWindow(ofKey, WINDOW_MS)
    expect(fullest).toBeLessThanOrEqual(limit)
    // Users are what there is least of, and those that are asked for most are used up in any case.
    if (name === 'user' || key.endsWith('0')) expect(fullest).toBeGreaterThanOrEqual(0.9 * limit)
    await until(`what ${key} has denied was returned`, async () => {
      const keys = { user: null, ip: null, endpoint: null, [name]: key }
      const { limits } = await auditor.peek(keys)
      const total = limits.find((limit) => limit.name.endsWith('.total'))!
      return total.limit - total.remaining === ofKey.length
    })
  }
  auditor.close()
}

it('four processes on a Cluster: the keys of every dimension are held, and denials charge none of them', async () => {
  const cluster = await startCluster({ masters: 3, replicas: 0 })
  const { port } = cluster.nodes[0]!
  const client = new Cluster([{ host: '127.0.0.1', port }])
  try {
    const report = await audit(Array<Order>(PROCESSES).fill({ ...order, port, isCluster: true }))
    await expectHeld(report, client)
  } finally {
    client.disconnect()
    await cluster.stop()
  }
})
