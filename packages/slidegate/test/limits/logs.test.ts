// tier: integration
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  type Decision,
  type Limiter,
  memoryStore,
  type SlidingWindowOptions,
  slidingWindow,
} from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import type { Op, RefundOp, Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { anewClient, rareWayClient } from '../history/rare-way.ts'
import { useRedis } from '../support/use-redis.ts'

// Tests the same window, stored in three ways.

const { redis } = await useRedis()

const redisBy =
  (client: RedisClient) =>
  (clock: ManualClock): Store =>
    redisStore(client, { clock: clock.now, prefix: `slidegate:${randomUUID()}` })

const STORES: Readonly<Record<string, (clock: ManualClock) => Store>> = {
  memory: (clock) => memoryStore({ clock: clock.now }),
  Redis: redisBy(redis),
  'Redis, rewriting each log': redisBy(anewClient(redis)),
  'Redis, using only the rare operations': redisBy(rareWayClient(redis)),
}
const LOGS = ['packed', 'zset', 'stream'] as const
type Log = (typeof LOGS)[number]

interface World {
  readonly clock: ManualClock
  limiterOf(...limits: Omit<SlidingWindowOptions, 'log'>[]): Limiter
}

function worldOf(storeOf: (clock: ManualClock) => Store, log: Log): World {
  const clock = new ManualClock()
  const store = storeOf(clock)
  const limiterOf = (...limits: Omit<SlidingWindowOptions, 'log'>[]) =>
    createLimiter({
      limits: limits.map((options) => slidingWindow({ ...options, log })),
      store,
      timeoutMs: 30_000,
    })
  return { clock, limiterOf }
}

const costs = async (limiter: Limiter, asked: readonly number[]) =>
  await Promise.all(asked.map(async (cost) => (await limiter.peek('k', { cost })).retryAfterMs))

describe.each(Object.entries(STORES))('%s', (_, storeOf) => {
  describe.each(LOGS)('%s', (log) => {
    it('counts a request until its last millisecond', async () => {
      const { clock, limiterOf } = worldOf(storeOf, log)
      const limiter = limiterOf({ limit: 2, window: 10 })
      for (const [waitMs, allowed, retryAfterMs] of [
        [0, true, 0],
        [9, true, 0],
        [0, false, 1],
        [1, true, 0],
        [0, false, 9],
        [8, false, 1],
        [1, true, 0],
        [10_000, true, 0],
      ] as const) {
        clock.advance(waitMs)
        expect(await limiter.consume('k')).toMatchObject({ allowed, retryAfterMs })
      }
    })

    it('reports for each cost when the request that blocks it leaves', async () => {
      const { clock, limiterOf } = worldOf(storeOf, log)
      const limiter = limiterOf({ limit: 100, window: '1m' })
      // Charges 1 + 2 + ... + 13 units, a second apart.
      for (let cost = 1; cost <= 13; cost++) {
        expect((await limiter.consume('k', { cost })).resetAfterMs).toBe(60_000)
        clock.advance(1000)
      }
      const left = 9
      const inTheWay = (cost: number) => {
        let sum = 0
        let request = 0
        while (sum < cost - left) sum += ++request
        return request === 0 ? 0 : 60_000 - 13_000 + (request - 1) * 1000
      }
      const asked = Array.from({ length: 100 }, (_, i) => i + 1)
      expect(await costs(limiter, asked)).toEqual(asked.map(inTheWay))
      expect(await costs(limiter, [101])).toEqual([Number.POSITIVE_INFINITY])
    })

    it('finds the blocking request among thousands, however they are spaced', async () => {
      const { clock, limiterOf } = worldOf(storeOf, log)
      const limiter = limiterOf({ limit: 3000, window: '1h' })
      const times: number[] = []
      const ask = async (requests: number, stepMs: number) => {
        const pending = []
        for (let i = 0; i < requests; i++) {
          times.push(clock.now())
          pending.push(limiter.consume('k'))
          clock.advance(stepMs)
        }
        await Promise.all(pending)
      }
      await ask(1, 2_000_000)
      await ask(900, 0)
      await ask(700, 1)
      await ask(10, 100_000)
      await ask(900, 0)
      clock.advance(17)
      await ask(489, 3)
      const asked = [1, 2, 3, 500, 901, 902, 903, 1300, 1601, 1602, 1606, 1611, 1612, 2511, 2512, 2700, 3000]
      expect(await costs(limiter, asked)).toEqual(
        asked.map((cost) => 3_600_000 - (clock.now() - times[cost - 1]!)),
      )
    })

    it('refunds a whole request once, which makes room immediately', async () => {
      const { clock, limiterOf } = worldOf(storeOf, log)
      const limiter = limiterOf({ limit: 100, window: '10s' })
      const decisions: Decision[] = []
      for (let i = 0; i < 40; i++) {
        decisions.push(await limiter.consume('k', { cost: 1 + (i % 3) }))
        if (i % 2 === 0) clock.advance(100)
      }
      let { remaining } = await limiter.peek('k')
      for (const i of [39, 0, 17, 18, 19, 5, 38, 36, 1]) {
        const { cost } = decisions[i]!
        expect(await limiter.refund('k', decisions[i]!)).toBe(cost)
        expect(await limiter.refund('k', decisions[i]!)).toBe(0)
        remaining += cost
        expect((await limiter.peek('k')).remaining).toBe(remaining)
      }
      for (let i = 0; i < 40; i++) expect(await limiter.refund('k', decisions[i]!)).toBeGreaterThanOrEqual(0)
      expect(await limiter.peek('k')).toMatchObject({ remaining: 100, resetAfterMs: 0 })
    })

    it(`${log === 'packed' ? 'refunds' : 'rejects'} a part of a request`, async () => {
      const { limiterOf } = worldOf(storeOf, log)
      const limiter = limiterOf({ limit: 5, window: '1s' })
      const decision = await limiter.consume('k', { cost: 3 })
      const returned = limiter.refund('k', decision, 2)
      if (log === 'packed') expect(await returned).toBe(2)
      else await expect(returned).rejects.toMatchObject({ code: 'invalid_refund' })
      expect((await limiter.peek('k')).remaining).toBe(log === 'packed' ? 4 : 2)
    })

    if (log === 'packed')
      it('refunds a request if at most 256 were charged since, even with a small limit', async () => {
        const { clock, limiterOf } = worldOf(storeOf, log)
        const limiter = limiterOf({ limit: 3, window: '10s' })
        const decisions = [await limiter.consume('k'), await limiter.consume('k')]
        clock.advance(1)
        const third = await limiter.consume('k')
        for (let i = 0; i < 256; i++) {
          clock.advance(1)
          await limiter.charge('k', 1)
        }
        expect(await limiter.refund('k', decisions[0]!)).toBe(0)
        expect(await limiter.refund('k', third)).toBe(1)
        // The next request is now the oldest.
        expect(await limiter.refund('k', decisions[1]!)).toBe(1)
        expect(await limiter.peek('k')).toMatchObject({ remaining: 0, retryAfterMs: 10_000 - 2 })
      })

    if (log === 'packed')
      it('restamps units that counted when the clock is set back by an hour', async () => {
        const { clock, limiterOf } = worldOf(storeOf, log)
        const limiter = limiterOf({ limit: 2, window: '10s', precision: '1s' })
        clock.set(3_600_000_000)
        for (let i = 0; i < 2; i++) {
          clock.advance(11_000)
          await limiter.consume('k', { cost: 2 })
        }
        clock.advance(-3_600_000 + 700)
        expect((await limiter.explain('k', { charges: true })).limits[0]!.charges).toEqual([
          { atMs: clock.now() - 700, units: 2 },
        ])
        for (const ask of ['peek', 'consume', 'consume', 'peek'] as const) {
          expect(await limiter[ask]('k')).toMatchObject({ allowed: false, retryAfterMs: 10_999 - 700 })
        }
        await limiter.charge('k', 1)
        clock.advance(10_999 - 701)
        expect((await limiter.peek('k')).retryAfterMs).toBe(1)
        clock.advance(1)
        expect((await limiter.peek('k')).remaining).toBe(2)
      })

    if (log === 'packed')
      it('counts the newest 2^46 units, even after the clock was set back', async () => {
        const { clock, limiterOf } = worldOf(storeOf, log)
        const limiter = limiterOf({ limit: 2 ** 40, window: '10s', precision: 10 })
        const startMs = clock.now() - (clock.now() % 10)
        clock.set(startMs)
        for (let i = 0; i < 30; i++) {
          await limiter.charge('k', i % 3 === 0 ? Number.MAX_SAFE_INTEGER : 2 ** 40 + i)
          clock.advance(10)
        }
        expect(await limiter.peek('k')).toMatchObject({ remaining: 0, retryAfterMs: 10_009 - 10 })
        clock.set(startMs + 9)
        clock.advance(-3_600_000)
        for (const waitMs of [0, 10, 20]) {
          clock.advance(waitMs)
          await limiter.charge('k', 1)
        }
        const last = await limiter.consume('k')
        expect(last).toMatchObject({ allowed: false, retryAfterMs: 10_009 - 9 - 30 })
        clock.advance(last.retryAfterMs)
        expect(await limiter.peek('k')).toMatchObject({ remaining: 2 ** 40 - 2, resetAfterMs: 30 })
        const next = await limiter.consume('k', { cost: 3 })
        expect(await limiter.refund('k', next)).toBe(3)
        expect((await limiter.peek('k')).remaining).toBe(2 ** 40 - 2)
      })

    if (log === 'packed')
      it('neither refunds nor explains units dropped beyond 2^46', async () => {
        const { clock, limiterOf } = worldOf(storeOf, log)
        const limiter = limiterOf({ limit: 2 ** 40, window: '10s', precision: 10 })
        clock.set(clock.now() - (clock.now() % 10))
        const first = await limiter.consume('k', { cost: 5 })
        await limiter.charge('k', 2 ** 46)
        clock.advance(10)
        await limiter.charge('k', 2 ** 46)
        clock.advance(10)
        await limiter.charge('k', 3)
        clock.advance(1)
        for (let i = 0; i < 2; i++) await limiter.charge('k', 2 ** 46)
        expect(await limiter.refund('k', first)).toBe(0)
        const { charges } = (await limiter.explain('k', { charges: true })).limits[0]!
        expect(charges).toEqual([{ atMs: clock.now() - 1, units: 2 ** 47 }])
        clock.advance(10_009 - 2)
        expect((await limiter.peek('k')).remaining).toBe(0)
        clock.advance(1)
        expect((await limiter.peek('k')).remaining).toBe(2 ** 40)
      })

    it('refunds any request of an old log without affecting others', async () => {
      const { clock, limiterOf } = worldOf(storeOf, log)
      const limiter = limiterOf({ limit: 60, window: 100 })
      const decisions: Decision[] = []
      for (let i = 0; i < 200; i++) {
        decisions.push(await limiter.consume('k'))
        clock.advance(2)
        if (i < 60 || i % 7 > 0) continue
        const { remaining } = await limiter.peek('k')
        expect(await limiter.refund('k', decisions.at(-31 + (i % 5))!)).toBe(1)
        expect((await limiter.peek('k')).remaining).toBe(remaining + 1)
      }
    })

    if (log === 'packed')
      it('after more than 2^46 units, those that count leave one by one', async () => {
        const { clock, limiterOf } = worldOf(storeOf, log)
        const cost = 2 ** 37
        const limiter = limiterOf({ limit: 8 * cost, window: 1000 })
        const pending: Promise<Decision>[] = []
        for (let i = 0; i < 1100; i++) {
          pending.push(limiter.consume('k', { cost }))
          clock.advance(125)
        }
        const decisions = await Promise.all(pending)
        expect(decisions.every(({ allowed }) => allowed)).toBe(true)
        expect(await costs(limiter, [cost, cost + 1, 5 * cost, 8 * cost])).toEqual([0, 125, 500, 875])
        expect(await limiter.refund('k', decisions.at(-3)!)).toBe(cost)
        expect(await costs(limiter, [2 * cost, 5 * cost, 7 * cost, 8 * cost])).toEqual([0, 375, 750, 875])
      })

    it('reports the wait after charges beyond the limit, and beyond what a log keeps', async () => {
      const { clock, limiterOf } = worldOf(storeOf, log)
      const limiter = limiterOf({ limit: 10_000, window: '10s' })
      await limiter.consume('k', { cost: 9999 })
      clock.advance(1000)
      await limiter.charge('k', 5)
      expect(await costs(limiter, [1, 9995, 9996])).toEqual([9000, 9000, 10_000])
      clock.advance(1000)
      await limiter.charge('k', 12_345)
      expect(await costs(limiter, [1, 10_000])).toEqual([10_000, 10_000])
      clock.advance(1000)
      await limiter.charge('k', 10_000)
      await limiter.charge('k', 3)
      expect(await costs(limiter, [1, 9997, 9998, 10_000])).toEqual([10_000, 10_000, 10_000, 10_000])
      clock.advance(9999)
      expect(await limiter.peek('k')).toMatchObject({ allowed: false, remaining: 0 })
      clock.advance(1)
      expect(await limiter.consume('k', { cost: 10_000 })).toMatchObject({ allowed: true, remaining: 0 })
    })

    if (log !== 'packed')
      it('lists only what a log keeps of larger charges', async () => {
        const { limiterOf } = worldOf(storeOf, log)
        const limiter = limiterOf({ limit: 50, window: '10s' })
        await limiter.charge('k', 12_345)
        expect((await limiter.list('k'))[0]!.entries.map(({ units }) => units)).toEqual([10_000])
      })

    it("doesn't advance until a clock set back by half a second catches up", async () => {
      const { clock, limiterOf } = worldOf(storeOf, log)
      const limiter = limiterOf({ limit: 4, window: '1s' })
      const first = await limiter.consume('k')
      clock.advance(600)
      const second = await limiter.consume('k')
      clock.advance(-500)
      const third = await limiter.consume('k', { cost: 2 })
      expect([second.atMs, third.atMs]).toEqual([first.atMs + 600, first.atMs + 600])
      expect(await costs(limiter, [1, 2])).toEqual([400, 1000])
      expect(await limiter.refund('k', third)).toBe(2)
      clock.set(first.atMs + 999)
      expect((await limiter.peek('k')).remaining).toBe(2)
      clock.advance(1)
      expect((await limiter.peek('k')).remaining).toBe(3)
    })

    it('refunds nothing that left the window before the clock was set back by an hour', async () => {
      const { clock, limiterOf } = worldOf(storeOf, log)
      const limiter = limiterOf({ limit: 6, window: '10s' })
      const gone = await limiter.consume('k', { cost: 2 })
      clock.advance(10_000)
      await limiter.consume('k')
      clock.advance(-3_600_000)
      expect(await limiter.refund('k', gone)).toBe(0)
      expect((await limiter.consume('k')).remaining).toBe(4)
    })

    it('refunds later requests of a large log after the clock was set back by an hour', async () => {
      const { clock, limiterOf } = worldOf(storeOf, log)
      const limiter = limiterOf({ limit: 60, window: '10s' })
      for (let i = 0; i < 40; i++) {
        await limiter.consume('k')
        clock.advance(1)
      }
      clock.advance(-3_600_000)
      for (let i = 0; i < 15; i++) {
        const decision = await limiter.consume('k')
        expect(await limiter.refund('k', decision)).toBe(1)
        clock.advance(1)
        expect((await limiter.consume('k')).remaining).toBe(19 - i)
      }
      clock.advance(10_000 - 15)
      expect((await limiter.peek('k')).remaining).toBe(60 - 15)
    })
  })
})

type LeasingStep =
  | { readonly type: 'consume'; readonly who: number; readonly cost: number; readonly leaseMs: number }
  | { readonly type: 'peek'; readonly who: number }
  | { readonly type: 'explain'; readonly who: number }
  | { readonly type: 'wait'; readonly ms: number }
  | { readonly type: 'refund'; readonly which: number }

const leasing: fc.Arbitrary<LeasingStep> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('consume' as const),
      who: fc.nat(2),
      cost: fc.integer({ min: 1, max: 3 }),
      leaseMs: fc.constantFrom(0, 0, 30, 100, 400),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constantFrom('peek' as const, 'explain' as const), who: fc.nat(2) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('refund' as const), which: fc.nat(5) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('wait' as const),
      ms: fc.oneof(fc.nat(3), fc.nat(150), fc.constantFrom(100, 130, 200, 400, 500, -3000)),
    }),
  },
)

