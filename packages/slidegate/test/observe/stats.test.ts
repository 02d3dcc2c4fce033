// tier: integration
import { setImmediate as nextTurn } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { concurrency, createLimiter, memoryStore, slidingWindow, WaitError } from '../../src/index.ts'
import type { HistogramCounts } from '../../src/observe/metrics.ts'
import { type RedisStore, redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { FAILURES, failing } from '../resilience/failing-store.ts'
import { useRedis } from '../support/use-redis.ts'

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const total = ({ counts }: HistogramCounts) => counts.reduce((sum, count) => sum + count, 0)
const limits = [slidingWindow({ limit: 1000, window: '1h' })]
const settings = { limits, timeoutMs: 30_000, logger: false } as const

describe('the Redis store', () => {
  /** Creates a limiter whose store has already sent its first call. */
  async function ready(store: RedisStore): Promise<ReturnType<typeof createLimiter>> {
    const limiter = createLimiter({ ...settings, store })
    await limiter.consume('first')
    return limiter
  }

  it('counts calls, their requests and ops, and their durations', async () => {
    const store = redisStore(redis)
    expect(store.stats()).toMatchObject({ calls: 0, failedCalls: 0, callMs: { sum: 0 } })
    const limiter = await ready(store)
    const before = store.stats()
    expect(before).toMatchObject({ calls: 1, failedCalls: 0, requestsPerCall: { sum: 1 } })
    const sinceMs = performance.now()
    // Equal requests of one key are one op.
    await Promise.all(Array.from({ length: 60 }, (_, i) => limiter.consume(`${i % 20}`)))
    const { calls, callMs, requestsPerCall, opsPerCall } = store.stats()
    expect(calls).toBe(2)
    expect(requestsPerCall).toMatchObject({ sum: 61, counts: [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0] })
    expect(opsPerCall).toMatchObject({ sum: 21, counts: [1, 0, 0, 0, 0, 1, 0, 0, 0] })
    expect(total(callMs)).toBe(2)
    expect(callMs.sum - before.callMs.sum).toBeGreaterThan(0)
    expect(callMs.sum - before.callMs.sum).toBeLessThanOrEqual(performance.now() - sinceMs)
  })

  it("counts each time that Redis didn't have the script", async () => {
    const store = redisStore(redis)
    await redis.script('FLUSH')
    const limiter = await ready(store)
    expect(store.stats().scriptLoads).toBe(1)
    await limiter.consume('k')
    expect(store.stats().scriptLoads).toBe(1)
    await redis.script('FLUSH')
    await limiter.consume('k')
    expect(store.stats()).toMatchObject({ scriptLoads: 2, calls: 3, failedCalls: 0 })
  })

  it('counts failed calls', async () => {
    let isFailing = false
    const store = redisStore({
      command: async ([name, ...words]) => {
        if (isFailing) throw new Error('ECONNRESET')
        return redis.call(name!, ...words)
      },
    })
    const limiter = await ready(store)
    isFailing = true
    await expect(limiter.consume('k')).rejects.toThrow('ECONNRESET')
    const { calls, failedCalls, callMs } = store.stats()
    expect([calls, failedCalls, total(callMs)]).toEqual([2, 1, 1])
  })

  it('sums up all buckets of a Cluster', async () => {
    const store = redisStore({
      command: async ([name, ...words]) => redis.call(name!, ...words),
      isCluster: true,
    })
    const limiter = await ready(store)
    await Promise.all(Array.from({ length: 200 }, (_, i) => limiter.consume(`${i}`)))
    const { calls, requestsPerCall, callMs } = store.stats()
    expect(calls).toBeGreaterThan(32)
    expect([requestsPerCall.sum, total(requestsPerCall), total(callMs)]).toEqual([201, calls, calls])
  })

  it('measures a timed-out call when its reply arrives', async () => {
    let answer = () => {}
    const answered = new Promise<void>((resolve) => {
      answer = resolve
    })
    const store = redisStore({
      command: async ([name, ...words]) => {
        await answered
        return redis.call(name!, ...words)
      },
    })
    const limiter = createLimiter({ ...settings, store, timeoutMs: 20 })
    await expect(limiter.consume('k')).rejects.toMatchObject({ reason: 'timeout' })
    expect(total(store.stats().callMs)).toBe(0)
    answer()
    await vi.waitFor(() => expect(total(store.stats().callMs)).toBeGreaterThan(0), { timeout: 10_000 })
    expect(store.stats().callMs.sum).toBeGreaterThanOrEqual(15)
  })
})

describe('a limiter', () => {
  it('reports while its store is down', async () => {
    const store = failing(memoryStore())
    const options = { onStoreError: 'deny', breaker: { minRequests: 3 } } as const
    const limiter = createLimiter({ ...settings, ...options, store })
    const states = [limiter.stats().isStoreDown]
    store.failure = FAILURES.rejects
    for (let i = 0; i < 3; i++) await limiter.consume('k')
    states.push(limiter.stats().isStoreDown)
    store.failure = undefined
    await vi.waitFor(async () => expect((await limiter.consume('k')).source).toBe('store'), {
      timeout: 10_000,
    })
    states.push(limiter.stats().isStoreDown)
    expect(states).toEqual([false, true, false])
    expect(limiter.stats().breakerOpened).toBe(1)
  })

  it('reports a Cluster as down until all of it is up', async () => {
    const store = failing(memoryStore())
    store.shardOf = ({ parts }) => Number(parts[0]!.key.at(-1))
    const options = { onStoreError: 'deny', breaker: { minRequests: 1, maxBackoffMs: 10 } } as const
    const limiter = createLimiter({ ...settings, ...options, store })
    const isUp = (key: string) =>
      vi.waitFor(async () => expect((await limiter.consume(key)).source).toBe('store'), { timeout: 10_000 })
    store.failure = FAILURES.rejects
    await limiter.consume('0')
    await limiter.consume('1')
    store.failure = undefined
    await isUp('0')
    expect(limiter.stats().isStoreDown).toBe(true)
    await isUp('1')
    expect(limiter.stats().isStoreDown).toBe(false)
  })

  it("counts steps of the store's clock", async () => {
    // With a manual clock, a pause of this process would count as a step.
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const clock = new ManualClock(Date.now())
    const limiter = createLimiter({ ...settings, store: redisStore(redis, { clock: clock.now }) })
    await limiter.consume('k')
    clock.advance(1)
    await limiter.consume('k')
    expect(limiter.stats().clockSteps).toBe(0)
    for (const stepMs of [60_000, -60_000]) {
      clock.advance(stepMs)
      await limiter.consume('k')
    }
    expect(limiter.stats().clockSteps).toBe(2)
  })

  it('counts waits: the durations of admitted ones and the reasons of failed ones', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const one = [slidingWindow({ limit: 1, window: '10s' })]
    const store = memoryStore({ clock: () => Date.now() })
    const limiter = createLimiter({ limits: one, maxWaiting: 2, store })
    const isRejected = async (wait: Promise<unknown>, reason: string) =>
      expect(await wait.catch((error) => error instanceof WaitError && error.reason)).toBe(reason)
    await limiter.wait('k')
    expect(total(limiter.stats().waits)).toBe(1)
    const before = limiter.stats().waits.sum
    const served = limiter.wait('k')
    const abort = new AbortController()
    const aborted = limiter.wait('k', { signal: abort.signal })
    await isRejected(limiter.wait('k'), 'full')
    abort.abort()
    await isRejected(aborted, 'aborted')
    await isRejected(limiter.wait('k', { signal: abort.signal }), 'aborted')
    await isRejected(limiter.wait('k', { maxWaitMs: 0 }), 'timeout')
    await isRejected(limiter.wait('other', { cost: 2 }), 'impossible')
    // Waits for the window plus a grain.
    await vi.advanceTimersByTimeAsync(10_100)
    await served
    const { waits, waitErrors } = limiter.stats()
    expect(waitErrors).toEqual({ full: 1, timeout: 1, aborted: 2, impossible: 1 })
    expect(total(waits)).toBe(2)
    expect(waits.sum - before).toBeGreaterThan(9900)
    expect(waits.sum - before).toBeLessThanOrEqual(10_100)
  })

  it('counts the permits that are held', async () => {
    const limiter = createLimiter({ limits: [concurrency({ limit: 3, ttl: '1m' })] })
    const permit = await limiter.acquire('k')
    let during = 0
    await limiter.schedule('k', async () => {
      await nextTurn()
      during = limiter.stats().permits
    })
    expect([during, limiter.stats().permits]).toEqual([2, 1])
    await permit.release()
    expect(limiter.stats().permits).toBe(0)
  })
})
