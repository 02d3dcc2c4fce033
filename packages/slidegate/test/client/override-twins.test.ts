// tier: integration
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { FOREVER } from '../../src/limits/override.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { WIRE_VERSION } from '../../src/stores/remote/bodies.ts'
import { serveStore } from '../../src/stores/remote/index.ts'
import type { OverridesOutcome } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'

// Whatever rules a client writes, however little they fit: both stores are held to the same of it.

const { redis } = await useRedis()

const limits = [
  { kind: 'slidingWindow', limit: 3, window: 1000, name: 'sliding' },
  { kind: 'slidingWindow', limit: 5, window: 60_000, precision: 1000, name: 'coarse' },
  { kind: 'slidingWindow', limit: 9, window: 1000, log: 'zset', name: 'kept' },
  { kind: 'tokenBucket', capacity: 5, refill: 1, interval: 1000, name: 'bucket' },
  { kind: 'fixedWindow', limit: 4, window: 1000, name: 'fixed' },
  { kind: 'slidingCounter', limit: 4, window: 1000, name: 'counter' },
  { kind: 'concurrency', limit: 4, ttl: 1000, name: 'held' },
]
const number = fc.oneof(
  fc.integer({ min: 1, max: 12 }),
  fc.constantFrom(
    10,
    999,
    1000,
    1001,
    10_000,
    10_001,
    65_536,
    65_537,
    31_622_400_000,
    31_622_400_001,
    2 ** 40,
  ),
)
const numbers = fc.record(
  { limit: number, windowMs: number, capacity: number, refill: number },
  { requiredKeys: [] },
)
const names = fc.constantFrom('', '__proto__', 'constructor', 'other', ...limits.map(({ name }) => name))
const rule = fc.oneof(
  { weight: 6, arbitrary: fc.dictionary(names, numbers, { maxKeys: 3 }).map((each) => JSON.stringify(each)) },
  { weight: 1, arbitrary: fc.constantFrom('', 'exempt') },
)
const event = fc.record({
  op: fc.oneof(
    fc.record({
      ...{ type: fc.constant('override'), rule, ruleMs: fc.constantFrom(0, 1, 700, FOREVER) },
      blockMs: fc.constantFrom(undefined, undefined, undefined, 0, 300, FOREVER),
    }),
    fc.record({
      ...{ type: fc.constant('consume'), cost: fc.integer({ min: 1, max: 6 }) },
      count: fc.constant(1),
    }),
    fc.constant({ type: 'explain', cost: 1, count: 1 }),
  ),
  ms: fc.constantFrom(0, 1, 10, 300, 1000),
})
const history = fc.record({
  limits: fc.subarray(limits, { minLength: 1 }),
  startMs: fc.constantFrom(10_000_000_123, 1_700_000_000_000),
  events: fc.array(event, { minLength: 2, maxLength: 12 }),
})

it('a rule means the same in memory and in Redis', async () => {
  await fc.assert(
    fc.asyncProperty(history, async ({ limits, startMs, events }) => {
      const clock = new ManualClock(startMs)
      const stores = [
        memoryStore({ clock: clock.now }),
        redisStore(redis, { prefix: `slidegate:test:${randomUUID()}`, clock: clock.now }),
      ].map((store) => serveStore(store, { timeoutMs: 30_000 }))
      const isKept = limits.some(({ name }) => name === 'kept' || name === 'held')
      for (const [i, { op, ms }] of events.entries()) {
        const id = isKept && op.type === 'consume' ? { requestId: `r${i}` } : {}
        const own = op.type === 'consume' ? { leaseMs: 0 } : {}
        const ops = [{ ...op, ...own, ...id, parts: [[0, 'ann']] }]
        const body = JSON.stringify({
          version: WIRE_VERSION,
          ...{ sets: [{ limiter: 'mine', limits, isOverridable: true }], ops },
        })
        const [memory, inRedis] = await Promise.all(stores.map((serve) => serve(JSON.parse(body), () => {})))
        expect(JSON.parse(JSON.stringify(inRedis!.outcomes)), body).toEqual(
          JSON.parse(JSON.stringify(memory!.outcomes)),
        )
        expect(memory!.outcomes[0]).not.toHaveProperty('error')
        clock.advance(ms)
      }
    }),
    { numRuns: 400 },
  )
})

it.each(['memory', 'Redis'])('a page reads 250 overrides or 64 KiB, ended ones too, on %s', async (kind) => {
  const clock = new ManualClock()
  const prefix = `slidegate:test:${randomUUID()}`
  const inRedis = () => redisStore(redis, { prefix, buckets: 1, clock: clock.now })
  const store = kind === 'Redis' ? inRedis() : memoryStore({ clock: clock.now })
  const serve = serveStore(store, { timeoutMs: 30_000 })
  const ask = async (limiter: string, op: object) => {
    const sets = [{ limiter, limits: [], isOverridable: true }]
    return (await serve({ version: WIRE_VERSION, sets, ops: [op] }, () => {})).outcomes[0] as OverridesOutcome
  }
  const sizesOf = async (limiter: string) => {
    const sizes: number[] = []
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page: OverridesOutcome = await ask(limiter, {
        type: 'overrides',
        parts: [[0, '']],
        bucket: 0,
        after,
      })
      sizes.push(page.overrides.length)
      after = page.next
    }
    return sizes
  }
  const write = (limiter: string, i: number, more: object) =>
    ask(limiter, { type: 'override', parts: [[0, `k${1000 + i}`]], blockMs: FOREVER, ...more })
  for (let i = 0; i < 510; i++) await write('many', i, {})
  for (let i = 0; i < 5; i++)
    await write('long', i, { given: ['x'.repeat(40_000)], blockMs: i < 2 ? 10 : FOREVER })
  clock.advance(10)
  expect(await sizesOf('many')).toEqual([250, 250, 10])
  expect(await sizesOf('long')).toEqual([0, 2, 1])
})