it('leases of limiters with different windows count equally in all stores', () =>
  fc.assert(
    fc.asyncProperty(fc.array(leasing, { minLength: 5, maxLength: 40, size: 'max' }), async (steps) => {
      const clock = new ManualClock()
      const stores = Object.values(STORES).map((storeOf) => storeOf(clock))
      const sets = [
        [slidingWindow({ limit: 12, window: 100 })],
        [slidingWindow({ limit: 30, window: 300 })],
        [slidingWindow({ limit: 8, window: 50, name: 'short' }), slidingWindow({ limit: 20, window: 130 })],
      ].map((limits) => limitSet('leases', limits))
      const charges: RefundOp[] = []
      const opOf = (step: Exclude<LeasingStep, { type: 'wait' }>): Op | undefined => {
        if (step.type === 'refund') return charges.at(-1 - step.which)
        const parts = [{ key: 'k', set: sets[step.who]! }]
        if (step.type === 'explain') return { type: 'explain', parts, cost: 1, count: 1, charges: 9 }
        if (step.type === 'peek') return { type: 'peek', parts, cost: 1, count: 1 }
        const { cost, leaseMs } = step
        charges.push({ type: 'refund', parts, units: 2, atMs: clock.now(), charged: [true] })
        return { type: 'consume', parts, cost, count: 1, leaseMs }
      }
      for (const each of steps) {
        if (each.type === 'wait') {
          clock.advance(each.ms)
          continue
        }
        const op = opOf(each)
        if (op === undefined) continue
        const answers = await Promise.all(stores.map((store) => outcomesOf(store, [op])))
        for (const answer of answers) expect(answer).toEqual(answers[0])
      }
    }),
    { numRuns: 60 },
  ))
