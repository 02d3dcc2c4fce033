// tier: integration
import { type Attributes, metrics } from '@opentelemetry/api'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  concurrency,
  createLimiter,
  type LimiterOptions,
  memoryStore,
  slidingWindow,
} from '../../src/index.ts'
import { DecisionCounts } from '../../src/observe/metrics.ts'
import { type MeasureOptions, measure, traced } from '../../src/observe/opentelemetry.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { errorOf } from '../input/refusal.ts'
import { FAILURES, failing } from '../resilience/failing-store.ts'
import { useRedis } from '../support/use-redis.ts'
import { meterOf } from './sdk.ts'

const { redis } = await useRedis()

const POLICY = 'slidegate.rate_limiting.policy'
const RESULT = 'slidegate.rate_limiting.result'
const limits = [
  slidingWindow({ limit: 10, window: '1h', name: 'ten' }),
  slidingWindow({ limit: 5, window: '1h', name: 'five', shadow: true }),
]

function measured(options: Partial<LimiterOptions> = {}, more: MeasureOptions = {}) {
  const { meter, collect } = meterOf()
  const limiter = createLimiter({ name: 'api', limits, timeoutMs: 30_000, logger: false, ...options })
  const stop = measure(limiter, { meter, ...more })
  onTestFinished(stop)
  return { limiter, collect, stop, meter }
}

const api: Attributes = { [POLICY]: 'api' }

