import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { createLimiter, type Limit, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { describe, expect, it } from 'vitest'
import { onlyKey } from '../src/redis/copies.ts'
import { bytesOf, commandsOf } from '../src/redis/info.ts'
import { ZSET_LOG } from '../src/redis/scripts.ts'
import { withRedis } from '../src/redis/with-redis.ts'

// Bounds on what a decision costs Redis, in units that don't depend on the machine.
// The bounds are slightly above the measured values. If you make a decision cheaper, lower them.

/** Maximum number of keys per call. */
const PER_CALL = 128
/** Fills two calls. Fewer keys would be split unevenly. */
const KEYS = 2 * PER_CALL
/** Enough where only commands per decision are counted. */
const FEW_KEYS = 32
const START_MS = 1_700_000_000_000

/** All keys have one request per second, at the same time. Their windows fill up. */
function traffic(redis: Redis, limits: Limit[], count = KEYS) {
  const keys = Array.from({ length: count }, (_, i) => `user:${100_000 + i}`)
  let nowMs = START_MS
  const limiter = createLimiter({
    limits,
    store: redisStore(redis, { clock: () => nowMs }),
    timeoutMs: 60_000,
  })
  const ask = async () =>
    (await Promise.all(keys.map((key) => limiter.consume(key)))).map(({ allowed }) => allowed)
  return {
    async admit(times: number) {
      for (let i = 0; i < times; i++) {
        nowMs += 1000
        assert((await ask()).every((allowed) => allowed))
      }
    },
    async deny(times: number) {
      for (let i = 0; i < times; i++) assert(!(await ask()).some((allowed) => allowed))
    },
  }
}

const perSecond = (limit: number) => slidingWindow({ limit, window: limit * 1000 })

describe('the number of commands per decision', () => {
  it.each([
    ['10 per window', [perSecond(10)], { getrange: 1.26, setrange: 1.26, pexpire: 0.26 }],
    ['100 per window', [perSecond(100)], { getrange: 1.26, setrange: 1.26, pexpire: 0.05 }],
    ['1,000 per window', [perSecond(1000)], { getrange: 1.26, setrange: 1.26, pexpire: 0.02 }],
    [
      'three windows',
      [perSecond(10), perSecond(100), perSecond(1000)],
      { getrange: 3.8, setrange: 1.26, pexpire: 0.02 },
    ],
  ])('stays within its bounds for admissions into full windows, %s', async (_, limits, bounds) => {
    await withRedis(async (redis) => {
      const { admit } = traffic(redis, limits, FEW_KEYS)
      await admit(limits.at(-1)!.limit + 4)
      const commands = await commandsOf(redis, () => admit(80))
      commands.delete('evalsha')
      for (const [name, calls] of commands) {
        expect([name, calls / (80 * FEW_KEYS)]).toEqual([name, expect.toSatisfy(atMost(bounds, name))])
      }
    })
  })

  it('equals one read for a denial', async () => {
    await withRedis(async (redis) => {
      const { admit, deny } = traffic(redis, [slidingWindow({ limit: 10, window: '1h' })])
      await admit(10)
      const commands = await commandsOf(redis, () => deny(5))
      expect(Object.fromEntries(commands)).toEqual({ evalsha: (5 * KEYS) / PER_CALL, getrange: 5 * KEYS })
    })
  })
})

function atMost(bounds: Readonly<Record<string, number>>, name: string) {
  return (perDecision: number) => perDecision <= (bounds[name] ?? 0)
}

describe('a call on a log of 65,536 records, half of them expired', () => {
  it('reads a few pages and writes at most two', async () => {
    await withRedis(async (redis) => {
      let nowMs = START_MS
      const limiter = createLimiter({
        limits: [slidingWindow({ limit: 65_536, window: '2m' })],
        store: redisStore(redis, { clock: () => nowMs }),
        timeoutMs: 60_000,
      })
      for (let sent = 0; sent < 65_536; sent += 512) {
        await Promise.all(
          Array.from({ length: 512 }, (_, i) => {
            nowMs = START_MS + sent + i
            return limiter.consume('user:1')
          }),
        )
      }
      nowMs = START_MS + 120_000 + 32_768
      const denied = await commandsOf(redis, () => limiter.peek('user:1', { cost: 60_000 }))
      expect(denied.get('getrange')).toBeLessThanOrEqual(60)
      const admitted = await commandsOf(redis, () => limiter.consume('user:1'))
      expect(admitted.get('getrange')).toBeLessThanOrEqual(6)
      expect(admitted.get('setrange')).toBeLessThanOrEqual(2)
    })
  })
})

const isNearOne = (ratio: number) => ratio > 0.7 && ratio < 1.25

/** Memory of Redis, once other clients are disconnected and their buffers are freed. */
async function usedMemory(redis: Redis): Promise<number> {
  await expect.poll(() => redis.info('clients')).toContain('connected_clients:1\r')
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1])
}

