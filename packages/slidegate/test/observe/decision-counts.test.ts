import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  concurrency,
  createLimiter,
  type Decision,
  fixedWindow,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type Source,
  slidingWindow,
  tokenBucket,
  withDenyCache,
  withLeases,
} from '../../src/index.ts'
import { DecisionCounts, type DecisionCountsSnapshot } from '../../src/observe/metrics.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { FAILURES, failing } from '../resilience/failing-store.ts'

const clock = new ManualClock()

function counted(options: LimiterOptions): { limiter: Limiter; counts: DecisionCounts; told: Decision[] } {
  const limiter = createLimiter({ store: memoryStore({ clock: clock.now }), logger: false, ...options })
  const counts = new DecisionCounts()
  const told: Decision[] = []
  limiter.on('decision', ({ decision }) => {
    counts.add(decision)
    told.push(decision)
  })
  return { limiter, counts, told }
}

/** Returns the expected counts, computed from all decisions at once. */
function recount(
  decisions: readonly Decision[],
): Omit<DecisionCountsSnapshot, 'limits'> & { limits: object[] } {
  const sources: Source[] = ['store', 'lease', 'denyCache', 'fallback', 'failOpen', 'failClosed']
  const known = decisions.filter(({ source }) => source !== 'failOpen' && source !== 'failClosed')
  const blocked = known.filter(({ deniedBy }) => deniedBy.includes('ban') || deniedBy.includes('block'))
  const asked = known.filter((decision) => !blocked.includes(decision))
  const names = new Set(asked.flatMap(({ limits }) => limits.map(({ name }) => name)))
  return {
    decisions: Object.fromEntries(
      sources.map((source) => {
        const own = decisions.filter((decision) => decision.source === source)
        const allowed = own.filter((decision) => decision.allowed).length
        return [source, { allowed, denied: own.length - allowed }]
      }),
    ) as DecisionCountsSnapshot['decisions'],
    blocked: blocked.length,
    bans: asked.filter(({ blockedMs }) => blockedMs !== undefined).length,
    limits: [...names].map((name) => {
      const verdicts = asked.flatMap(({ allowed, limits }) =>
        limits.filter((limit) => limit.name === name).map((limit) => ({ ...limit, isAdmitted: allowed })),
      )
      const shares = verdicts.map(({ allowed, limit, remaining }) => (allowed ? 1 - remaining / limit : 1))
      return {
        name,
        denials: verdicts.filter(({ allowed, shadow }) => !allowed && !shadow).length,
        shadowDenials: verdicts.filter(({ allowed, shadow }) => !allowed && shadow).length,
        nearLimit: verdicts.filter(
          ({ allowed, isAdmitted }, i) => allowed && isAdmitted && shares[i]! > 0.799,
        ).length,
        asked: verdicts.length,
        sum: Math.round(shares.reduce((sum, share) => sum + share, 0) * 1e6),
      }
    }),
  }
}

function summed({ limits, ...rest }: DecisionCountsSnapshot): ReturnType<typeof recount> {
  const rows = limits.map(({ utilization: { counts, sum }, ...row }) => ({
    ...row,
    asked: counts.reduce((total, count) => total + count, 0),
    sum: Math.round(sum * 1e6),
  }))
  return { ...rest, limits: rows }
}

describe('DecisionCounts', () => {
  const limits = [
    slidingWindow({ limit: 10, window: '10s', name: 'ten' }),
    fixedWindow({ limit: 7, window: '1m', name: 'shadowed', shadow: true }),
    tokenBucket({ capacity: 4, refill: 1, interval: '1s', name: 'bucket' }),
  ]

  it('gives the same counts one by one as all at once', async () => {
    const request = fc.record({
      key: fc.constantFrom('a', 'b'),
      cost: fc.integer({ min: 1, max: 5 }),
      afterMs: fc.integer({ min: 0, max: 2000 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 60 }), fc.boolean(), async (requests, isBanned) => {
        const ban = isBanned ? { ban: { after: 2, within: '5s' as const, for: '6s' as const } } : {}
        const { limiter, counts, told } = counted({ limits, ...ban })
        for (const { key, cost, afterMs } of requests) {
          clock.advance(afterMs)
          await limiter.consume(key, { cost })
        }
        expect(told.length).toBe(requests.length)
        expect(summed(counts.read())).toEqual(recount(told))
      }),
    )
  })

  it('counts a limit as near from 80% and as full at 100%', () => {
    const { limiter, counts } = counted({ limits: [slidingWindow({ limit: 10, window: '1h', name: 'ten' })] })
    const nears = Array.from({ length: 12 }, () => {
      limiter.consumeSync('k')
      return counts.read().limits[0]!.nearLimit
    })
    expect(nears).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3])
    const { utilization, denials } = counts.read().limits[0]!
    expect(utilization.bounds).toEqual([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1])
    expect(utilization.counts).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 3, 0])
    expect(denials).toBe(2)
  })

  it('counts only the decision if the usage is unknown', async () => {
    const store = failing(memoryStore(), FAILURES.rejects)
    for (const [onStoreError, source] of [
      ['allow', 'failOpen'],
      ['deny', 'failClosed'],
    ] as const) {
      const { limiter, counts } = counted({ limits, store, onStoreError })
      await limiter.consume('k')
      const { decisions, limits: rows, blocked, bans } = counts.read()
      const allowed = source === 'failOpen' ? 1 : 0
      expect(decisions[source]).toEqual({ allowed, denied: 1 - allowed })
      expect([rows, blocked, bans]).toEqual([[], 0, 0])
    }
  })

  it('counts decisions by source', async () => {
    const store = withDenyCache(withLeases(failing(memoryStore({ clock: clock.now }))))
    const { limiter, counts, told } = counted({
      limits: [slidingWindow({ limit: 400, window: '1m' })],
      store,
      timeoutMs: 30_000,
    })
    for (let i = 0; i < 500; i++) await limiter.consume('k')
    const { decisions } = counts.read()
    expect(decisions.store.allowed + decisions.lease.allowed).toBe(400)
    expect(decisions.lease.allowed).toBeGreaterThan(0)
    expect(decisions.denyCache.denied).toBeGreaterThan(0)
    expect(summed(counts.read())).toEqual(recount(told))
  })

  it('counts waits and permits', async () => {
    const { limiter, counts, told } = counted({
      limits: [concurrency({ limit: 2, ttl: '1m', name: 'slots' })],
    })
    await limiter.acquire('k')
    await limiter.schedule('k', () => {})
    await limiter.acquire('k')
    await limiter.acquire('k')
    expect(told.map(({ allowed }) => allowed)).toEqual([true, true, true, false])
    expect(counts.read().limits).toMatchObject([{ name: 'slots', denials: 1, nearLimit: 2 }])
  })
})

