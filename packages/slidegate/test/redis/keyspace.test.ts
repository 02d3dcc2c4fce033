// tier: integration

import fc from 'fast-check'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { calendarWindow } from '../../src/calendar.ts'
import {
  type ConsumeOptions,
  concurrency,
  createLimiter,
  distinct,
  fixedWindow,
  type Limit,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { storedKey } from '../../src/key.ts'
import { Dimension } from '../../src/limiter/dimensions.ts'
import { reservationLog } from '../../src/limits/concurrency.ts'
import { withLog } from '../../src/limits/limit-set.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type Keyspace, keyspace, tagsOf } from '../../src/stores/redis/keyspace.ts'
import type { Part } from '../../src/stores/store.ts'
import { freePort, startRedis } from '../support/redis-server.ts'
import { useRedis } from '../support/use-redis.ts'

const { redis } = await useRedis()

const TAGS = tagsOf(64)

async function keysWritten(
  key: string,
  limits: readonly Limit[],
  options?: ConsumeOptions,
): Promise<string[]> {
  await redis.flushall()
  const store = redisStore(redis, { prefix: 'slidegate:my:app' })
  await createLimiter({ name: 'api', limits, store, timeoutMs: 30_000 }).consume(key, options)
  return (await redis.keys('*')).filter((name) => !name.includes('}:~')).sort()
}

/** Changing any of these would lose all counts in Redis at the next deploy. */
describe('the keys in Redis never change', () => {
  it.each([
    ['a name', 'user:42', '{69}:api:user:42'],
    ['a network', '2001:db8::/64', '{73}:api:2001:db8::/64'],
    ['a key that looks like a tag', '{tag}:x', '{60}:api:{tag}:x'],
    ['128 bytes', 'x'.repeat(128), `{123}:api:${'x'.repeat(128)}`],
    ['129 bytes', 'x'.repeat(129), '{43}:api:~DsnrM-dFELzdHy6lUgboLyFknFwr7L8rQz60dbNMAb0'],
    ['a key that looks like a hash', '~', '{69}:api:~es5DHLYVhMubjcfsCM84rAotZJZgvobTSftDEItUL6Q'],
    ['a key with non-ASCII characters', 'Grüße', '{0}:api:~-D4Dl5bGRToQ9VGeOf0ROQFXIxahqOoHy1JdKAHf0HQ'],
  ])('for %s', async (_, key, spelt) => {
    expect(await keysWritten(key, [slidingWindow({ limit: 3, window: '1m' })])).toEqual([
      `slidegate:my:app:${spelt}:w1`,
    ])
  })

  it('for windows with one precision, fixed windows and shadow limits', async () => {
    const limits = [
      slidingWindow({ limit: 3, window: '1m' }),
      slidingWindow({ limit: 9, window: '1h' }),
      slidingWindow({ limit: 9, window: '1h', precision: 50, name: 'coarse' }),
      fixedWindow({ limit: 9, window: '1d' }),
      slidingWindow({ limit: 2, window: '1h', name: 'tried.out', shadow: true }),
      fixedWindow({ limit: 2, window: '10s', name: 'too', shadow: true }),
    ]
    const logs = ['f10000stoo', 'f86400000', 'w1', 'w1stried.out', 'w50']
    expect(await keysWritten('a', limits)).toEqual(logs.map((log) => `slidegate:my:app:{122}:api:a:${log}`))
  })

  it('for logs with individual entries', async () => {
    const limits = [
      slidingWindow({ limit: 3, window: '1m', log: 'zset' }),
      slidingWindow({ limit: 9, window: '1m', log: 'zset', name: 'more' }),
      slidingWindow({ limit: 3, window: '1h', log: 'zset', name: 'tried', shadow: true }),
      slidingWindow({ limit: 3, window: '1m', log: 'stream', name: 'stream' }),
      slidingWindow({ limit: 3, window: '1h', log: 'stream' }),
      concurrency({ limit: 3, ttl: '1m', name: 'held' }),
      concurrency({ limit: 2, ttl: '1m', name: 'too', shadow: true }),
    ]
    const logs = ['k60000', 'k60000stoo', 'x3600000', 'x60000', 'z3600000stried', 'z60000']
    expect(await keysWritten('a', limits, { requestId: 'one' })).toEqual(
      logs.map((log) => `slidegate:my:app:{122}:api:a:${log}`),
    )
  })

  it('for distinct values', async () => {
    const limits = [distinct({ limit: 3, window: '1h' })]
    expect(await keysWritten('a', limits, { value: '10.0.0.1' })).toEqual([
      'slidegate:my:app:{122}:api:a:d3600000',
    ])
    const estimated = [distinct({ limit: 3, window: '1h', approximate: true })]
    const sketches = Array.from({ length: 11 }, (_, place) => `e3600000~${place}`).sort()
    expect(await keysWritten('a', estimated, { value: '10.0.0.1' })).toEqual(
      ['e3600000', ...sketches].map((log) => `slidegate:my:app:{122}:api:a:${log}`),
    )
  })

  it('for fixed windows of each alignment', async () => {
    const limits = [
      fixedWindow({ limit: 3, window: '1h' }),
      fixedWindow({ limit: 3, window: '1h', align: 'first-hit', name: 'first' }),
      fixedWindow({ limit: 9, window: '1h', align: 'first-hit', name: 'second' }),
      calendarWindow({ limit: 3, unit: 'hour', timeZone: 'utc' }),
      calendarWindow({ limit: 3, unit: 'month', timeZone: 'America/Argentina/Buenos_Aires' }),
      calendarWindow({ limit: 9, unit: 'month', timeZone: 'america/argentina/buenos_aires' }),
      calendarWindow({ limit: 3, unit: 'week', timeZone: 'Etc/GMT+5', name: 'too', shadow: true }),
    ]
    const logs = [
      'f3600000',
      'fhit3600000',
      'fhour-UTC',
      'fmonth-America/Argentina/Buenos_Aires',
      'fweek-Etc/GMT+5stoo',
    ]
    expect(await keysWritten('a', limits)).toEqual(logs.map((log) => `slidegate:my:app:{122}:api:a:${log}`))
  })

  it("for sliding counters, which share a log, and token buckets, which don't", async () => {
    const limits = [
      tokenBucket({ capacity: 3, refill: 10, interval: '1s' }),
      tokenBucket({ capacity: 9, refill: 600, interval: '1m' }),
      tokenBucket({ capacity: 9, refill: 7, interval: '1m' }),
      tokenBucket({ capacity: 9, refill: 7, interval: '1m', name: 'tried', shadow: true }),
      slidingCounter({ limit: 5, window: '1m' }),
      slidingCounter({ limit: 9, window: '1m' }),
      slidingCounter({ limit: 2 ** 40, window: '1h' }),
      slidingCounter({ limit: 3, window: '1m', name: 'too', shadow: true }),
    ]
    const logs = ['c3600000', 'c60000', 'c60000stoo', 't1000', 't60000', 't60000-2', 't60000stried']
    expect(await keysWritten('a', limits)).toEqual(logs.map((log) => `slidegate:my:app:{122}:api:a:${log}`))
  })

  it('for the tags of the 64 buckets', () => {
    expect(TAGS.join(' ')).toBe(
      '10 18 113 342 29 21 3 122 69 61 72 162 50 58 153 43 11 19 112 343 28 20 2 123 68 60 73 163 51 59 152 42 ' +
        '12 102 111 119 133 23 1 9 173 63 70 78 52 142 49 41 13 103 110 118 132 22 0 8 172 62 71 79 53 143 48 40',
    )
  })
})

it("the buckets are spread evenly over the slots of a cluster, by Redis's own hash", async () => {
  const node = await startRedis(['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())])
  const client = new Redis(node.port)
  const keys = TAGS.map((tag) => `slidegate:{${tag}}:api:{x}:w1`)
  const slots = await Promise.all(keys.map((key) => client.cluster('KEYSLOT', key)))
  await client.quit()
  await node.stop()
  expect(slots.map((slot) => Math.floor(slot / 256))).toEqual(TAGS.map((_, bucket) => bucket))
})

it('callers are spread evenly over the buckets', async () => {
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 1, window: '1m' })],
    store: redisStore(redis),
    timeoutMs: 30_000,
  })
  await redis.flushall()
  await Promise.all(Array.from({ length: 6400 }, (_, user) => limiter.consume(`user:${user}`)))
  const perTag = new Map<string, number>()
  for (const key of await redis.keys('*:default:*')) {
    const tag = /\{(\d+)\}/.exec(key)?.[1] ?? ''
    perTag.set(tag, (perTag.get(tag) ?? 0) + 1)
  }
  expect(perTag.size).toBe(64)
  expect(Math.max(...perTag.values())).toBeLessThan(200)
})

