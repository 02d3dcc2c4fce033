// tier: system
import { describe, expect, it } from 'vitest'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import type { Config } from '../../src/config/schema.ts'
import { VERSION } from '../../src/service/instance.ts'
import { rateLimitClient } from '../envoy/support/client.ts'
import { domainsIn } from '../envoy/support/envoy-service.ts'
import { type TestService, testService } from '../support/service.ts'
import { promtool, Scraped } from './support.ts'

const RULES = {
  'rules.yaml': `domain: gate
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 2 } }
  - { key: path, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
`,
}

const LIMITERS: Config['limiters'] = {
  sliding: {
    limits: [{ kind: 'slidingWindow', limit: 10, window: '1h', name: 'hourly' }],
    timeoutMs: 30_000,
  },
  fixed: {
    limits: [{ kind: 'fixedWindow', limit: 2, window: '1h', align: 'first-hit' }],
    timeoutMs: 30_000,
  },
  counter: { limits: [{ kind: 'slidingCounter', limit: 2, window: '1h' }], timeoutMs: 30_000 },
  // The interval is longer than a machine stall, so that the third request must wait.
  bucket: { limits: [{ kind: 'tokenBucket', capacity: 2, refill: 1, interval: '6s' }], timeoutMs: 30_000 },
  held: { limits: [{ kind: 'concurrency', limit: 1, ttl: '1m' }], timeoutMs: 30_000 },
  devices: { limits: [{ kind: 'distinct', limit: 1, window: '1h' }], timeoutMs: 30_000 },
  watched: {
    limits: [
      { kind: 'slidingWindow', limit: 5, window: '1h', name: 'enforced' },
      { kind: 'slidingWindow', limit: 2, window: '1h', name: 'tried', shadow: true },
    ],
    timeoutMs: 30_000,
  },
  banned: {
    limits: [{ kind: 'slidingWindow', limit: 1, window: '1h' }],
    ban: { after: 2, within: '1m', for: '1h' },
    timeoutMs: 30_000,
  },
  both: {
    dimensions: {
      user: [{ kind: 'slidingWindow', limit: 3, window: '1h', name: 'mine' }],
      address: [{ kind: 'slidingWindow', limit: 2, window: '1h', name: 'there' }],
    },
    timeoutMs: 30_000,
  },
}

async function started(store: NonNullable<Config['store']>, limiters = LIMITERS): Promise<TestService> {
  return testService(
    {
      store,
      limiters,
      envoy: { files: ['.'], timeoutMs: 30_000 },
      caps: { wait: '2h' },
      listen: { http: '127.0.0.1:0', grpc: '127.0.0.1:0' },
    },
    undefined,
    domainsIn(RULES),
  )
}

async function scrape(service: Pick<TestService, 'get'>): Promise<Scraped> {
  return new Scraped((await service.get('/metrics')).body)
}

async function ask(service: TestService, times: number, body: object, path = '/v1/consume'): Promise<void> {
  await Promise.all(Array.from({ length: times }, () => service.post(path, body)))
}

/** Words that occur in keys only. */
const WORDS = [
  'anneliese',
  'bartholomew',
  'cunegonde',
  'dorothea',
  'engelbert',
  '198.51.100.77',
  'tablet-of-ann',
]

/** Sends requests of every kind. The store decides all of them. */
async function useAll(service: TestService): Promise<void> {
  await ask(service, 12, { limiter: 'sliding', key: WORDS[0] })
  await ask(service, 3, { limiter: 'fixed', key: WORDS[0] })
  await ask(service, 3, { limiter: 'counter', key: WORDS[1] })
  await ask(service, 2, { limiter: 'bucket', key: WORDS[1] })
  await ask(service, 1, { limiter: 'bucket', key: WORDS[1], maxWaitMs: 20_000 }, '/v1/wait')
  for (const requestId of ['first', 'second'])
    await ask(service, 1, { limiter: 'held', key: WORDS[2], requestId })
  for (const value of [WORDS[6], 'another'])
    await ask(service, 1, { limiter: 'devices', key: WORDS[2], value })
  await ask(service, 7, { limiter: 'watched', key: WORDS[3] })
  for (let i = 0; i < 5; i++) await ask(service, 1, { limiter: 'banned', key: WORDS[4] })
  await ask(service, 3, { limiter: 'both', key: { user: WORDS[0], address: WORDS[5] } })
  await ask(service, 1, { limiter: 'sliding', key: WORDS[0], cost: 11, maxWaitMs: 20_000 }, '/v1/wait')
  await ask(service, 1, { limiter: 'sliding', key: WORDS[0], maxWaitMs: 1 }, '/v1/wait')
  using client = rateLimitClient(service.grpcAddress!)
  for (let i = 0; i < 3; i++) await client.ask('gate', [{ user: WORDS[0]! }, { path: WORDS[1]! }])
}

