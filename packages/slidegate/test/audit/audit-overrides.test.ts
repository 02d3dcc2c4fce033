// tier: system
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createLimiter, slidingWindow, tokenBucket } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { until } from '../support/until.ts'
import { useRedis } from '../support/use-redis.ts'
import { audit, ENOUGH, type Order, type Report } from './audit.ts'

// Four processes ask as fast as they can while the override of their key changes, by the real clock. The server is stopped at
// each change, so that requests of all processes wait before and behind it. From the change on every decision is by the new
// numbers: each admission has room beside all before it.

const PROCESSES = 4
const CHANGES = [
  { limit: 150 },
  { limit: 30 },
  { limit: 60, window: 250 },
  { limit: 90, window: 1000 },
  { limit: 45 },
  'block',
  { limit: 120 },
] as const
const DECLARED = { limit: 60, windowMs: 500 }

const { server, redis } = await useRedis()

const limits = () => [
  slidingWindow({ limit: DECLARED.limit, window: DECLARED.windowMs, name: 'window' }),
  // Never denies, and changes all the same.
  tokenBucket({ capacity: 10_000, refill: 1000, interval: '1s', name: 'bucket' }),
]

/** The numbers in force from one time of the store's clock to another. */
interface Phase {
  readonly limit: number
  readonly windowMs: number
  readonly fromMs: number
  toMs: number
}

it('four processes, overrides that change, a server that stops at each change: never above the limit in force', async () => {
  const order: Order = {
    port: server.port,
    limits: [
      { limit: DECLARED.limit, window: DECLARED.windowMs, name: 'window' },
      { kind: 'tokenBucket', capacity: 10_000, refill: 1000, interval: '1s', name: 'bucket' },
    ],
    ...{ overrides: true, keys: 1, costs: 2, durationMs: 'until told' as const },
  }
  const auditing = audit(Array<Order>(PROCESSES).fill(order))
  const options = { name: 'audit', limits: limits(), overrides: true, timeoutMs: 60_000 }
  const limiter = createLimiter({ ...options, store: redisStore(redis) })
  const nowMs = async () => (await limiter.peek('key0')).atMs
  await until('the workers ask', async () => (await limiter.peek('key0')).remaining === 0)
  const phases: Phase[] = []
  for (const change of CHANGES) {
    const last = phases.at(-1)
    if (last !== undefined) last.toMs = Math.min(last.toMs, await nowMs())
    process.kill(server.pid, 'SIGSTOP')
    await delay(100)
    const setting =
      change === 'block'
        ? limiter.overrides.set('key0', 'block')
        : limiter.overrides.set('key0', { window: change, bucket: { capacity: 100 * change.limit } })
    await delay(100 + 200 * Math.random())
    process.kill(server.pid, 'SIGCONT')
    await setting
    const { limit, windowMs } = (await limiter.peek('key0')).limits[0]!
    const isBlocked = change === 'block'
    phases.push({
      limit: isBlocked ? 0 : limit,
      windowMs,
      fromMs: await nowMs(),
      toMs: Number.POSITIVE_INFINITY,
    })
    await delay(windowMs + 300)
    if (isBlocked) {
      phases.at(-1)!.toMs = await nowMs()
      await limiter.unblock('key0')
    }
  }
  await redis.set(ENOUGH, '')
  const { admissions, denied } = await auditing
  limiter.close()
  expectRoomForEach(admissions)
  expect(denied).toBeGreaterThan(admissions.length / 10)
  // In force from the change on, in every process.
  for (const { limit, windowMs, fromMs, toMs } of phases) {
    const made = admissions.filter(({ atMs }) => atMs > fromMs && atMs < toMs)
    expect([...new Set(made.map((each) => `${each.limit} per ${each.windowMs}`))]).toEqual(
      limit === 0 ? [] : [`${limit} per ${windowMs}`],
    )
  }
})

/** A charge counts for its window, or for a longer one set later. */
function expectRoomForEach(admissions: Report['admissions']): void {
  // Of one instant, those under a lower limit had less beside them.
  const inOrder = admissions.toSorted((a, b) => a.atMs - b.atMs || a.limit! - b.limit!)
  const fullest = new Map<number, number>()
  for (const [i, { atMs, limit, windowMs }] of inOrder.entries()) {
    let units = 0
    for (let j = i; j >= 0 && inOrder[j]!.atMs > atMs - windowMs!; j--) {
      const charge = inOrder[j]!
      if (charge.atMs > atMs - charge.windowMs!) units += charge.cost
    }
    fullest.set(limit!, Math.max(fullest.get(limit!) ?? 0, units))
  }
  for (const [limit, units] of fullest) {
    expect(units, `of ${limit}`).toBeLessThanOrEqual(limit)
    expect(units, `of ${limit}`).toBeGreaterThanOrEqual(0.8 * limit)
  }
}
