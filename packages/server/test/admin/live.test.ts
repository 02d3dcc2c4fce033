// tier: system
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../slidegate/test/support/redis-server.ts'
import type { History, Overview } from '../../src/admin/api-types.ts'
import { Live } from '../../src/admin/live.ts'
import { limitersOf, type ProcessReport } from '../../src/admin/merge-reports.ts'
import type { SecondCounts } from '../../src/admin/rates.ts'
import { CallTotals, quantile } from '../../src/admin/store-calls.ts'
import { Usage } from '../../src/admin/usage.ts'
import { ServiceClient } from '../../src/client/service-client.ts'
import type { Config } from '../../src/config/schema.ts'
import { type AdminService, adminService, forEachStore } from './support.ts'

const limiters: Config['limiters'] = {
  api: { limits: [{ kind: 'slidingWindow', limit: 3, window: '1h' }], timeoutMs: 9000 },
  quiet: { limits: [{ kind: 'slidingWindow', limit: 3, window: '1h' }], shadow: true, timeoutMs: 9000 },
}

const token = (name: string) => `${name}-${name}-${name}-${name}`
const auth: Config['auth'] = {
  tokens: [
    { name: 'admin', role: 'admin', token: token('admin') },
    { name: 'narrow', role: 'read', token: token('narrow'), limiters: ['quiet'] },
    { name: 'check', role: 'check', token: token('check') },
  ],
}

async function consume(service: AdminService, limiter: string, key: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await service.ask('POST', '/v1/consume', { limiter, key }, token('admin'))
}

const sum = (column: readonly number[]) => column.reduce((all, count) => all + count, 0)

describe('the live overview', () => {
  forEachStore((store) => {
    it('reports decisions and callers by the second', async () => {
      await using service = await adminService({ limiters, auth, store: store() })
      for (const key of ['ann', 'bob', 'eve']) await consume(service, 'api', key, 5)
      await consume(service, 'quiet', 'ann', 4)
      const history = async (query = '', who = 'admin') =>
        (await service.ask('GET', `/v1/admin/history${query}`, undefined, token(who))).body as History
      // The history only has full seconds, so it lags behind for a moment.
      await expect.poll(async () => sum((await history('?limiter=api')).denied)).toBe(6)
      const beforeMs = Date.now()
      const { seconds, allowed } = await history('?limiter=api')
      const afterMs = Date.now()
      expect(sum(allowed)).toBe(9)
      expect(seconds).toHaveLength(allowed.length)
      expect(seconds.at(-1)).toBeGreaterThan(beforeMs / 1000 - 5)
      expect(seconds.at(-1)).toBeLessThan(afterMs / 1000 + 5)
      await expect.poll(async () => sum((await history()).allowed)).toBe(13)
      expect(sum((await history('?limiter=quiet')).shadowDenied)).toBe(1)
      expect(sum((await history('', 'narrow')).allowed)).toBe(4)
      const { body } = await service.ask('GET', '/v1/admin/overview', undefined, token('admin'))
      const overview = body as Overview
      expect(overview.instances).toMatchObject([{ isSelf: true, pid: process.pid }])
      expect(overview.missing).toBe(0)
      expect(overview.store).toMatchObject({ up: true, kind: store().redis ? 'redis' : 'memory' })
      expect(overview.limiters.map(({ name, outage }) => [name, outage])).toEqual([
        ['api', undefined],
        ['quiet', undefined],
      ])
      await expect
        .poll(
          async () => {
            const answer = await service.ask('GET', '/v1/admin/overview', undefined, token('admin'))
            return (answer.body as Overview).limiters.map(({ callers }) => callers)
          },
          { interval: 500 },
        )
        .toEqual([3, 1])
    })
  })

  it('shows only limiters that the reader may see', async () => {
    await using service = await adminService({ limiters, auth })
    await consume(service, 'api', 'ann', 1)
    const narrow = new ServiceClient({ url: new URL(service.url), token: token('narrow') })
    const stop = new AbortController()
    const seen: Overview[] = []
    for await (const { event, data } of narrow.events('/v1/admin/live', stop.signal)) {
      expect(event).toBe('overview')
      seen.push(JSON.parse(data))
      if (seen.length === 2) stop.abort()
    }
    expect(seen.map((each) => each.limiters.map(({ name }) => name))).toEqual([['quiet'], ['quiet']])
    expect(await service.ask('GET', '/v1/admin/live', undefined, token('check'))).toMatchObject({
      status: 403,
    })
    for (const path of ['history?limiter=api', 'history?limiter=none']) {
      const answer = await service.ask('GET', `/v1/admin/${path}`, undefined, token('narrow'))
      expect(answer).toMatchObject({ status: 404, body: { code: 'unknown_limiter' } })
    }
  })

  it('identifies the caller', async () => {
    await using service = await adminService({ limiters, auth })
    const who = async (name?: string) =>
      (await service.ask('GET', '/v1/admin/whoami', undefined, name && token(name))).body
    expect(await who('check')).toEqual({ name: 'check', role: 'check', limiters: null, hasTokens: true })
    expect(await who('narrow')).toMatchObject({ name: 'narrow', role: 'read', limiters: ['quiet'] })
    expect(await who()).toMatchObject({ code: 'unauthorized' })
  })
})