function expectAll(scraped: Scraped): void {
  const decided = (limiter: string) =>
    scraped.values('slidegate_decisions_total', { limiter, source: 'store' })
  const limit = (limiter: string, limit: string) => ({
    denials: scraped.value('slidegate_limit_denials_total', { limiter, limit }),
    shadow: scraped.value('slidegate_limit_shadow_denials_total', { limiter, limit }),
    nearLimit: scraped.value('slidegate_near_limit_total', { limiter, limit }),
    asked: scraped.value('slidegate_limit_utilization_ratio_count', { limiter, limit }),
  })
  expect(decided('sliding')).toEqual({ allowed: 10, denied: 2 })
  // The eighth, ninth and tenth request are near the limit.
  expect(limit('sliding', 'hourly')).toEqual({ denials: 2, shadow: 0, nearLimit: 3, asked: 12 })
  const half = { limiter: 'sliding', limit: 'hourly', le: '0.5' }
  expect(scraped.value('slidegate_limit_utilization_ratio_bucket', half)).toBe(5)
  // The utilization from 0.1 to 1, plus 1 for each denial.
  const whole = { limiter: 'sliding', limit: 'hourly' }
  expect(scraped.value('slidegate_limit_utilization_ratio_sum', whole)).toBeCloseTo(7.5)
  expect(decided('fixed')).toEqual({ allowed: 2, denied: 1 })
  expect(decided('counter')).toEqual({ allowed: 2, denied: 1 })
  expect(decided('held')).toEqual({ allowed: 1, denied: 1 })
  expect(decided('devices')).toEqual({ allowed: 1, denied: 1 })
  expect(decided('watched')).toEqual({ allowed: 5, denied: 2 })
  expect(limit('watched', 'enforced')).toEqual({ denials: 2, shadow: 0, nearLimit: 2, asked: 7 })
  expect(limit('watched', 'tried')).toMatchObject({ denials: 0, shadow: 5, asked: 7 })
  expect(decided('banned')).toEqual({ allowed: 1, denied: 4 })
  expect(scraped.value('slidegate_bans_total', { limiter: 'banned' })).toBe(1)
  expect(scraped.value('slidegate_blocked_requests_total', { limiter: 'banned' })).toBe(2)
  expect(limit('both', 'user.mine')).toEqual({ denials: 0, shadow: 0, nearLimit: 0, asked: 3 })
  expect(limit('both', 'address.there')).toEqual({ denials: 1, shadow: 0, nearLimit: 1, asked: 3 })
  expect(scraped.value('slidegate_wait_duration_seconds_count', { limiter: 'bucket' })).toBe(1)
  expect(scraped.value('slidegate_wait_duration_seconds_sum', { limiter: 'bucket' })).toBeGreaterThan(0.1)
  expect(scraped.values('slidegate_wait_errors_total', { limiter: 'sliding' })).toEqual({
    ...{ full: 0, timeout: 1, aborted: 0, impossible: 1 },
  })
  expect(decided('envoy.gate')).toEqual({ allowed: 2, denied: 1 })
  expect(limit('envoy.gate', 'user')).toMatchObject({ denials: 1, nearLimit: 1, asked: 3 })
  expect(limit('envoy.gate', 'path')).toMatchObject({ denials: 0, shadow: 2 })
  expect(scraped.value('slidegate_distinct_callers', { limiter: 'both' })).toBe(2)
  expect(scraped.value('slidegate_top_caller_ratio', { limiter: 'both' })).toBe(1)
  expect(scraped.value('slidegate_instances')).toBe(1)
  expect(Object.keys(scraped.values('slidegate_build_info'))).toEqual([VERSION])
  expect(scraped.value('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0)
  for (const word of WORDS) expect(scraped.text).not.toContain(word)
}

describe('counts match the requests', () => {
  it('in memory', async () => {
    await using service = await started({ memory: {} })
    await useAll(service)
    const scraped = await scrape(service)
    expect(await promtool(scraped.text)).toBe('')
    expectAll(scraped)
    expect(scraped.value('slidegate_memory_store_keys')).toBeGreaterThan(9)
    expect(scraped.value('slidegate_memory_store_evicted_keys_total')).toBe(0)
    expect(scraped.values('slidegate_redis_up')).toEqual({})
  })

  it('in Redis', async () => {
    const redis = await startRedis()
    await using _ = { [Symbol.asyncDispose]: () => redis.stop() }
    await using service = await started({ redis: { url: redis.url } })
    await useAll(service)
    const node = `127.0.0.1:${redis.port}`
    // A Redis that takes longer than a second is reported as down.
    const scraped = await until('Redis is up', async () => {
      const found = await scrape(service)
      return found.value('slidegate_redis_up', { node }) === 1 && found
    })
    expect(await promtool(scraped.text)).toBe('')
    expectAll(scraped)
    expect(scraped.values('slidegate_redis_up')).toEqual({ [node]: 1 })
    const calls = scraped.value('slidegate_store_call_requests_count')!
    expect(calls).toBeGreaterThan(10)
    const answered = scraped.value('slidegate_store_call_duration_seconds_count')!
    // The first call may precede the connection, and a machine stall may delay others.
    const failed = scraped.value('slidegate_store_failed_calls_total')!
    expect(failed).toBeLessThan(calls / 2)
    // One call may be in flight.
    expect(answered + failed).toBeGreaterThan(calls - 3)
    expect(answered).toBeLessThanOrEqual(calls)
    expect(scraped.value('slidegate_store_call_duration_seconds_sum')).toBeGreaterThan(0)
    expect(scraped.value('slidegate_store_script_loads_total')).toBeGreaterThan(0)
    expect(scraped.values('slidegate_memory_store_keys')).toEqual({})
  })

  it('after a thousand requests', async () => {
    const limits = [{ kind: 'slidingWindow', limit: 300, window: '1h', name: 'all' }] as const
    await using service = await testService({ limiters: { api: { limits: [...limits] } } })
    const requests = Array.from({ length: 1000 }, () => ({ key: 'ann' }))
    await service.post('/v1/consume', { limiter: 'api', requests })
    const scraped = await scrape(service)
    const labels = { limiter: 'api', limit: 'all' }
    expect(scraped.values('slidegate_decisions_total', { limiter: 'api', source: 'store' })).toEqual({
      allowed: 300,
      denied: 700,
    })
    expect(scraped.value('slidegate_limit_denials_total', labels)).toBe(700)
    expect(scraped.value('slidegate_near_limit_total', labels)).toBe(61)
    expect(scraped.value('slidegate_limit_utilization_ratio_count', labels)).toBe(1000)
    expect(scraped.value('slidegate_limit_utilization_ratio_bucket', { ...labels, le: '0.1' })).toBe(30)
  })
})

it('metrics exist before any decision, so that Prometheus sees the first increase', async () => {
  await using service = await started({ memory: {} })
  const scraped = await scrape(service)
  expect(await promtool(scraped.text)).toBe('')
  expect(scraped.values('slidegate_decisions_total', { limiter: 'sliding' })).toEqual({
    'allowed store': 0,
    'denied store': 0,
  })
  expect(scraped.value('slidegate_bans_total', { limiter: 'banned' })).toBe(0)
  expect(scraped.value('slidegate_store_errors_total', { limiter: 'sliding', reason: 'timeout' })).toBe(0)
})

it('waiting requests are reported while they wait', async () => {
  await using service = await started({ memory: {} })
  await ask(service, 10, { limiter: 'sliding', key: 'ann' })
  const asked = [1, 2].map(() =>
    service.post('/v1/wait', { limiter: 'sliding', key: 'ann', maxWaitMs: 2 ** 31 - 1 }),
  )
  const length = async () => (await scrape(service)).value('slidegate_queue_length', { limiter: 'sliding' })
  await until('both wait', async () => (await length()) === 2)
  await service.post('/v1/admin/reset', { limiter: 'sliding', key: 'ann' })
  await Promise.all(asked)
  expect(await length()).toBe(0)
})

describe('a reload', () => {
  const withLimit = (limit: number): Config['limiters'] => ({
    api: { limits: [{ kind: 'slidingWindow', limit, window: '1h', precision: '1s', name: 'all' }] },
  })

  it('never lowers a counter', async () => {
    await using service = await testService({ limiters: withLimit(2) })
    const before: Scraped[] = []
    for (const limit of [2, 3, 1, 2]) {
      service.reload({ config: { limiters: withLimit(limit) }, folder: '', files: [], shown: '' })
      await ask(service, 2, { limiter: 'api', key: 'ann' })
      await ask(service, 1, { limiter: 'api', key: 'bob', maxWaitMs: 0 }, '/v1/wait')
      before.push(await scrape(service))
    }
    // The limiter is removed, but its counts stay.
    service.reload({ config: { limiters: {} }, folder: '', files: [], shown: '' })
    before.push(await scrape(service))
    const sums = before.map((scraped) => {
      const { allowed = 0, denied = 0 } = scraped.values('slidegate_decisions_total', {
        limiter: 'api',
        source: 'store',
      })
      const waited = scraped.value('slidegate_wait_duration_seconds_count', { limiter: 'api' })!
      const { timeout: late = 0 } = scraped.values('slidegate_wait_errors_total', { limiter: 'api' })
      return { decided: allowed + denied - waited, waited: waited + late }
    })
    expect(sums).toEqual([2, 4, 6, 8, 8].map((decided) => ({ decided, waited: Math.min(4, decided / 2) })))
  })
})

describe('labels are bounded', () => {
  it('for requests to any limiter', async () => {
    await using service = await testService({ limiters: LIMITERS })
    const { size } = await scrape(service)
    const requests = Array.from({ length: 1000 }, (_, i) => ({ limiter: `unknown-${i}`, key: 'ann' }))
    for (let i = 0; i < 5; i++) {
      expect((await service.post('/v1/consume', { requests })).status).toBe(404)
      await service.post('/v1/wait', { limiter: `unknown-${i}`, key: 'ann' })
    }
    const scraped = await scrape(service)
    expect(scraped.text).not.toContain('unknown')
    // Only metrics of this process remain.
    expect(scraped.size).toBeLessThan(size + 30)
  })

  it('for any number of limiters', async () => {
    const limits = [{ kind: 'slidingWindow' as const, limit: 1, window: '1h' }]
    const names = Array.from({ length: 1500 }, (_, i) => `limiter-${i}`)
    await using service = await testService({
      limiters: Object.fromEntries(names.map((name) => [name, { limits }])),
      caps: { requestsPerCall: 2000 },
    })
    const requests = names.map((limiter) => ({ limiter, key: 'ann' }))
    await service.post('/v1/consume', { requests })
    const scraped = await scrape(service)
    const decided = scraped.values('slidegate_decisions_total', { outcome: 'allowed', source: 'store' })
    expect(Object.keys(decided)).toHaveLength(1025)
    // No decision is lost.
    expect(decided['(others)']).toBe(1500 - 1024)
    expect(Object.keys(scraped.values('slidegate_distinct_callers'))).toHaveLength(1024)
    // Thousands of values are formatted in chunks, with one header and nothing missing.
    const rows = scraped.text.split('\n').filter((line) => line.includes('slidegate_limit_utilization_ratio'))
    expect(rows.filter((line) => line.startsWith('# TYPE'))).toHaveLength(1)
    expect(rows.findIndex((line) => !line.startsWith('#'))).toBe(2)
    expect(new Set(rows).size).toBe(rows.length)
    expect(rows.filter((line) => line.includes('_ratio_count{'))).toHaveLength(1025)
  })

  it('for any number of limits', async () => {
    const limit = { kind: 'slidingWindow' as const, limit: 1, window: '1h' }
    const keys = Array.from({ length: 5000 }, (_, i) => `caller-${i}`)
    const overrides = keys.map((key, i) => ({ key, limits: [{ ...limit, name: `limit-${i}` }] }))
    await using service = await testService({
      limiters: { api: { limits: [limit], overrides } },
      caps: { requestsPerCall: 5000 },
    })
    await service.post('/v1/consume', { limiter: 'api', requests: keys.map((key) => ({ key })) })
    const scraped = await scrape(service)
    const nearLimit = scraped.values('slidegate_near_limit_total', { limiter: 'api' })
    expect(Object.keys(nearLimit)).toHaveLength(65)
    expect(nearLimit.other).toBe(5000 - 64)
  })
})
