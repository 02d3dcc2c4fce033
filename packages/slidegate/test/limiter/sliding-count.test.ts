// tier: integration
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  createLimiter,
  memoryStore,
  type SlidingCountOptions,
  slidingCount,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { expectRefusal } from '../input/refusal.ts'
import { FAILURES, failing } from '../resilience/failing-store.ts'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'

const { server, redis } = await useRedis()
beforeEach(() => redis.flushall())

const stores = storesOn(redis)

const PERIOD_MS = 1000

const event = fc.record({
  what: fc.constantFrom('add', 'add', 'add', 'get', 'reset'),
  key: fc.constantFrom('a', 'b'),
  n: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 60 })),
  /** A packed log counts many more units. */
  isLarge: fc.boolean(),
  times: fc.integer({ min: 1, max: 4 }),
  afterMs: fc.oneof(fc.constantFrom(0, 0, PERIOD_MS), fc.nat(400)),
})

describe.each(Object.entries(stores))('slidingCount in %s', (_, storeOf) => {
  it.each([
    ['packed', 1],
    ['packed', 50],
    ['stream', 1],
    ['zset', 1],
  ] as const)('counts the units of the last period in a %s log, exact to %i ms', async (log, precision) => {
    // The model is a list of units and times.
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 40 }), async (events) => {
        await redis.flushall()
        const clock = new ManualClock()
        const options = { period: PERIOD_MS, precision, log, timeoutMs: 30_000 }
        const count = slidingCount({ ...options, store: storeOf(clock) })
        let added: { key: string; n: number; grainMs: number }[] = []
        const counted = (of: string) =>
          added
            .filter(({ key, grainMs }) => key === of && clock.now() - grainMs < PERIOD_MS + precision - 1)
            .reduce((sum, { n }) => sum + n, 0)
        for (const { what, key, n: small, isLarge, times, afterMs } of events) {
          const n = isLarge && log === 'packed' ? small * 2 ** 34 : small
          clock.advance(afterMs)
          if (what === 'reset') {
            await count.reset(key)
            added = added.filter((each) => each.key !== key)
          } else if (what === 'add') {
            const answers = await Promise.all(Array.from({ length: times }, () => count.add(key, n)))
            for (const answer of answers) {
              added.push({ key, n, grainMs: clock.now() - (clock.now() % precision) })
              expect(answer).toBe(counted(key))
            }
          }
          expect(await count.get(key)).toBe(counted(key))
        }
      }),
      { numRuns: 60 },
    )
  })

  it('returns a different count to each of many concurrent additions', async () => {
    const count = slidingCount({ period: '1h', store: storeOf(new ManualClock()), timeoutMs: 30_000 })
    const answers = await Promise.all(Array.from({ length: 1500 }, () => count.add('k', 2)))
    expect(answers).toEqual(Array.from({ length: 1500 }, (_, i) => 2 * (i + 1)))
    expect(await count.get('k')).toBe(3000)
  })

  it('counts concurrent additions of more than 2^48 units as 2^46', async () => {
    const count = slidingCount({ period: '1h', store: storeOf(new ManualClock()), timeoutMs: 30_000 })
    // Adds a total of 2^49 units, which could become one op.
    const answers = await Promise.all(Array.from({ length: 512 }, () => count.add('k', 2 ** 40)))
    expect(answers[1]).toBe(2 ** 41)
    expect(answers[511]).toBe(2 ** 46)
    expect(await count.get('k')).toBe(2 ** 46)
  })

  it('adds 1 by default, and returns 0 for an unknown key', async () => {
    const count = slidingCount({ period: '1m', store: storeOf(new ManualClock()), timeoutMs: 30_000 })
    expect([await count.get('k'), await count.add('k'), await count.add('k'), await count.get('k')]).toEqual([
      0, 1, 2, 2,
    ])
    expect([count.name, count.periodMs, count.precisionMs]).toEqual(['count', 60_000, 1])
  })

  it('counts up to 2^46', async () => {
    const clock = new ManualClock()
    const count = slidingCount({ period: '1m', store: storeOf(clock), timeoutMs: 30_000 })
    let last = 0
    for (let i = 0; i < 40; i++) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => count.add('k', 2 ** 40)))
      expect(answers.every((answer) => answer >= last && answer <= 2 ** 46)).toBe(true)
      last = answers.at(-1)!
      clock.advance(1)
    }
    expect([last, await count.get('k')]).toEqual([2 ** 46, 2 ** 46])
    clock.advance(60_000)
    expect(await count.add('k', 3)).toBe(3)
  })

  it.each([
    ['stream', 20_000],
    ['zset', 10_000],
  ] as const)('keeps the newest in a %s', async (log, kept) => {
    const clock = new ManualClock()
    const count = slidingCount({ period: '1h', log, store: storeOf(clock), timeoutMs: 30_000 })
    for (let i = 0; i < 11; i++) {
      await Promise.all(Array.from({ length: 1000 }, () => count.add('k', i === 0 ? 7 : 2)))
      clock.advance(1)
    }
    expect(await count.get('k')).toBe(kept)
  })

  it('rejects after close, and leaves the store open', async () => {
    const store = storeOf(new ManualClock())
    const count = slidingCount({ name: 'closing', period: '1m', store, timeoutMs: 30_000 })
    await count.add('k')
    count.close()
    for (const ask of [() => count.add('k'), () => count.get('k'), () => count.reset('k')]) {
      await expectRefusal(ask, { code: 'closed', value: 'closing', right: /"closing" is closed/ })
    }
    const other = slidingCount({ name: 'closing', period: '1m', store, timeoutMs: 30_000 })
    expect(await other.get('k')).toBe(1)
  })

  it("doesn't affect a limiter with another name on the same key", async () => {
    const store = storeOf(new ManualClock())
    const count = slidingCount({ period: '1m', store, timeoutMs: 30_000 })
    const limits = [slidingWindow({ limit: 2, window: '1m' })]
    const limiter = createLimiter({ limits, store, timeoutMs: 30_000 })
    await count.add('k', 100)
    expect((await limiter.consume('k')).remaining).toBe(1)
    expect(await count.get('k')).toBe(100)
  })
})

