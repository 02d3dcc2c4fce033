// tier: system
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLimiter, type Decision, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { anewClient, rareWayClient } from './rare-way.ts'

// Answers may stay correct for a long time after stored state has become wrong. So these tests check the invariants of
// packed-window.lua after each step of random histories.

const { redis } = await useRedis()

const HEADER = 39
const FRONT_END = 147
const PAGE = 48
const WIDTH = 12

interface StoredLog {
  readonly slots: number
  readonly head: number
  readonly pages: number
  readonly front: number
  readonly back: number
  /** Totals and stamps from the base to the newest record. */
  readonly totals: readonly number[]
  readonly stamps: readonly number[]
}

function parse(value: Buffer): StoredLog {
  const number = (at: number) => value.readUIntBE(at, 6)
  const [slots, head, pages] = [7, 35, 37].map((at) => value.readUInt16BE(at)) as [number, number, number]
  const [front, back] = [value[33]! % 16, value[34]!]
  const places = [
    ...Array.from({ length: front }, (_, i) => FRONT_END - (front - i) * WIDTH),
    ...Array.from({ length: 4 * pages }, (_, i) => {
      const slot = (head + Math.floor(i / 4)) % slots
      return FRONT_END + slot * PAGE + (i % 4) * WIDTH
    }),
    ...Array.from({ length: back }, (_, i) => HEADER + i * WIDTH),
    21,
  ]
  const totals = [number(15), ...places.map(number)]
  return { slots, head, pages, front, back, totals, stamps: places.map((at) => number(at + 6)) }
}

function expectSound(value: Buffer, most: number): void {
  const { slots, head, pages, front, back, totals, stamps } = parse(value)
  if (slots > 0) expect(value.length).toBe(FRONT_END + slots * PAGE)
  expect(head).toBeLessThanOrEqual(Math.max(0, slots - 1))
  expect(pages).toBeLessThanOrEqual(slots)
  expect(Math.max(front, back)).toBeLessThanOrEqual(4)
  if (pages > 0) expect(front).toBeGreaterThan(0)
  for (const numbers of [totals, stamps]) {
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  }
  expect(stamps.length).toBeLessThanOrEqual(most)
  expect(slots).toBeLessThanOrEqual(Math.ceil((most - 1) / 4))
}

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant('burst' as const), requests: fc.integer({ min: 1, max: 40 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 110 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('refund' as const),
      which: fc.nat(),
    }),
  },
)

const clients = {
  'normal commits': redis,
  'full rewrites': anewClient(redis),
  'the slow path': rareWayClient(redis),
}

test.each(Object.entries(clients))('stored logs keep their invariants with %s', async (name, client) => {
  const prefix = `slidegate:${name.replaceAll(' ', '-')}`
  let histories = 0
  const shape = {
    limit: fc.integer({ min: 5, max: 70 }),
    precision: fc.constantFrom(1, 1, 5),
    steps: fc.array(step, { minLength: 5, maxLength: 25, size: 'max' }),
  }
  const property = fc.asyncProperty(fc.record(shape), async ({ limit, precision, steps }) => {
    const clock = new ManualClock()
    const store = redisStore(client, { prefix, clock: clock.now })
    const limits = [
      slidingWindow({ limit, window: 100, precision }),
      slidingWindow({ limit, window: 30, precision, name: 'short' }),
    ]
    const limiter = createLimiter({ limits, store, timeoutMs: 30_000 })
    const key = `key${histories++}`
    const admitted: Decision[] = []
    const left = new Map<Decision, number>()

    const check = async () => {
      const [stored] = await redis.keys(`${prefix}:*:${key}:w*`)
      if (stored !== undefined) expectSound((await redis.getBuffer(stored))!, limit)
    }

    for (const each of steps) {
      if (each.type === 'wait') clock.advance(each.ms)
      if (each.type === 'burst') {
        // Each request has its own timestamp, but all share a batch.
        const pending: Promise<Decision>[] = []
        for (let i = 0; i < each.requests; i++) {
          pending.push(limiter.consume(key, { cost: 1 + (i % 2) }))
          clock.advance(1)
        }
        for (const decision of await Promise.all(pending)) {
          if (decision.allowed) left.set(decision, decision.cost)
          if (decision.allowed) admitted.push(decision)
        }
      }
      // Refund a few neighbors among the latest requests, most of which still count.
      const latest = each.type === 'refund' ? admitted.slice(-limit) : []
      const first = each.type === 'refund' ? each.which % (latest.length + 1) : 0
      for (const decision of latest.slice(first, first + 5)) {
        const units = left.get(decision)!
        if (units > 0) left.set(decision, units - (await limiter.refund(key, decision, units)))
        await check()
      }
      await check()
    }
  })
  await fc.assert(property, { numRuns: 60 })
})

test.each(Object.entries(clients))(
  'an empty log drops a large ring and keeps a small one, with %s',
  async (name, client) => {
    const prefix = `slidegate:rings-${name.replaceAll(' ', '-')}`
    const clock = new ManualClock()
    const store = redisStore(client, { prefix, clock: clock.now })
    const limiter = createLimiter({
      limits: [slidingWindow({ limit: 2000, window: '1m' })],
      store,
      timeoutMs: 30_000,
    })
    const key = async () => (await redis.keys(`${prefix}:*`))[0]!

    for (const [requests, isKept] of [
      [1000, false],
      [150, true],
      [1000, false],
    ] as const) {
      const pending: Promise<Decision>[] = []
      for (let i = 0; i < requests; i++) {
        pending.push(limiter.consume('k'))
        clock.advance(1)
      }
      expect((await Promise.all(pending)).at(-1)!.remaining).toBe(2000 - requests)
      const full = await redis.strlen(await key())
      expect(full).toBeGreaterThan(requests * WIDTH)
      clock.advance(60_000)
      for (const remaining of [1999, 1998, 1997, 1996]) {
        expect(await limiter.consume('k')).toMatchObject({ remaining, retryAfterMs: 0 })
        clock.advance(1)
      }
      expect(await redis.strlen(await key())).toBe(isKept ? full : HEADER + 3 * WIDTH)
      expect(await redis.pttl(await key())).toBeGreaterThan(60_000)
      clock.advance(60_000)
    }
  },
)
