import { memoryStore } from 'slidegate'
import { ManualClock } from 'slidegate/testing'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Config, LimitConfig, LimiterConfig } from '../../src/config/schema.ts'
import { Service } from '../../src/service/service.ts'

const sliding = (limit: number, more = {}): LimitConfig => ({
  kind: 'slidingWindow',
  limit,
  window: '1m',
  ...more,
})
const configOf = (api: LimiterConfig, others: Config['limiters'] = {}): Config => ({
  limiters: { api, ...others },
})

let service: Service | undefined
afterEach(() => service?.close())

function serviceOf(
  api: LimiterConfig,
  others: Config['limiters'] = {},
): { service: Service; clock: ManualClock; warnings: string[] } {
  const clock = new ManualClock()
  const warnings: string[] = []
  const logger = { warn: (line: string) => void warnings.push(line) }
  service = new Service(configOf(api, others), memoryStore({ clock: clock.now }), { logger })
  return { service, clock, warnings }
}

const use = async (of: Service, times: number, key = 'ann', plan?: string) => {
  const decisions = []
  for (let i = 0; i < times; i++) {
    decisions.push(await of.get('api').limiter.consume(key, { request: { plan } }))
  }
  return decisions.filter(({ allowed }) => allowed).length
}

describe('a reload', () => {
  it('keeps unchanged limiters', () => {
    const { service } = serviceOf({ limits: [sliding(10)] }, { other: { limits: [sliding(5)] } })
    const { limiter } = service.get('other')
    const api = service.get('api').limiter
    service.reload(configOf({ limits: [sliding(11)] }, { other: { limits: [sliding(5)] } }))
    expect(service.get('other').limiter).toBe(limiter)
    expect(service.get('api').limiter).not.toBe(api)
  })

  it.each<[string, LimitConfig, LimitConfig]>([
    ['another number', sliding(10), sliding(12)],
    ['a longer window', sliding(10), sliding(12, { window: '2m' })],
    ['another name', sliding(10), sliding(12, { name: 'renamed' })],
    [
      'half a large limit',
      sliding(100_000, { window: '1d' }),
      sliding(12, { window: '1d', precision: '2s' }),
    ],
    [
      'another refill',
      { kind: 'tokenBucket', capacity: 10, refill: 1, interval: '1h' },
      { kind: 'tokenBucket', capacity: 12, refill: 2, interval: '1h' },
    ],
  ])('keeps the usage: %s', async (_, then, now) => {
    const { service, warnings } = serviceOf({ limits: [then] })
    expect(await use(service, 8)).toBe(8)
    service.reload(configOf({ limits: [now] }))
    expect(await use(service, 20)).toBe(4)
    expect(warnings).toEqual([])
  })

  it.each<[string, LimitConfig]>([
    ['another precision', sliding(12, { precision: '1s' })],
    ['another log', sliding(12, { log: 'zset' })],
    ['another kind', { kind: 'tokenBucket', capacity: 12, refill: 12, interval: '1m' }],
  ])('starts at zero and logs that: %s', async (_, limit) => {
    const other: LimitConfig = { kind: 'fixedWindow', limit: 25, window: '7d', name: 'other' }
    const { service, warnings } = serviceOf({ limits: [sliding(10), other] })
    expect(await use(service, 10)).toBe(10)
    service.reload(configOf({ limits: [limit, other] }))
    expect(await use(service, 10)).toBe(10)
    expect(await use(service, 9)).toBe(2)
    expect(warnings).toEqual([
      expect.stringMatching(
        /^limiter api: the usage of 12-per-1m starts at zero after this change\. A limit keeps its usage if/,
      ),
    ])
    service.reload(configOf({ limits: [sliding(12), other] }))
    expect((await service.get('api').limiter.peek('ann')).limits.map(({ remaining }) => remaining)).toEqual([
      2, 3,
    ])
  })

  it.each<[string, LimiterConfig, LimiterConfig, RegExp]>([
    [
      'in a plan',
      { limits: [sliding(1)], plans: { pro: { limits: [sliding(5, { precision: '1s' })] } } },
      { limits: [sliding(1)], plans: { pro: { limits: [sliding(6)] } } },
      /6-per-1m starts at zero after this change, for keys on the plan pro/,
    ],
    [
      'in an override',
      { limits: [sliding(1)], overrides: [{ key: 'ann', limits: [sliding(5, { precision: '1s' })] }] },
      { limits: [sliding(1)], overrides: [{ key: 'ann', limits: [sliding(6)] }] },
      /6-per-1m starts at zero after this change, for the key ann/,
    ],
    [
      'in a renamed dimension',
      { dimensions: { user: [sliding(1)] } },
      { dimensions: { account: [sliding(1)] } },
      /account.1-per-1m starts at zero after this change/,
    ],
    [
      'in a limiter with new dimensions',
      { limits: [sliding(1)] },
      { dimensions: { user: [sliding(1)] } },
      /user.1-per-1m starts at zero after this change/,
    ],
    [
      'in a bucket after a new one',
      { limits: [{ kind: 'tokenBucket', capacity: 1, refill: 1, interval: '1h', name: 'old' }] },
      {
        limits: ['new', 'old'].map((name) => ({
          ...{ kind: 'tokenBucket', capacity: 1, refill: 1, interval: '1h', name },
        })),
      } as LimiterConfig,
      /: the usage of old starts at zero after this change/,
    ],
  ])('logs the limit that starts at zero: %s', (_, then, now, note) => {
    const { service, warnings } = serviceOf(then)
    warnings.length = 0
    service.reload(configOf(now))
    expect(warnings[0]).toMatch(note)
  })

  it('keeps the log however often numbers change', async () => {
    const { service } = serviceOf({ limits: [sliding(10)] })
    expect(await use(service, 10)).toBe(10)
    for (let limit = 11; limit <= 40; limit++) service.reload(configOf({ limits: [sliding(limit)] }))
    expect(await use(service, 50)).toBe(30)
  })

  it('rejects a configuration as a whole if a part is invalid', async () => {
    const { service } = serviceOf({ limits: [sliding(10)] }, { other: { limits: [sliding(5)] } })
    const before = service.active()
    expect(() =>
      service.reload(configOf({ limits: [sliding(11)] }, { other: { limits: [sliding(5, { window: 1 })] } })),
    ).toThrow(expect.objectContaining({ code: 'invalid_duration' }))
    expect(service.active()).toEqual(before)
    expect(await use(service, 20)).toBe(10)
  })

  it('closes removed limiters', () => {
    const { service } = serviceOf({ limits: [sliding(10)] }, { other: { limits: [sliding(5)] } })
    service.reload(configOf({ limits: [sliding(10)] }))
    expect(() => service.get('other')).toThrow(
      expect.objectContaining({ code: 'unknown_limiter', status: 404 }),
    )
  })

  it('keeps waiting requests', async () => {
    vi.useFakeTimers()
    try {
      const { service, clock } = serviceOf({ limits: [sliding(1, { window: '2h' })] })
      expect(await use(service, 1)).toBe(1)
      const waits = service.get('api').limiter.wait('ann', { maxWaitMs: 10_800_000 })
      await vi.advanceTimersByTimeAsync(10)
      service.reload(configOf({ limits: [sliding(1, { window: '2h', name: 'renamed' })] }))
      clock.advance(7_200_000)
      await vi.advanceTimersByTimeAsync(7_200_000)
      expect(await waits).toMatchObject({ allowed: true })
    } finally {
      vi.useRealTimers()
    }
  })

  it('leaves no timers behind, however often it runs', () => {
    vi.useFakeTimers()
    try {
      const { service } = serviceOf({ limits: [sliding(1)] })
      for (let i = 0; i < 100; i++) service.reload(configOf({ limits: [sliding(1, { precision: i + 1 })] }))
      expect(vi.getTimerCount()).toBeGreaterThan(0)
      vi.advanceTimersByTime(120_000)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('plans and overrides', () => {
  const api: LimiterConfig = {
    limits: [sliding(2)],
    plans: { pro: { limits: [sliding(5)], keys: ['acme', 'tenant:*'] }, gold: { limits: [sliding(9)] } },
    overrides: [{ key: 'ann', limits: [sliding(3)] }],
    choosePlan: true,
  }

  it('give keys separate limits', async () => {
    const { service } = serviceOf(api)
    expect(await use(service, 20, 'bob')).toBe(2)
    expect(await use(service, 20, 'acme')).toBe(5)
    expect(await use(service, 20, 'tenant:7')).toBe(5)
    expect(await use(service, 20, 'ann')).toBe(3)
    expect(await use(service, 20, 'carl', 'gold')).toBe(9)
    expect(await use(service, 20, 'carl', 'gold')).toBe(0)
  })

  it('keep the usage under another plan', async () => {
    const { service } = serviceOf({
      limits: [sliding(2)],
      plans: { gold: { limits: [sliding(9, { window: '2m' })] } },
      choosePlan: true,
    })
    expect(await use(service, 20, 'bob')).toBe(2)
    expect(await use(service, 20, 'bob', 'gold')).toBe(7)
    expect(await use(service, 20, 'bob')).toBe(0)
  })

  it('report limits that start at zero when a key changes its plan', () => {
    const { warnings } = serviceOf({
      dimensions: { user: [sliding(2)], ip: [sliding(4)] },
      plans: {
        same: { dimensions: { user: [sliding(9, { window: '1h' })] } },
        large: { dimensions: { user: [sliding(9000, { window: '1h' })], ip: [sliding(5)] } },
      },
      choosePlan: true,
    })
    expect(warnings).toEqual([
      expect.stringContaining('user.9000-per-1h starts at zero for keys that move to the plan large'),
    ])
  })
})

describe('shadow switches', () => {
  it('allow all requests, count them, and deny again', async () => {
    const { service } = serviceOf({ limits: [sliding(2), sliding(4, { window: '1h', name: 'hourly' })] })
    expect(await use(service, 3)).toBe(2)
    service.shadow({ api: { '2-per-1m': true } })
    expect(await use(service, 9)).toBe(2)
    service.shadow({ api: { '*': true } })
    expect(await use(service, 9)).toBe(9)
    const peeked = await service.get('api').limiter.peek('ann')
    expect(peeked.limits.map(({ shadow }) => shadow)).toEqual([true, true])
    service.shadow({})
    expect(await use(service, 9)).toBe(0)
  })

  it('survive a reload until they are removed', async () => {
    const { service } = serviceOf({ limits: [sliding(2)], shadow: true })
    service.shadow({ api: { '*': false } })
    expect(await use(service, 9)).toBe(2)
    service.reload(configOf({ limits: [sliding(3)], shadow: true }))
    expect(await use(service, 9)).toBe(1)
  })
})