it('processes that share a Redis share the count', async () => {
  const clients = Array.from({ length: 4 }, () => new Redis(server.port))
  const counts = clients.map((client) =>
    slidingCount({ period: '1h', store: redisStore(client), timeoutMs: 30_000 }),
  )
  const answers = await Promise.all(
    counts.map(async (count) => {
      const told: number[] = []
      for (let i = 0; i < 50; i++) told.push(...(await Promise.all([count.add('k'), count.add('k', 3)])))
      return told
    }),
  )
  // Each addition returns a different count, which rises by the units added.
  const all = answers.flat().sort((a, b) => a - b)
  expect(new Set(all).size).toBe(400)
  expect(all.at(-1)).toBe(800)
  expect(await Promise.all(counts.map((count) => count.get('k')))).toEqual([800, 800, 800, 800])
  await Promise.all(clients.map((client) => client.quit()))
})

it('other programs read each addition from the stream', async () => {
  const count = slidingCount({ name: 'calls', period: '1m', log: 'stream', store: redisStore(redis) })
  await Promise.all([count.add('ada', 2), count.add('ada', 2), count.add('ada')])
  const [key] = await redis.keys('*ada*')
  const entries = await redis.xrange(key!, '-', '+')
  expect(entries.map(([, [, , , cost, , total]]) => [cost, total])).toEqual([
    ['2', '2'],
    ['2', '4'],
    ['1', '5'],
  ])
  expect(new Set(entries.map(([, [, id]]) => id)).size).toBe(3)
})

it('additions for one key share a call', async () => {
  const count = slidingCount({ period: '1h', store: redisStore(redis), timeoutMs: 30_000 })
  await count.add('warm')
  await redis.config('RESETSTAT')
  await Promise.all(Array.from({ length: 400 }, () => count.add('k')))
  const calls = /cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]
  expect(Number(calls)).toBeLessThanOrEqual(3)
})

it('the keys of a count look like those of limiters, and expire after the period', async () => {
  const store = redisStore(redis, { prefix: 'slidegate:my:app' })
  await slidingCount({ name: 'logins', period: '1h', precision: 100, store, timeoutMs: 30_000 }).add('ada')
  await slidingCount({ period: '1m', store, timeoutMs: 30_000 }).add('ada')
  const keys = (await redis.keys('*')).filter((key) => !key.includes('}:~')).sort()
  expect(keys.map((key) => key.replace(/\{\d+\}/, '{}'))).toEqual([
    'slidegate:my:app:{}:count:ada:w1',
    'slidegate:my:app:{}:logins:ada:w100',
  ])
  const ttlMs = await redis.pttl(keys[1]!)
  expect(ttlMs).toBeGreaterThan(3_600_000)
  expect(ttlMs).toBeLessThanOrEqual(4_500_099 + 25)
})

describe('slidingCount on a failing store', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it.each(Object.entries(FAILURES))('rejects with its error: %s', async (_, failure) => {
    const store = failing(memoryStore({ clock: new ManualClock().now }))
    const count = slidingCount({ period: '1m', store, logger: false, breaker: { minRequests: 100 } })
    await count.add('k', 2)
    store.failure = failure
    for (const ask of [() => count.add('k'), () => count.get('k'), () => count.reset('k')]) {
      const asked = expect(ask()).rejects.toMatchObject({ code: 'store_unavailable', reason: failure.reason })
      await vi.advanceTimersByTimeAsync(55)
      await asked
    }
    store.failure = undefined
    expect(await count.get('k')).toBe(2)
    count.close()
  })

  it('stops sending for a moment after repeated failures', async () => {
    const lines: string[] = []
    const store = failing(memoryStore(), FAILURES.rejects)
    const logger = { warn: (line: string) => void lines.push(line) }
    const count = slidingCount({ name: 'logins', period: '1m', store, logger })
    for (let i = 0; i < 20; i++)
      await expect(count.add('k')).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(store.asked.length).toBeLessThan(20)
    expect(lines).toEqual([expect.stringContaining('"logins"')])
    count.close()
  })
})

