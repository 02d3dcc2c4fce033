// tier: system
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createLimiter, fixedWindow, type Limit, slidingWindow, tokenBucket } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { until } from '../support/until.ts'
import { useRedis } from '../support/use-redis.ts'
import { audit, ENOUGH, type Order } from './audit.ts'

// Limits that change under four processes which ask as fast as they can, by the real clock: once no process goes by former
// ones, whoever is admitted has room beside all that was admitted before it, under whatever limits that was; and a change
// is known soon.

const PROCESSES = 4
const WINDOW_MS = 1000
const MAX_STALE_MS = 100
/** A change is read twice as often as it has to be known; the machine may be late. */
const KNOWN_AFTER_MS = 2 * MAX_STALE_MS

const { server, redis } = await useRedis()

/** What is set in turn; nothing: what is declared holds again. */
const changes: readonly { readonly limit: number; readonly limits: readonly Limit[] | undefined }[] = [
  { limit: 150, limits: [slidingWindow({ limit: 150, window: WINDOW_MS, precision: 10 })] },
  { limit: 30, limits: [slidingWindow({ limit: 30, window: WINDOW_MS, log: 'zset' })] },
  { limit: 90, limits: [slidingWindow({ limit: 90, window: WINDOW_MS, precision: 50 })] },
  { limit: 60, limits: undefined },
]

it('four processes, a key whose limits change between logs of every form: nothing that was used is lost', async () => {
  const limiter = createLimiter({
    name: 'audit',
    limits: [slidingWindow({ limit: 60, window: WINDOW_MS })],
    overrides: { maxStaleMs: MAX_STALE_MS },
    store: redisStore(redis),
    timeoutMs: 60_000,
  })
  const order: Order = {
    port: server.port,
    limits: [{ limit: 60, window: WINDOW_MS }],
    maxStaleMs: MAX_STALE_MS,
    keys: 1,
    costs: 2,
    durationMs: 'until told',
  }
  const auditing = audit(Array<Order>(PROCESSES).fill(order))
  const knownFrom: { readonly atMs: number; readonly limit: number }[] = []
  await until('the workers ask', async () => (await limiter.peek('key0')).remaining === 0)
  for (const { limit, limits } of changes) {
    if (limits === undefined) await limiter.overrides.delete('key0')
    else await limiter.overrides.set('key0', limits)
    knownFrom.push({ atMs: Date.now() + KNOWN_AFTER_MS, limit })
    await delay(3000)
    await until('it is used up', async () => {
      const [now] = (await limiter.peek('key0')).limits
      return now!.limit === limit && now!.remaining <= 0.2 * limit
    })
  }
  await redis.set(ENOUGH, '')
  const { admissions, denied } = await auditing
  limiter.close()

  const inOrder = admissions.toSorted((a, b) => a.atMs - b.atMs)
  const fullest = new Map<number, number>()
  const isLate = inOrder.map(({ atMs, limit }) => {
    const known = knownFrom.findLast((each) => each.atMs <= atMs)
    return known !== undefined && known.limit !== limit
  })
  const late = isLate.filter((each) => each).length
  for (const [i, { atMs, limit }] of inOrder.entries()) {
    let units = 0
    let [isFormer, isShared] = [false, false]
    for (let j = i; j >= 0 && inOrder[j]!.atMs > atMs - WINDOW_MS; j--) {
      const other = inOrder[j]!
      units += other.cost
      if (other.limit !== limit) isFormer = true
      // A process that has not heard of the change was still admitting beside this one.
      if (isLate[j]! || (isFormer && (other.limit === limit || other.atMs === atMs))) isShared = true
    }
    if (isShared) continue
    // Of the same instant some come behind this one: they are counted when it is their turn.
    fullest.set(limit!, Math.max(fullest.get(limit!) ?? 0, units))
  }
  for (const [limit, units] of fullest) {
    expect(units).toBeLessThanOrEqual(limit)
    expect(units).toBeGreaterThanOrEqual(0.8 * limit)
  }
  expect([...fullest.keys()].sort((a, b) => a - b)).toEqual([30, 60, 90, 150])
  // On a machine that has more to do some come late; most would, if a change were not known within a second.
  expect(late).toBeLessThan(inOrder.length / 3)
  expect(denied).toBeGreaterThan(admissions.length / 10)
})

it('changes to kinds that keep no times lose nothing either', async () => {
  const sets = [
    [slidingWindow({ limit: 40, window: '1h' })],
    [tokenBucket({ capacity: 60, refill: 1, interval: '1h' })],
    [fixedWindow({ limit: 80, window: '7d' })],
    [slidingWindow({ limit: 100, window: '2h', log: 'stream' })],
  ]
  let inForce = 0
  const limiter = createLimiter({
    name: 'kinds',
    limits: () => sets[inForce]!,
    formerly: sets,
    store: redisStore(redis),
    timeoutMs: 60_000,
  })
  const admitted: number[] = []
  for (const [i] of sets.entries()) {
    inForce = i
    const decisions = await Promise.all(Array.from({ length: 120 }, () => limiter.consume('key')))
    admitted.push(decisions.filter(({ allowed }) => allowed).length)
  }
  // What was used before leaves room for twenty more at each.
  expect(admitted).toEqual([40, 20, 20, 20])
  limiter.close()
})
