// tier: integration
import { beforeEach, expect, it } from 'vitest'
import { concurrency, createLimiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { banLog } from '../../src/limits/ban.ts'
import { reservationLog } from '../../src/limits/concurrency.ts'
import { limitSet, withLog, withOverrides } from '../../src/limits/limit-set.ts'
import { FOREVER } from '../../src/limits/override.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { ConsumeOutcome, Op, Part } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { SAMPLES } from '../support/kinds.ts'
import { useRedis } from '../support/use-redis.ts'

// Concurrent requests share a call to Redis. Each op, and each later one, must be answered as if it were sent alone.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const limits = [
  slidingWindow({ limit: 5, window: '1m' }),
  concurrency({ limit: 5, ttl: '1m', name: 'held' }),
  slidingWindow({ limit: 7, window: '1m', name: 'each', log: 'zset' }),
]
const logs = [banLog({ after: 3, within: '1m', for: ['10s'] }), reservationLog(60_000)]
const set = withOverrides(logs.reduce(withLog, limitSet('l', limits)))
/** Windows on one log, as most requests have. */
const usual = limitSet(
  'u',
  [5, 8].map((limit) => slidingWindow({ limit, window: `${limit}s` })),
)

const KEYS = ['a', 'b', 'c'] as const
const partsOf = (key: string): Part[] => [{ key, set }]
const charged = set.logs.map(({ role }) => role === 'count')
const single = { cost: 2, count: 1, leaseMs: 0 } as const

const consumed = (key: string): Op => ({ type: 'consume', parts: partsOf(key), ...single, requestId: 'r' })
const refunded = { charged, units: 2, requestId: 'r' }
const settled = { reservation: 'e', units: 2, actual: 1, charged }

const OPS: Readonly<Record<string, (key: string, atMs: number) => Op>> = {
  consume: consumed,
  'consume, by a waiter': (key) => ({ ...consumed(key), requestId: 's', isWaiting: true }) as Op,
  peek: (key) => ({ type: 'peek', parts: partsOf(key), cost: 4, count: 1 }),
  charge: (key) => ({ type: 'charge', parts: partsOf(key), units: 3, requestId: 's' }),
  refund: (key, atMs) => ({ type: 'refund', parts: partsOf(key), atMs, ...refunded }),
  extend: (key) => ({ type: 'extend', parts: partsOf(key), requestId: 'r', units: 2 }),
  release: (key) => ({ type: 'release', parts: partsOf(key), requestId: 'r', units: 2 }),
  'release without a holder': (key) =>
    ({ type: 'release', parts: partsOf(key), requestId: 's', units: 2 }) as const,
  list: (key) => ({ type: 'list', parts: partsOf(key) }),
  settle: (key, atMs) => ({ type: 'settle', parts: partsOf(key), ...settled, instants: [atMs] }),
  'settle without a reservation': (key, atMs) =>
    ({ type: 'settle', parts: partsOf(key), ...settled, reservation: 'f', instants: [atMs] }) as const,
  block: (key) => ({ type: 'override', parts: partsOf(key), blockMs: 500 }),
  unblock: (key) => ({ type: 'override', parts: partsOf(key), blockMs: 0 }),
  'override numbers': (key) =>
    ({ type: 'override', parts: partsOf(key), rule: '{"held":{"limit":3}}', ruleMs: 1000 }) as const,
  exempt: (key) => ({ type: 'override', parts: partsOf(key), rule: 'exempt', ruleMs: 1000 }),
  explain: (key) => ({ type: 'explain', parts: partsOf(key), cost: 4, count: 1 }),
  reset: (key) => ({ type: 'reset', parts: partsOf(key) }),
}