describe('the overview of a store in Redis', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis.stop())

  it('reports the rate of calls, their latency and the requests per call', async () => {
    await using service = await adminService({ limiters, auth, store: { redis: { url: redis.url } } })
    await expect
      .poll(
        async () => {
          await consume(service, 'api', 'ann', 3)
          const { body } = await service.ask('GET', '/v1/admin/overview', undefined, token('admin'))
          const { callsPerSecond, callMs, requestsPerCall, servers } = (body as Overview).store
          return (
            callsPerSecond > 0 &&
            callMs !== null &&
            callMs.p50 > 0 &&
            callMs.p99 >= callMs.p50 &&
            requestsPerCall !== null &&
            requestsPerCall >= 1 &&
            servers.length === 1 &&
            servers[0]!.up
          )
        },
        { interval: 300 },
      )
      .toBe(true)
  })
})

it('estimates quantiles of a histogram like Prometheus', () => {
  const bounds = [1, 2, 4]
  expect(quantile(bounds, [0, 10, 0, 0], 0.5)).toBe(1.5)
  expect(quantile(bounds, [10, 0, 10, 0], 0.75)).toBe(3)
  expect(quantile(bounds, [0, 0, 0, 5], 0.99)).toBe(4)
  expect(quantile(bounds, [4, 0, 0, 0], 0.5)).toBe(0.5)
})

it('reports calls of the last few seconds, even after an hour without queries', () => {
  const bounds = [1, 2]
  const counted = { calls: 0 }
  let nowMs = 0
  const stats = () => {
    const { calls } = counted
    const histogram = { bounds, counts: [calls, 0, 0], sum: calls }
    return { calls, callMs: histogram, requestsPerCall: histogram }
  }
  const totals = new CallTotals({ stats } as never, () => nowMs)
  const at = (ms: number, calls: number) => {
    nowMs = ms
    counted.calls = calls
    return totals.lately()
  }
  expect(at(0, 100)).toBe(undefined)
  expect(at(2000, 120)).toMatchObject({ spanMs: 2000, calls: 20 })
  for (let second = 3; second <= 9; second++) at(1000 * second, 100 + 10 * second)
  expect(at(10_000, 200)).toMatchObject({ spanMs: 5000, calls: 50, callMs: { counts: [50, 0, 0] } })
  expect(at(3_610_000, 1_000_000)).toBe(undefined)
  expect(at(3_611_000, 1_000_007)).toMatchObject({ spanMs: 1000, calls: 7 })
})

it('dates an overview by its own second, even if the next one begins while others answer', async () => {
  let nowMs = 1_000_000_000
  const usage = new Usage(() => nowMs)
  nowMs += 10_500
  usage.record('api', 'ann', { allowed: true, source: 'store', limits: [] } as never)
  nowMs += 1400
  const answers = new Map<string, () => unknown>()
  const instances = {
    self: { process: 'own', id: 'own' },
    gone: () => [],
    answer: (question: string, answer: () => unknown) => answers.set(question, answer),
    ask: async () => [],
    askAll: async (question: string) => {
      const own = answers.get(question)!()
      nowMs += 200
      return { answers: [own], missing: 0 }
    },
  }
  const service = { active: () => [], config: {} }
  const probes = {
    servers: async () => [],
    isStoreDown: () => false,
    outageOf: () => undefined,
    fileState: () => 'applied',
  }
  const live = new Live({ service, usage, instances, ...probes } as never)
  const { atMs, limiters: rates } = await live.overview(() => true)
  expect([atMs, rates.map(({ allowedPerSecond }) => allowedPerSecond)]).toEqual([1_000_010_000, [1]])
})

it('aligns the history of instances with wrong clocks to the current second', async () => {
  const nowMs = 1_000_000_500
  const usage = new Usage(() => nowMs)
  const latest = usage.secondsOf([], 1).latest
  const endingAt = (at: number): SecondCounts => {
    const [allowed, denied] = [
      [3, 2, 1],
      [0, 0, 0],
    ]
    return { latest: at, allowed, denied, shadowDenied: denied, withoutStore: denied }
  }
  const all = [latest, latest - 1, latest + 3600, latest - 3600, 1e15].map(endingAt)
  const instances = { answer: () => {}, ask: async () => all }
  const live = new Live({ usage, instances } as never)
  const { seconds, allowed } = await live.history(['api'])
  expect(seconds).toEqual([latest - 3, latest - 2, latest - 1, latest])
  expect(allowed).toEqual([1, 4 + 2, 8 + 3, 12])
})

describe('the outage of a limiter, merged from its processes', () => {
  const outageOf = (
    ...states: readonly [isStoreDown: boolean, outage: { sinceMs: number; untilMs?: number }][]
  ) => {
    const none = { allowed: [], denied: [], shadowDenied: [], withoutStore: [] }
    const rest = { waiting: 0, onStoreError: 'deny', instances: 1 } as const
    const lastMinute = { seconds: 1, allowed: 0, denied: 0, shadowDenied: 0 }
    const reports = states.map(([isStoreDown, outage]) => ({
      limiters: [{ name: 'api', ...rest, lastMinute, latest: { latest: 1, ...none }, isStoreDown, outage }],
    }))
    const [limiter] = limitersOf(reports as unknown as ProcessReport[], new Map())
    return { outage: limiter!.outage, lastOutage: limiter!.lastOutage }
  }

  it('begins when the first process that still lacks the store noticed', () => {
    const merged = outageOf(
      [false, { sinceMs: 1, untilMs: 2 }],
      [true, { sinceMs: 9 }],
      [true, { sinceMs: 8 }],
    )
    expect(merged).toMatchObject({
      outage: { sinceMs: 8, processesDown: 2, processes: 3 },
      lastOutage: undefined,
    })
  })

  it('becomes the last outage once all processes reach the store', () => {
    const merged = outageOf([false, { sinceMs: 1, untilMs: 2 }], [false, { sinceMs: 8, untilMs: 9 }])
    expect(merged).toEqual({ outage: undefined, lastOutage: { sinceMs: 8, untilMs: 9 } })
  })
})
