// tier: integration
import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  type Limit,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { LocalShare } from '../../src/resilience/fallback.ts'
import type { ConsumeOp } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { FAILURES, type FailingStore, failing } from './failing-store.ts'

const UNBREAKABLE = { minRequests: 2 ** 20 }

function limiterOf(
  limits: readonly Limit[],
  options: Partial<LimiterOptions> = {},
): { readonly limiter: Limiter; readonly store: FailingStore } {
  const store = failing(memoryStore(), FAILURES.rejects)
  const onStoreError = 'local'
  const limiter = createLimiter({
    ...{ limits, store, onStoreError, breaker: UNBREAKABLE, logger: false },
    ...options,
  })
  return { limiter, store }
}

/** Counts the requests that are allowed in a row. */
async function allowedOf(limiter: Limiter, key: string): Promise<number> {
  for (let allowed = 0; ; allowed++) if (!(await limiter.consume(key)).allowed) return allowed
}

const hourly = (limit: number, name = 'hourly', shadow = false) =>
  slidingWindow({ limit, window: '1h', name, shadow })

describe('the local share', () => {
  it.each([
    [100, 10, 4, 25],
    [3, 1, 10, 1],
    [10, 10, 2 ** 20, 1],
  ])(
    'refills a bucket of %i tokens and %i per second at a rate divided by %i processes',
    async (capacity, refill, instances, share) => {
      const limits = [tokenBucket({ capacity, refill, interval: '1s' })]
      const clock = new ManualClock()
      const processes = new LocalShare(instances, () => memoryStore({ clock: clock.now }))
      const set = limitSet('buckets', limits)
      const ask = () => {
        const op: ConsumeOp = { type: 'consume', parts: [{ key: 'k', set }], cost: 1, count: 1, leaseMs: 0 }
        return processes.decide(op, 100)
      }
      for (let i = 0; i < share; i++) expect(ask().admitted).toBe(1)
      // All processes together refill no faster than one store.
      const everyMs = Math.ceil((1000 * instances) / refill)
      for (let i = 0; i < 3; i++) {
        expect([ask().admitted, ask().limits[1]]).toEqual([0, everyMs])
        clock.advance(everyMs - 1)
        expect(ask().admitted).toBe(0)
        clock.advance(1)
        expect(ask().admitted).toBe(1)
      }
    },
  )

  it.each([
    [10, 1, 10],
    [10, 2, 5],
    [10, 3, 3],
    [10, 10, 1],
    [10, 11, 1],
    [1, 1000, 1],
    [100, 2 ** 20, 1],
  ])('divides a limit of %i among %i processes, which gives %i', async (limit, instances, share) => {
    const { limiter } = limiterOf([hourly(limit)], { instances })
    const first = await limiter.consume('k')
    expect(first).toMatchObject({ allowed: true, source: 'fallback', remaining: share - 1 })
    expect(first.limits[0]).toMatchObject({ limit, remaining: share - 1 })
    expect(await allowedOf(limiter, 'k')).toBe(share - 1)
    const denied = await limiter.consume('k')
    expect(denied).toMatchObject({ source: 'fallback', remaining: 0, deniedBy: ['hourly'] })
    expect(denied.retryAfterMs).toBeGreaterThan(3_590_000)
    expect(denied.retryAfterMs).toBeLessThanOrEqual(3_600_000)
    expect(await allowedOf(limiter, 'another')).toBe(share)
  })

  it('defaults to the whole limit', async () => {
    const { limiter } = limiterOf([hourly(7)])
    expect(await allowedOf(limiter, 'k')).toBe(7)
  })

  it('divides each limit separately, and the lowest remaining counts', async () => {
    const limits = [
      slidingWindow({ limit: 8, window: '1m', name: 'burst' }),
      slidingWindow({ limit: 2, window: '1m', name: 'tried', shadow: true }),
      hourly(6),
    ]
    const { limiter } = limiterOf(limits, { instances: 2 })
    const { remaining, limits: first } = await limiter.consume('k')
    expect(remaining).toBe(2)
    expect(first.map((limit) => limit.remaining)).toEqual([3, 0, 2])
    await limiter.consume('k')
    const third = await limiter.consume('k')
    expect(third.limits.map(({ allowed }) => allowed)).toEqual([true, false, true])
    const denied = await limiter.consume('k')
    expect(denied).toMatchObject({ allowed: false, deniedBy: ['hourly'] })
    expect(denied.limits.map(({ remaining: left }) => left)).toEqual([1, 0, 0])
    expect(denied.limits.map(({ limit }) => limit)).toEqual([8, 2, 6])
  })

  it('recovers as time passes', () => {
    const clock = new ManualClock()
    const share = new LocalShare(2, () => memoryStore({ clock: clock.now }))
    const set = limitSet('api', [slidingWindow({ limit: 4, window: '1m' })])
    const op: ConsumeOp = { type: 'consume', parts: [{ key: 'k', set }], cost: 1, count: 1, leaseMs: 0 }
    const ask = () => share.decide(op, 100).admitted
    expect([ask(), ask(), ask()]).toEqual([1, 1, 0])
    clock.advance(59_999)
    expect(ask()).toBe(0)
    clock.advance(1)
    expect([ask(), ask(), ask()]).toEqual([1, 1, 0])
  })
})

