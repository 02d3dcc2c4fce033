// tier: system
import { beforeEach, expect, it } from 'vitest'
import { useRedis } from '../support/use-redis.ts'
import { audit, type LimitOrder, type Order, type Report } from './audit.ts'
import { fullestWindow, medianMsFor } from './fullest-window.ts'

// Each kind under real concurrency and the real clock: what is exact is never over and close to the limit, what is not
// keeps to the worst case that it states.

const PROCESSES = 4
const WINDOW_MS = 1000

const { server, redis } = await useRedis()
beforeEach(() => redis.flushall())

async function auditOf(limits: readonly LimitOrder[], more: Partial<Order> = {}): Promise<Report> {
  const order = { port: server.port, limits, keys: 1, costs: 1, durationMs: 2500, ...more }
  const report = await audit(Array<Order>(PROCESSES).fill(order))
  expect(report.denied).toBeGreaterThan(0)
  return report
}

it.each(['zset', 'stream'] as const)('a sliding window whose log is a %s is exact', async (log) => {
  const limit = 300
  const { admissions } = await auditOf([{ limit, window: WINDOW_MS, log }], { costs: 3 })
  const fullest = fullestWindow(admissions, WINDOW_MS)
  expect(fullest).toBeLessThanOrEqual(limit)
  expect(fullest).toBeGreaterThanOrEqual(0.97 * limit)
})

it('what is held at the same time is never more than the limit, and not much less', async () => {
  const limit = 12
  const { admissions } = await auditOf([{ kind: 'concurrency', limit, ttl: '10s' }], { holdMs: 5 })
  // The server's clock is the machine's: what was held from one instant of it to another.
  const changes = admissions.flatMap(({ atMs, releasedAtMs }) => [
    { atMs, by: 1 },
    { atMs: releasedAtMs!, by: -1 },
  ])
  changes.sort((a, b) => a.atMs - b.atMs || a.by - b.by)
  let held = 0
  let most = 0
  for (const { by } of changes) {
    held += by
    most = Math.max(most, held)
  }
  expect(most).toBeLessThanOrEqual(limit)
  expect(most).toBeGreaterThanOrEqual(limit - 1)
  expect(await redis.keys('*:audit:*')).toEqual([])
})

it('no window holds more different values than its limit', async () => {
  const limit = 40
  const window = 500
  const { admissions } = await auditOf([{ kind: 'distinct', limit, window }], { values: 2000 })
  const inOrder = admissions.sort((a, b) => a.atMs - b.atMs)
  let most = 0
  for (let first = 0; first < inOrder.length; first += 7) {
    const values = new Set<string>()
    for (let i = first; i < inOrder.length && inOrder[i]!.atMs < inOrder[first]!.atMs + window; i++) {
      values.add(inOrder[i]!.value!)
    }
    most = Math.max(most, values.size)
  }
  expect(most).toBeLessThanOrEqual(limit)
  expect(most).toBeGreaterThanOrEqual(0.9 * limit)
})

it('a token bucket admits its capacity and what it is refilled with, in any time', async () => {
  const [capacity, refill] = [100, 500]
  const { admissions } = await auditOf([{ kind: 'tokenBucket', capacity, refill, interval: '1s' }], {
    costs: 2,
  })
  for (const ms of [1, 10, 100, 1000, 2000]) {
    expect(fullestWindow(admissions, ms)).toBeLessThanOrEqual(capacity + Math.floor((ms * refill) / 1000))
  }
  // All that comes back is used up.
  expect(medianMsFor(admissions, refill / 2)).toBeLessThanOrEqual(500 / 0.8)
})

it('a sliding counter admits less than twice its limit', async () => {
  const limit = 100
  const { admissions } = await auditOf([{ kind: 'slidingCounter', limit, window: 400 }])
  expect(fullestWindow(admissions, 400)).toBeLessThanOrEqual(2 * limit - 1)
  expect(fullestWindow(admissions, 400)).toBeGreaterThanOrEqual(0.9 * limit)
})

it('three kinds in one limiter: each is held, and what one denies the others do not charge', async () => {
  const { admissions } = await auditOf(
    [
      { limit: 60, window: 200, log: 'zset' },
      { limit: 150, window: WINDOW_MS },
      { kind: 'tokenBucket', capacity: 450, refill: 1, interval: '1h' },
    ],
    { costs: 3, durationMs: 6000 },
  )
  expect(fullestWindow(admissions, 200)).toBeLessThanOrEqual(60)
  expect(fullestWindow(admissions, WINDOW_MS)).toBeLessThanOrEqual(150)
  // All that the bucket had was spent: nothing was charged to it for requests that others have denied.
  expect(admissions.reduce((sum, { cost }) => sum + cost, 0)).toBe(450)
})