it('a memory store full of limited keys has no room for a count, whatever its onFull is', async () => {
  for (const onFull of ['throw', 'deny', 'allow'] as const) {
    const store = memoryStore({ maxKeys: 1, onFull })
    await createLimiter({ limits: [slidingWindow({ limit: 1, window: '1h' })], store }).consume('k')
    const count = slidingCount({ period: '1m', store })
    await expect(count.add('k')).rejects.toMatchObject({ reason: 'full' })
    expect(await count.get('k')).toBe(0)
  }
})

it('a count evicts no limit, and is evicted by new keys if least recently used', async () => {
  const store = memoryStore({ maxKeys: 2 })
  const count = slidingCount({ period: '1h', store })
  for (const key of ['a', 'b', 'c']) await count.add(key, 2 ** 40)
  expect(await Promise.all(['a', 'b', 'c'].map((key) => count.get(key)))).toEqual([0, 2 ** 40, 2 ** 40])
})

describe('slidingCount rejects', () => {
  const make = (options: unknown) => slidingCount(options as SlidingCountOptions)

  it.each([undefined, null, '1m', 5])('%j in place of options', async (options) => {
    const right = /options for slidingCount are .* must be an object/
    await expectRefusal(() => make(options), { code: 'invalid_option', value: options, right })
  })

  it.each([undefined, null, 0, 9, '367d', 'soon', Number.NaN])('the period %j', async (period) => {
    const right = /the period is .*; it must/
    await expectRefusal(() => make({ period }), { code: 'invalid_duration', value: period, right })
  })

  it.each([0, 1001, 'fine', null])('the precision %j', async (precision) => {
    const right = /precision is .*; it must be whole milliseconds from 1 to/
    await expectRefusal(() => make({ period: 1000, precision }), {
      code: 'invalid_precision',
      value: precision,
      right,
    })
  })

  it.each([0, -1, 1.5, 2 ** 40 + 1, '1', null, Number.NaN, Number.POSITIVE_INFINITY, 1n])(
    'to add %s',
    async (n) => {
      const count = make({ period: '1m' })
      const right = /n is .*; it must be an integer from 1 to 1099511627776/
      await expectRefusal(() => count.add('k', n as number), { code: 'invalid_cost', value: n, right })
    },
  )

  it('to add more than 10,000 units to a stream, and a precision for it', async () => {
    const count = make({ period: '1m', log: 'stream' })
    const right = /n is 10001; it must be an integer from 1 to 10000/
    await expectRefusal(() => count.add('k', 10_001), { code: 'invalid_cost', value: 10_001, right })
    await expectRefusal(() => make({ period: '1m', log: 'stream', precision: 5 }), {
      code: 'invalid_precision',
      value: 5,
      right: /must be 1 ms/,
    })
  })

  it('an invalid name, store, deadline, log, breaker or logger', async () => {
    const refused = [
      ['name', 'a b', 'invalid_name', /1 to 64 of/],
      ['store', {}, 'invalid_option', /use memoryStore\(\) or redisStore/],
      ['timeoutMs', 0, 'invalid_option', /timeoutMs/],
      ['log', 'list', 'invalid_limit', /'packed', 'zset' or 'stream'/],
      ['breaker', 5, 'invalid_option', /breaker/],
      ['logger', {}, 'invalid_option', /logger/],
    ] as const
    for (const [option, value, code, right] of refused) {
      await expectRefusal(() => make({ period: '1m', [option]: value }), { code, value, right })
    }
  })

  it('an invalid key', async () => {
    const count = make({ period: '1m' })
    for (const ask of [() => count.add(''), () => count.get(''), () => count.reset('')]) {
      await expectRefusal(ask, { code: 'invalid_key', value: '', right: /empty/ })
    }
  })
})

describe('addSync and getSync', () => {
  it('count like add and get, with a store in this process', async () => {
    const clock = new ManualClock()
    const count = slidingCount({ period: PERIOD_MS, store: memoryStore({ clock: clock.now }) })
    expect(count.getSync('a')).toBe(0)
    expect(count.addSync('a')).toBe(1)
    expect(await count.add('a', 2)).toBe(3)
    clock.advance(PERIOD_MS - 1)
    expect(count.addSync('a', 4)).toBe(7)
    expect(count.getSync('a')).toBe(7)
    clock.advance(1)
    expect(count.getSync('a')).toBe(4)
    expect(count.getSync('b')).toBe(0)
    expect(() => count.addSync('a', 0)).toThrow(expect.objectContaining({ code: 'invalid_cost' }))
    expect(() => count.getSync('')).toThrow(expect.objectContaining({ code: 'invalid_key' }))
    count.close()
    expect(() => count.addSync('a')).toThrow(expect.objectContaining({ code: 'closed' }))
  })

  it('reject a store that needs a call', () => {
    const count = slidingCount({ period: PERIOD_MS, store: redisStore(redis) })
    for (const call of [() => count.addSync('a'), () => count.getSync('a')]) {
      expect(call).toThrow(
        expect.objectContaining({
          code: 'sync_unsupported',
          message: 'addSync and getSync need a store in this process, such as memoryStore',
        }),
      )
    }
    count.close()
  })
})