describe('a request under a local share', () => {
  it('waits for the next store call if its cost is over the share but within the limit', async () => {
    const { limiter } = limiterOf([hourly(10)], { instances: 4 })
    for (const cost of [3, 10]) {
      const decision = await limiter.consume('k', { cost })
      expect(decision).toMatchObject({
        allowed: false,
        deniedBy: ['hourly'],
        remaining: 2,
        retryAfterMs: 100,
      })
      expect(decision.limits[0]).toMatchObject({ allowed: false, retryAfterMs: 100 })
    }
    expect(await limiter.consume('k', { cost: 2 })).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('gets denied permanently if its cost is over the limit', async () => {
    const { limiter } = limiterOf([hourly(10)], { instances: 4 })
    const decision = await limiter.consume('k', { cost: 11 })
    expect(decision).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, remaining: 2 })
  })
})

describe('local state', () => {
  it("stays for the next outage, and isn't sent to the store", async () => {
    const { limiter, store } = limiterOf([hourly(4)])
    for (let i = 0; i < 3; i++) await limiter.consume('k')
    store.failure = undefined
    expect(await limiter.consume('k')).toMatchObject({ source: 'store', remaining: 3 })
    store.failure = FAILURES.throws
    expect(await limiter.consume('k')).toMatchObject({ source: 'fallback', remaining: 0 })
    expect(await limiter.consume('k')).toMatchObject({ source: 'fallback', allowed: false })
  })

  it('receives refunds of requests charged to it, whether the store is up or down', async () => {
    const { limiter, store } = limiterOf([hourly(4)])
    const decisions = [await limiter.consume('k'), await limiter.consume('k')]
    expect(await limiter.refund('k', decisions[0]!)).toBe(1)
    expect(await limiter.refund('k', decisions[0]!)).toBe(0)
    expect((await limiter.peek('k')).remaining).toBe(3)
    store.failure = undefined
    await limiter.consume('k')
    const callsBefore = store.asked.length
    expect(await limiter.refund('k', decisions[1]!)).toBe(1)
    expect(store.asked.length).toBe(callsBefore)
    expect((await limiter.peek('k')).remaining).toBe(3)
    store.failure = FAILURES.rejects
    expect((await limiter.peek('k')).remaining).toBe(4)
  })

  it("doesn't receive refunds of requests that the store charged", async () => {
    const { limiter, store } = limiterOf([hourly(4)])
    await limiter.consume('k')
    store.failure = undefined
    const decision = await limiter.consume('k')
    expect(await limiter.refund('k', decision)).toBe(1)
    expect((await limiter.peek('k')).remaining).toBe(4)
    store.failure = FAILURES.rejects
    expect((await limiter.peek('k')).remaining).toBe(3)
  })

  it('receives no refund for a shadow limit that had no room', async () => {
    const { limiter } = limiterOf([hourly(8), hourly(2, 'tried', true)], { instances: 2 })
    const first = await limiter.consume('k')
    const second = await limiter.consume('k')
    expect(second.limits.map(({ allowed }) => allowed)).toEqual([true, false])
    await limiter.refund('k', second)
    expect((await limiter.peek('k')).limits.map(({ remaining }) => remaining)).toEqual([3, 0])
    await limiter.refund('k', first)
    expect((await limiter.peek('k')).limits.map(({ remaining }) => remaining)).toEqual([4, 1])
  })

  it.each([true, false])("doesn't survive a reset, store up: %s", async (isUp) => {
    const { limiter, store } = limiterOf([hourly(4)])
    await limiter.consume('k')
    await limiter.consume('other')
    if (isUp) store.failure = undefined
    const reset = limiter.reset('k')
    if (isUp) await reset
    else await expect(reset).rejects.toMatchObject({ reason: 'error' })
    store.failure = FAILURES.rejects
    expect((await limiter.peek('k')).remaining).toBe(4)
    expect((await limiter.peek('other')).remaining).toBe(3)
  })

  it('counts a charge, even though the charge fails', async () => {
    const { limiter, store } = limiterOf([hourly(10)], { instances: 2 })
    await expect(limiter.charge('k', 3)).rejects.toMatchObject({ reason: 'error' })
    expect((await limiter.peek('k')).remaining).toBe(2)
    await expect(limiter.charge('k', 100)).rejects.toMatchObject({ reason: 'error' })
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, remaining: 0 })
    store.failure = undefined
    expect((await limiter.peek('k')).remaining).toBe(10)
  })
})

describe('with 100,000 keys', () => {
  it('at their limits, the limiter denies a new key, and a charge fails within its deadline', async () => {
    const store = failing(memoryStore(), FAILURES["doesn't answer"])
    const { limiter } = limiterOf([hourly(1)], { store, timeoutMs: 20, breaker: { minRequests: 1 } })
    await Promise.all(Array.from({ length: 100_000 }, (_, i) => limiter.consume(`k${i}`)))
    const another = await limiter.consume('another')
    expect(another).toMatchObject({ allowed: false, source: 'failClosed', deniedBy: [] })
    expect(another.retryAfterMs).toBeGreaterThanOrEqual(100)
    expect(another.retryAfterMs).toBeLessThanOrEqual(500)
    // The deadline ends these requests, not the breaker, so no caller on the stack could catch an error.
    const patient = limiterOf([hourly(1)], { store, timeoutMs: 20, breaker: UNBREAKABLE }).limiter
    await Promise.all(Array.from({ length: 100_000 }, (_, i) => patient.consume(`k${i}`)))
    const both = await Promise.allSettled([patient.charge('another', 1), patient.consume('k1')])
    expect(both).toMatchObject([{ reason: { reason: 'timeout' } }, { value: { source: 'fallback' } }])
  })
})