it.each(Object.entries(OPS))('%s in a batch gets the same answer as alone', async (_, opOf) => {
  // The clock is unchanged, set back a little, or set back far enough that state is restamped.
  for (const backMs of [0, 400, 5000]) {
    await redis.flushall()
    const clocks = [new ManualClock(), new ManualClock()] as const
    const stores = [memoryStore({ clock: clocks[0].now }), redisStore(redis, { clock: clocks[1].now })]
    const answers: unknown[] = []
    for (const [i, store] of stores.entries()) {
      const first = KEYS.map((key) => ({ ...consumed(key), reservation: 'e' }) as Op)
      const [{ atMs }] = (await outcomesOf(store, first)) as [ConsumeOutcome]
      await outcomesOf(store, [
        {
          type: 'override',
          parts: partsOf('b'),
          rule: '{"5-per-1m":{"limit":3}}',
          ruleMs: FOREVER,
          blockMs: 1000,
        },
      ])
      clocks[i]!.advance(-backMs)
      const together = KEYS.flatMap((key) => [opOf(key, atMs), opOf(key, atMs)])
      answers.push(await outcomesOf(store, together))
      clocks[i]!.advance(2000)
      const looks = [OPS.list!, OPS.explain!].flatMap((look) => KEYS.map((key) => look(key, atMs)))
      answers.push(await outcomesOf(store, looks))
    }
    expect(answers.slice(2)).toEqual(answers.slice(0, 2))
  }
})

it('consume on windows alone takes earlier ops of its batch into account', async () => {
  const clock = new ManualClock()
  const answers: unknown[] = []
  for (const store of [memoryStore({ clock: clock.now }), redisStore(redis, { clock: clock.now })]) {
    const ops = [2, 1, 3, 2, 1].map(
      (cost): Op => ({ ...single, type: 'consume', parts: [{ key: 'k', set: usual }], cost }),
    )
    answers.push(await outcomesOf(store, ops))
  }
  expect(answers[1]).toEqual(answers[0])
})

it.each(Object.entries(SAMPLES))('%s keeps the state of keys in one batch separate', async (_, { make }) => {
  const counted = limitSet('s', [make({ limit: 2 })])
  const answers: unknown[] = []
  for (const storeOf of [memoryStore, (options: { clock: () => number }) => redisStore(redis, options)]) {
    const clock = new ManualClock()
    const store = storeOf({ clock: clock.now })
    const ask = async (...keys: string[]) => {
      const names = { requestId: 'r', value: 'v' }
      const ops = keys.map(
        (key): Op => ({ ...single, type: 'consume', parts: [{ key, set: counted }], cost: 1, ...names }),
      )
      return outcomesOf(store, ops)
    }
    const outcomes = [await ask('ahead', 'ahead too')]
    // After a step back of more than a second, charges count as if made now.
    clock.advance(-2000)
    outcomes.push(await ask('new', 'ahead', 'newer', 'ahead too', 'newest'))
    clock.advance(9000)
    outcomes.push(await ask('new', 'ahead', 'newer', 'unknown', 'ahead too'))
    answers.push(outcomes)
  }
  expect(answers[1]).toEqual(answers[0])
})

it("a request isn't joined with one before another that shares a key", async () => {
  const own = [slidingWindow({ limit: 9, window: '1m' })]
  const store = redisStore(redis)
  const limiter = createLimiter({ dimensions: { user: own, ip: own }, store, timeoutMs: 30_000 })
  const alone = { key: { user: null, ip: 'x' } }
  const both = { key: { user: 'a', ip: 'x' } }
  const decisions = await limiter.consumeMany([alone, alone, both, alone, alone, both, alone])
  expect(decisions.map(({ limits }) => limits.at(-1)!.remaining)).toEqual([8, 7, 6, 5, 4, 3, 2])
})

it("a page of overrides shares a batch with decisions, and doesn't affect their keys", async () => {
  const clock = new ManualClock()
  const store = redisStore(redis, { clock: clock.now, buckets: 1 })
  const rule = { rule: 'exempt', ruleMs: FOREVER } as const
  await outcomesOf(store, [{ type: 'override', parts: partsOf('b'), ...rule }])
  const page: Op = { type: 'overrides', parts: partsOf(''), bucket: 0, after: '' }
  const outcomes = await outcomesOf(store, [consumed('a'), page, consumed('b'), page, consumed('c')])
  const listed = { overrides: [{ key: 'b', rule: 'exempt', ruleMs: FOREVER, blockedMs: 0 }], buckets: 1 }
  expect(outcomes).toMatchObject([{ admitted: 1 }, listed, { admitted: 1 }, listed, { admitted: 1 }])
  const looks = await outcomesOf(
    store,
    ['a', 'b', 'c'].map((key) => OPS.peek!(key, 0)),
  )
  expect(looks.map((look) => (look as ConsumeOutcome).limits[0])).toEqual([2, 2, 2])
})