describe('the memory per admitted request after three windows', () => {
  it.each([
    [1000, 12.5],
    [10_000, 13.2],
  ])('stays within its bound for a limit of %i', async (limit, bound) => {
    await withRedis(async (redis) => {
      let nowMs = START_MS
      const limiter = createLimiter({
        limits: [slidingWindow({ limit, window: limit })],
        store: redisStore(redis, { clock: () => nowMs }),
        timeoutMs: 60_000,
      })
      for (let sent = 0; sent < 3 * limit; sent += 500) {
        const asks = Array.from({ length: 500 }, () => {
          nowMs++
          return limiter.consume('user:1')
        })
        assert((await Promise.all(asks)).every(({ allowed }) => allowed))
      }
      expect((await bytesOf(redis, [await onlyKey(redis, 'slidegate:*')])) / limit).toBeLessThanOrEqual(bound)
    })
  })
})

/** The bytes in Redis of a key that docs/production.md states. */
function documentedBytes(limit: number, records: number): number {
  if (records < 6) return records === 1 ? 190 : 260
  return 250 + 14 * Math.min(limit, 2 ** Math.ceil(Math.log2(records)))
}

it('a key takes as much memory as docs/production.md states', async () => {
  // Each case has enough keys that a client's buffers, up to 40 kB, don't distort the result.
  for (const [limit, records, count] of [
    [2000, 1, 2000],
    [2000, 5, 2000],
    [2000, 30, 800],
    [2000, 160, 150],
    [100, 100, 250],
    [600, 600, 60],
  ] as const) {
    const keys = Array.from({ length: count }, (_, i) => `user:${100_000 + i}`)
    await withRedis(async (redis) => {
      let nowMs = START_MS
      const ask = async (sent: readonly string[], times: number) => {
        const client = redis.duplicate()
        const limiter = createLimiter({
          limits: [slidingWindow({ limit, window: '1h', precision: 10 })],
          store: redisStore(client, { clock: () => nowMs }),
          timeoutMs: 60_000,
        })
        for (let i = 0; i < times; i++) {
          nowMs += 10
          await Promise.all(sent.map((key) => limiter.consume(key)))
        }
        client.disconnect()
      }
      // The first key grows shared tables of the server.
      await ask(['first'], 1)
      const before = await usedMemory(redis)
      await ask(keys, records)
      const bytes = ((await usedMemory(redis)) - before) / count
      const what = `${records} records with a limit of ${limit}: ${bytes} bytes`
      expect(bytes / documentedBytes(limit, records), what).toSatisfy(isNearOne)
    })
  }
})

describe('the time within Redis for an admission into a full window', () => {
  // The minimum of many short turns, because noise only makes turns longer.
  it('stays below 45% of the time of a ZSET log', async () => {
    await withRedis(async (redis) => {
      const limit = 100
      const { admit } = traffic(redis, [perSecond(limit)])
      await admit(limit + 4)
      const zset = await ZSET_LOG.open(redis, { limit, windowMs: limit * 1000 })
      let second = 0
      const ask = async () => {
        second++
        for (let i = 0; i < KEYS; i++) {
          const [admitted] = await zset.consume(`user:${100_000 + i}`, START_MS + 1000 * second)
          assert.equal(admitted, 1)
        }
      }
      for (let i = 0; i < limit + 4; i++) await ask()
      const ours: number[] = []
      const theirs: number[] = []
      for (let turn = 0; turn < 60; turn++) {
        ours.push((await commandsOf(redis, () => admit(1), 'usec')).get('evalsha')!)
        theirs.push((await commandsOf(redis, ask, 'usec')).get('evalsha')!)
      }
      expect(Math.min(...ours) / Math.min(...theirs)).toBeLessThan(0.45)
    })
  })
})