describe('bans', () => {
  it('count the denial that caused one, and the requests that it denied', async () => {
    const { limiter, counts } = counted({
      limits: [slidingWindow({ limit: 1, window: '1h', name: 'one' })],
      ban: { after: 2, within: '1h', for: '1h' },
    })
    for (let i = 0; i < 6; i++) await limiter.consume('k')
    // The requests: one admitted, one denied, one denied with a ban, and three denied by the ban.
    expect(counts.read()).toMatchObject({
      decisions: { store: { allowed: 1, denied: 5 } },
      ...{ bans: 1, blocked: 3 },
      limits: [{ denials: 2, utilization: { counts: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0] } }],
    })
  })
})

describe('a share of the limits, while the store is down', () => {
  it('counts denials but no utilization', async () => {
    const { limiter, counts } = counted({
      limits: [slidingWindow({ limit: 100, window: '1h', name: 'hundred' })],
      store: failing(memoryStore(), FAILURES.rejects),
      onStoreError: 'local',
      instances: 20,
    })
    for (let i = 0; i < 6; i++) await limiter.consume('k')
    const { decisions, limits: rows } = counts.read()
    expect(decisions.fallback).toEqual({ allowed: 5, denied: 1 })
    expect(rows).toMatchObject([{ name: 'hundred', denials: 1, nearLimit: 0, utilization: { sum: 0 } }])
  })
})

describe('limit names', () => {
  it('count in any order', () => {
    const one = slidingWindow({ limit: 10, window: '1h', name: 'one' })
    const two = slidingWindow({ limit: 10, window: '1h', name: 'two' })
    const { limiter, counts, told } = counted({ limits: (key) => (key === 'a' ? [one, two] : [two, one]) })
    for (const key of ['a', 'b', 'a', 'b', 'b']) limiter.consumeSync(key, { cost: 6 })
    expect(summed(counts.read())).toEqual(recount(told))
  })

  it('count together after the first 64', () => {
    const { limiter, counts } = counted({
      limits: (key) => [slidingWindow({ limit: 1, window: '1h', name: `limit-${key}` })],
    })
    for (let i = 0; i < 1000; i++) limiter.consumeSync(`${i}`)
    limiter.consumeSync('3')
    const { limits } = counts.read()
    expect(limits.map(({ name }) => name)).toEqual([
      ...Array.from({ length: 64 }, (_, i) => `limit-${i}`),
      'other',
    ])
    expect(limits[3]).toMatchObject({ denials: 1, nearLimit: 1 })
    expect(limits.at(-1)).toMatchObject({ nearLimit: 1000 - 64 })
  })

  it('include a limit named other', () => {
    const { limiter, counts } = counted({
      limits: (key) => [
        slidingWindow({ limit: 10, window: '1h', name: key === '0' ? 'other' : `limit-${key}` }),
      ],
    })
    for (let i = 0; i < 100; i++) limiter.consumeSync(`${i}`)
    const { limits } = counts.read()
    expect(limits.length).toBe(64)
    expect(limits[0]!.name).toBe('other')
    expect(limits[0]!.utilization.counts[0]).toBe(1 + 36)
  })

  it('include names of properties that all objects have', () => {
    const { limiter, counts } = counted({
      limits: ['constructor', '__proto__', 'toString'].map((name) =>
        slidingWindow({ limit: 10, window: '1h', name }),
      ),
    })
    limiter.consumeSync('k')
    expect(counts.read().limits.map(({ name, denials }) => [name, denials])).toEqual([
      ['constructor', 0],
      ['__proto__', 0],
      ['toString', 0],
    ])
  })
})
