import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { createLimiter, type Limit, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { describe, expect, it } from 'vitest'
import { onlyKey } from '../src/redis/copies.ts'
import { ZSET_LOG } from '../src/redis/field.ts'
import { bytesOf, commandsOf } from '../src/redis/info.ts'
import { withRedis } from '../src/redis/with-redis.ts'

// What a decision costs Redis, as far as it is the same on every machine: a change that makes it dearer fails here.
// The bounds are what was measured when they were written, and a little. Whoever makes it cheaper lowers them.

/** In one call at most. */
const PER_CALL = 128
/** As many as fill two calls: fewer would be divided. */
const KEYS = 2 * PER_CALL
const START_MS = 1_700_000_000_000

/** Keys that are asked for once a second each, all at once; in time their windows are full. */
function traffic(redis: Redis, ...limits: Limit[]) {
  const keys = Array.from({ length: KEYS }, (_, i) => `user:${100_000 + i}`)
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

describe('commands within the script, per decision', () => {
  it.each([
    ['10 a window', [perSecond(10)], { getrange: 1.26, setrange: 1.26, pexpire: 0.26 }],
    ['100 a window', [perSecond(100)], { getrange: 1.26, setrange: 1.26, pexpire: 0.05 }],
    ['1,000 a window', [perSecond(1000)], { getrange: 1.26, setrange: 1.26, pexpire: 0.02 }],
    [
      'three windows',
      [perSecond(10), perSecond(100), perSecond(1000)],
      { getrange: 3.8, setrange: 1.26, pexpire: 0.02 },
    ],
  ])('admitted into full windows, %s', async (_, limits, bounds) => {
    await withRedis(async (redis) => {
      const { admit } = traffic(redis, ...limits)
      await admit(limits.at(-1)!.limit + 4)
      const commands = await commandsOf(redis, () => admit(80))
      commands.delete('evalsha')
      for (const [name, calls] of commands) {
        expect([name, calls / (80 * KEYS)]).toEqual([name, expect.toSatisfy(atMost(bounds, name))])
      }
    })
  })

  it('denied: one read', async () => {
    await withRedis(async (redis) => {
      const { admit, deny } = traffic(redis, slidingWindow({ limit: 10, window: '1h' }))
      await admit(10)
      const commands = await commandsOf(redis, () => deny(5))
      expect(Object.fromEntries(commands)).toEqual({ evalsha: (5 * KEYS) / PER_CALL, getrange: 5 * KEYS })
    })
  })
})

function atMost(bounds: Readonly<Record<string, number>>, name: string) {
  return (perDecision: number) => perDecision <= (bounds[name] ?? 0)
}

describe('records touched by one call, on a log of 65,536 of which half are gone', () => {
  it('reads a few pages of four, wherever the answer lies', async () => {
    await withRedis(async (redis) => {
      let nowMs = START_MS
      const limiter = createLimiter({
        limits: [slidingWindow({ limit: 65_536, window: '2m' })],
        store: redisStore(redis, { clock: () => nowMs }),
        timeoutMs: 60_000,
      })
      for (let asked = 0; asked < 65_536; asked += 512) {
        await Promise.all(
          Array.from({ length: 512 }, (_, i) => {
            nowMs = START_MS + asked + i
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

/** Once nobody else is connected: what Redis reads into is given back at some time. */
async function usedMemory(redis: Redis): Promise<number> {
  await expect.poll(() => redis.info('clients')).toContain('connected_clients:1\r')
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1])
}

describe('bytes per admitted request, at the end of three windows', () => {
  it.each([
    [1000, 12.5],
    [10_000, 13.2],
  ])('%i a window', async (limit, bound) => {
    await withRedis(async (redis) => {
      let nowMs = START_MS
      const limiter = createLimiter({
        limits: [slidingWindow({ limit, window: limit })],
        store: redisStore(redis, { clock: () => nowMs }),
        timeoutMs: 60_000,
      })
      for (let asked = 0; asked < 3 * limit; asked += 500) {
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

it('memory of a key is as docs/production.md says', async () => {
  const keys = Array.from({ length: 500 }, (_, i) => `user:${100_000 + i}`)
  for (const [limit, records] of [
    [2000, 1],
    [2000, 5],
    [2000, 30],
    [2000, 160],
    [100, 100],
    [600, 600],
  ] as const) {
    await withRedis(async (redis) => {
      let nowMs = START_MS
      const ask = async (asked: readonly string[], times: number) => {
        const client = redis.duplicate()
        const limiter = createLimiter({
          limits: [slidingWindow({ limit, window: '1h', precision: 10 })],
          store: redisStore(client, { clock: () => nowMs }),
          timeoutMs: 60_000,
        })
        for (let i = 0; i < times; i++) {
          nowMs += 10
          await Promise.all(asked.map((key) => limiter.consume(key)))
        }
        client.disconnect()
      }
      // Tables of the server that grow once, whoever uses it.
      await ask(['first'], 1)
      const before = await usedMemory(redis)
      await ask(keys, records)
      const bytes = ((await usedMemory(redis)) - before) / keys.length
      const doubled = Math.min(limit, 2 ** Math.ceil(Math.log2(records)))
      const told = 250 + 14 * doubled
      expect([limit, records, bytes / told]).toEqual([limit, records, expect.toSatisfy(isNearOne)])
    })
  }
})

describe('time within Redis, against the ZSET log', () => {
  // The least of many short turns, side by side: what disturbs a machine makes none of them shorter.
  it('is less than half, admitted into full windows', async () => {
    await withRedis(async (redis) => {
      const limit = 100
      const { admit } = traffic(redis, perSecond(limit))
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