describe('measure', () => {
  it('reports decisions by result and source, and per limit', async () => {
    const { limiter, collect } = measured()
    for (let i = 0; i < 12; i++) limiter.consumeSync('user:1')
    const told = await collect()
    const by = { ...api, 'slidegate.source': 'store' }
    expect(told.value('requests', { ...by, [RESULT]: 'acquired' })).toBe(10)
    expect(told.value('requests', { ...by, [RESULT]: 'denied' })).toBe(2)
    expect(told.points('requests').length).toBe(2)
    const [ten, five] = ['ten', 'five'].map((limit) => ({ ...api, 'slidegate.limit': limit }))
    expect(told.value('limit.denials', ten)).toBe(2)
    expect(told.value('limit.denials', five)).toBe(0)
    expect(told.value('limit.shadow_denials', five)).toBe(7)
    expect(told.value('near_limit', ten)).toBe(3)
    const { count, sum, buckets } = told.histogram('limit.utilization', ten)
    expect(buckets.boundaries).toEqual([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1])
    expect(buckets.counts).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 3, 0])
    expect([count, sum]).toEqual([12, expect.closeTo(5.5 + 2)])
  })

  it('never reports a key', async () => {
    const { limiter, collect } = measured({
      limits: (key) => [slidingWindow({ limit: 3, window: '1h', name: `of-${key.length}` })],
      store: redisStore(redis, { prefix: 'slidegate:never' }),
      ban: { after: 2, within: '1h', for: '1h' },
    })
    for (let i = 0; i < 8; i++) await limiter.consume('secret-key-of-mine')
    const told = await collect()
    expect(told.metrics.length).toBeGreaterThan(10)
    expect(JSON.stringify(told.metrics)).not.toContain('secret')
    expect([told.value('bans'), told.value('blocked_requests')]).toEqual([1, 3])
  })

  it('uses the names and units of the conventions', async () => {
    const store = redisStore(redis, { prefix: 'slidegate:names' })
    const { limiter, collect } = measured({ store }, { store })
    await limiter.consume('k')
    await limiter.wait('k')
    await limiter.wait('k', { cost: 11 }).catch(() => {})
    const told = await collect()
    const units = Object.fromEntries(told.names.map((name) => [name, told.metric(name).descriptor.unit]))
    expect(units).toEqual({
      requests: '{request}',
      active_request_leases: '{request}',
      queued_requests: '{request}',
      'request.time_in_queue': 's',
      'queue.errors': '{request}',
      blocked_requests: '{request}',
      bans: '{ban}',
      'limit.denials': '{request}',
      'limit.shadow_denials': '{request}',
      near_limit: '{request}',
      'limit.utilization': '1',
      'store.down': '1',
      'store.breaker_opened': '{opening}',
      'store.clock_steps': '{step}',
      'store.calls': '{call}',
      'store.failed_calls': '{call}',
      'store.script_loads': '{load}',
      'store.call.duration': 's',
      'store.call.requests': '{request}',
      'store.call.operations': '{operation}',
    })
  })

  it('reports waiters and permits', async () => {
    const { limiter, collect } = measured({ limits: [concurrency({ limit: 1, ttl: '1m', name: 'slot' })] })
    const permit = await limiter.acquire('k')
    const abort = new AbortController()
    const waiting = [limiter.wait('k', { signal: abort.signal }), limiter.wait('k')]
    const during = await collect()
    expect([during.value('active_request_leases', api), during.value('queued_requests', api)]).toEqual([1, 2])
    abort.abort()
    await waiting[0]!.catch(() => {})
    await permit.release()
    await waiting[1]
    const told = await collect()
    expect(told.value('queued_requests', api)).toBe(0)
    expect(told.value('queue.errors', { ...api, 'error.type': 'aborted' })).toBe(1)
    const { count, sum, buckets } = told.histogram('request.time_in_queue', { ...api, [RESULT]: 'acquired' })
    expect([count, buckets.boundaries[0], buckets.boundaries.at(-1)]).toEqual([1, 0.001, 300])
    expect(sum).toBeLessThan(30)
  })

  it('reports calls to Redis', async () => {
    const store = redisStore(redis, { prefix: 'slidegate:calls' })
    const { limiter, collect } = measured({ store }, { store })
    await redis.script('FLUSH')
    await limiter.consume('k')
    await Promise.all(Array.from({ length: 9 }, () => limiter.consume('k')))
    await redis.script('FLUSH')
    await limiter.consume('k')
    const told = await collect()
    expect(
      ['store.calls', 'store.failed_calls', 'store.script_loads'].map((name) => told.value(name, api)),
    ).toEqual([3, 0, 2])
    expect(told.histogram('store.call.duration', api).count).toBe(3)
    expect(told.histogram('store.call.requests', api)).toMatchObject({ count: 3, sum: expect.closeTo(11) })
    expect(told.histogram('store.call.operations', api)).toMatchObject({ count: 3, sum: expect.closeTo(3) })
  })

  it('reports store errors and whether the store is down', async () => {
    let answer: ((words: readonly string[]) => Promise<unknown>) | undefined
    const store = redisStore({
      command: async (words) => {
        const [name, ...others] = words
        return answer === undefined ? redis.call(name!, ...others) : answer(words)
      },
    })
    const { limiter, collect } = measured(
      { store, timeoutMs: 50, onStoreError: 'deny', breaker: { minRequests: 4, maxBackoffMs: 20 } },
      { store },
    )
    answer = () => new Promise(() => {})
    await limiter.consume('k')
    answer = () => Promise.reject(new Error('ECONNRESET'))
    for (let i = 0; i < 4; i++) await limiter.consume(`${i}`)
    const told = await collect()
    expect(told.value('store.errors', { 'error.type': 'timeout' })).toBe(1)
    expect(told.value('store.errors', { 'error.type': 'error' })).toBeGreaterThan(1)
    expect(told.value('store.failed_calls')).toBeGreaterThan(1)
    expect([told.value('store.down', api), told.value('store.breaker_opened', api)]).toEqual([1, 1])
    expect(told.value('requests', { 'slidegate.source': 'failClosed' })).toBe(5)
    expect(told.names).not.toContain('limit.denials')
    answer = undefined
    await vi.waitFor(async () => expect((await limiter.consume('k')).source).toBe('store'), {
      timeout: 30_000,
    })
    expect((await collect()).value('store.down', api)).toBe(0)
  })

  it("reports steps of the store's clock", async () => {
    const clock = new ManualClock(Date.now())
    const store = redisStore(redis, { clock: clock.now, prefix: 'slidegate:steps' })
    const { limiter, collect } = measured({ store })
    await limiter.consume('k')
    clock.advance(60_000)
    await limiter.consume('k')
    expect((await collect()).value('store.clock_steps', api)).toBe(1)
  })

  it('keeps limiters of one meter separate', async () => {
    const { limiter, collect, meter, stop } = measured()
    const other = createLimiter({ name: 'other', limits })
    onTestFinished(measure(other, { meter }))
    for (let i = 0; i < 3; i++) limiter.consumeSync('k')
    other.consumeSync('k')
    const told = await collect()
    for (const [policy, requests] of [
      ['api', 3],
      ['other', 1],
    ] as const) {
      expect(told.value('requests', { [POLICY]: policy })).toBe(requests)
      const ten = { [POLICY]: policy, 'slidegate.limit': 'ten' }
      expect(told.histogram('limit.utilization', ten).count).toBe(requests)
    }
    stop()
    other.consumeSync('k')
    expect((await collect()).value('requests', { [POLICY]: 'other' })).toBe(2)
  })

  it('reports each limiter in its own turn of the event loop', async () => {
    const { meter, collect } = meterOf()
    const asked: number[] = []
    let turn = 0
    let ticking = setImmediate(function tick() {
      turn++
      ticking = setImmediate(tick)
    })
    onTestFinished(() => clearImmediate(ticking))
    for (const name of ['one', 'two', 'three']) {
      const limiter = createLimiter({ name, limits })
      onTestFinished(measure(limiter, { meter }))
      const stats = limiter.stats.bind(limiter)
      vi.spyOn(limiter, 'stats').mockImplementation(() => {
        asked.push(turn)
        return stats()
      })
    }
    await collect()
    expect(asked.length).toBe(3)
    expect(new Set(asked).size).toBe(3)
  })

  it('stops when the returned function is called', async () => {
    const { limiter, collect, stop } = measured()
    limiter.consumeSync('k')
    expect((await collect()).value('requests', api)).toBe(1)
    const asked = vi.spyOn(limiter, 'stats')
    const counted = vi.spyOn(DecisionCounts.prototype, 'add')
    onTestFinished(() => counted.mockRestore())
    stop()
    limiter.consumeSync('k')
    await collect().catch(() => {})
    expect(asked).not.toHaveBeenCalled()
    expect(counted).not.toHaveBeenCalled()
  })

  it("doesn't report values again after a restart", async () => {
    const store = redisStore(redis, { prefix: 'slidegate:again' })
    const { limiter, collect, meter, stop } = measured({ store }, { store })
    await limiter.wait('k')
    const first = await collect()
    stop()
    onTestFinished(measure(limiter, { meter, store }))
    const second = await collect()
    for (const name of ['request.time_in_queue', 'store.call.duration']) {
      expect([name, first.histogram(name).count]).toEqual([name, 1])
      expect([name, second.histogram(name).count]).toEqual([name, 1])
    }
  })

  it('still reports a closed limiter', async () => {
    const { limiter, collect } = measured()
    limiter.consumeSync('k')
    limiter.close()
    const told = await collect()
    expect([told.value('requests', api), told.value('queued_requests', api)]).toEqual([1, 0])
  })

  it('reports a traced limiter in the same way', async () => {
    const { meter, collect } = meterOf()
    const limiter = traced(createLimiter({ name: 'api', limits }))
    onTestFinished(measure(limiter, { meter }))
    limiter.consumeSync('k')
    await limiter.consume('k')
    expect((await collect()).value('requests', api)).toBe(2)
  })

  it("uses the API's meter by default", async () => {
    const { meter, collect } = meterOf()
    const provider = new MeterProvider()
    provider.getMeter = (name) => {
      expect(name).toBe('slidegate')
      return meter
    }
    metrics.setGlobalMeterProvider(provider)
    onTestFinished(() => metrics.disable())
    const limiter = createLimiter({ name: 'api', limits })
    onTestFinished(measure(limiter))
    limiter.consumeSync('k')
    expect((await collect()).value('requests', api)).toBe(1)
  })

  it.each([memoryStore(), {}, null, 'redis'])("rejects a store that isn't in Redis", async (store) => {
    const options = { store } as unknown as MeasureOptions
    expect(await errorOf(() => measure(createLimiter({ limits }), options))).toMatchObject({
      code: 'invalid_option',
    })
  })

  it('works with a store that discards everything', async () => {
    const store = failing(memoryStore(), FAILURES.throws)
    const { limiter, collect } = measured({ store })
    await limiter.consume('k').catch(() => {})
    expect((await collect()).value('store.errors', { 'error.type': 'error' })).toBe(1)
  })
})