/** Returns the override index of a part's bucket. */
function indexOf(space: Keyspace, part: Part): string {
  const keys: string[] = []
  space.append({ type: 'override', parts: [part] }, keys)
  return keys.at(-1)!
}

describe('keys never collide', () => {
  const word = fc.oneof(
    fc.constantFrom('a', 'b', 'a-b', 'a_b', 'user', 'w1', 'b1', '0'),
    fc.stringMatching(/^[A-Za-z0-9_-]{1,6}$/),
  )
  const text = fc.oneof(
    fc.constantFrom(
      'a',
      'b',
      'a:b',
      'a/b',
      'user/a',
      'a:w1',
      'w1',
      ':',
      '/',
      '{a}',
      '~overrides',
      '~',
      'a:b:w1',
    ),
    fc.string({ minLength: 1, maxLength: 8 }),
  )
  const name = fc.oneof(word, fc.constantFrom('a.b', 'a..b', '.', 'user.a'))
  const limits = [
    slidingWindow({ limit: 3, window: '1m' }),
    slidingWindow({ limit: 3, window: '1m', name: 'tried', shadow: true }),
    slidingWindow({ limit: 3, window: '1m', log: 'zset', name: 'z' }),
    calendarWindow({ limit: 3, unit: 'day', timeZone: 'America/Argentina/Salta', name: 'day' }),
    tokenBucket({ capacity: 3, refill: 1, interval: '1m', name: 'bucket' }),
  ]
  const who = fc.record({ limiter: name, dimension: fc.option(word, { nil: undefined }), key: text })

  it('between limiters, dimensions, keys, logs, override indexes and receipts', () =>
    fc.assert(
      fc.property(
        fc.uniqueArray(who, {
          minLength: 2,
          maxLength: 12,
          selector: ({ limiter, dimension, key }) => JSON.stringify([limiter, dimension ?? null, key]),
        }),
        (all) => {
          const space = keyspace('p', 64)
          const keys: string[] = []
          const indexes = new Set<string>()
          for (const { limiter, dimension, key } of all) {
            const ban = { after: 9, within: '1h', for: '1h' } as const
            const of = new Dimension(limiter, dimension, { limits, ban, isOverridable: true })
            const part = of.partOf(key, storedKey(key), undefined)
            const set = withLog(part.set, reservationLog(60_000))
            space.append({ type: 'list', parts: [{ ...part, set }] }, keys)
            indexes.add(indexOf(space, { ...part, set }))
          }
          keys.push(...indexes)
          expect(keys.length).toBeGreaterThan(7 * all.length)
          expect(new Set(keys).size).toBe(keys.length)
          // Each key is in one bucket, whatever its parts contain, and no limiter can have a store's name.
          for (const key of keys) expect(key).toMatch(/^p:\{\d+\}:[^:~][^:]*:(.+:[^:=]+|~overrides)$/s)
          expect(space.receiptKey(undefined, 0)).toMatch(/^p:\{\d+\}:~[^:]+:0$/)
        },
      ),
      { numRuns: 300 },
    ))

  it('in a dimension with bans, reservations and overrides', async () => {
    await redis.flushall()
    const store = redisStore(redis, { prefix: 'slidegate:my:app' })
    const limiter = createLimiter({
      name: 'api',
      dimensions: { user: [slidingWindow({ limit: 3, window: '1m' })] },
      ban: { user: { after: 1, within: '1h', for: '1h' } },
      ...{ overrides: true, reservationTtl: '1h', store, timeoutMs: 30_000 },
    })
    await limiter.reserve({ user: 'a' }, 3)
    await limiter.consume({ user: 'a' })
    await limiter.overrides.set({ user: 'a' }, { limit: 5 })
    const abort = new AbortController()
    await limiter.unblock({ user: 'b' })
    await limiter.charge({ user: 'b' }, 5)
    const wait = limiter.wait({ user: 'b' }, { maxWaitMs: 2 ** 31 - 1, signal: abort.signal })
    while (limiter.waiting({ user: 'b' }).expectedWaitMs === 0) await new Promise(setImmediate)
    const keys = (await redis.keys('*')).map((key) => key.replace(/\{\d+\}/, '{}')).sort()
    abort.abort()
    await expect(wait).rejects.toThrow()
    expect(keys).toEqual([
      'slidegate:my:app:{}:api/user:a:b',
      'slidegate:my:app:{}:api/user:a:o',
      'slidegate:my:app:{}:api/user:a:r3600000',
      'slidegate:my:app:{}:api/user:a:w1',
      'slidegate:my:app:{}:api/user:b:w1',
      'slidegate:my:app:{}:api/user:~overrides',
    ])
  })
})
