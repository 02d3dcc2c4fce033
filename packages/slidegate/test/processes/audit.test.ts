// tier: system
import { beforeEach, expect, it } from 'vitest'
import { createLimiter, type Limiter, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { audit, type Order } from './audit.ts'
import { type Admission, fullestWindow, medianMsFor } from './fullest-window.ts'

const PROCESSES = 4

const { server, redis } = await useRedis()
beforeEach(() => redis.flushall())

/** Checks that the fullest window is at most at its limit, and close to it. */
function expectHeld(admissions: readonly Admission[], limit: number, windowMs: number): void {
  const fullest = fullestWindow(admissions, windowMs)
  expect(fullest).toBeLessThanOrEqual(limit)
  expect(fullest).toBeGreaterThanOrEqual(0.97 * limit)
}

/** Creates a limiter that reads the logs of the workers, with its own limit. */
function auditor(windowMs: number): Limiter {
  return createLimiter({
    name: 'audit',
    limits: [slidingWindow({ limit: 65_536, window: windowMs, precision: 1 })],
    store: redisStore(redis),
    timeoutMs: 60_000,
  })
}

const unitsOf = (admissions: readonly Admission[]) => admissions.reduce((sum, { cost }) => sum + cost, 0)

it('four processes on one key fill every window almost to its limit, and never more', async () => {
  const limit = 400
  const window = 1000
  const order = { port: server.port, limits: [{ limit, window }], keys: 1, costs: 1, durationMs: 2500 }
  const { admissions, denied } = await audit(Array<Order>(PROCESSES).fill(order))
  expectHeld(admissions, limit, window)
  // Checks more than the fullest window: all windows are used up while there is demand.
  expect(medianMsFor(admissions, limit)).toBeLessThanOrEqual(window / 0.9)
  expect(denied).toBeGreaterThan(admissions.length / 10)
  const { remaining, atMs } = await auditor(window).peek('key0')
  expect(65_536 - remaining).toBe(admissions.filter((admission) => admission.atMs > atMs - window).length)
})

it('four processes on eight keys with three limits each exceed none, and denials charge nothing', async () => {
  const limits = [
    { limit: 20, window: 200 },
    { limit: 60, window: 1000 },
    { limit: 150, window: 3_600_000 },
  ]
  const order = { port: server.port, limits, keys: 8, costs: 3, durationMs: 2500 }
  const { admissions, denied } = await audit(Array<Order>(PROCESSES).fill(order))
  expect(denied).toBeGreaterThan(admissions.length / 10)
  for (let i = 0; i < 8; i++) {
    const ofKey = admissions.filter(({ key }) => key === `key${i}`)
    for (const { limit, window } of limits) expectHeld(ofKey, limit, window)
    const { remaining } = await auditor(3_600_000).peek(`key${i}`)
    expect(65_536 - remaining).toBe(unitsOf(ofKey))
  }
})

it('processes with and without leases never exceed the limit, by the times when units were spent', async () => {
  const limit = 2000
  const window = 1000
  const leaseMs = 100
  const order = { port: server.port, limits: [{ limit, window }], keys: 1, costs: 1, durationMs: 2500 }
  const leasing = { ...order, leaseMs }
  // Some workers pause now and then, so that their leases are spent at the last moment or expire.
  const [resting, longer] = [95, 150].map((pauseMs) => ({ ...leasing, pauseMs }))
  const { admissions } = await audit([order, leasing, resting!, longer!])
  expectHeld(admissions, limit, window)
  // With leases, spent units become free one lease later.
  expect(medianMsFor(admissions, limit)).toBeLessThanOrEqual((window + leaseMs) / 0.85)
  const leased = admissions.filter(({ isLeased }) => isLeased).length
  expect(leased).toBeGreaterThan(limit / 20)
  expect(admissions.length - leased).toBeGreaterThan(limit / 20)
  // Unspent leases were returned at the end.
  const { remaining, atMs } = await auditor(window).peek('key0')
  const used = 65_536 - remaining
  expect(used).toBeGreaterThanOrEqual(admissions.filter((each) => each.atMs > atMs - window).length)
  expect(used).toBeLessThanOrEqual(admissions.filter((each) => each.atMs > atMs - window - leaseMs).length)
})
