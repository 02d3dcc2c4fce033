// tier: integration

import { Redis } from 'ioredis'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { calendarWindow } from '../../src/calendar.ts'
import {
  concurrency,
  createLimiter,
  type Decision,
  fixedWindow,
  type Limit,
  type Limiter,
  StoreUnavailableError,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { listed } from '../support/overrides.ts'
import { useRedis } from '../support/use-redis.ts'

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const clock = new ManualClock()

/** Limits for which the script takes its usual way, and such for which it takes the general one. */
const LIMITS: Readonly<Record<string, readonly Limit[]>> = {
  'a sliding window': [slidingWindow({ limit: 500, window: '1h' })],
  'a fixed window': [fixedWindow({ limit: 500, window: '1h' })],
  'a window from its first hit on': [fixedWindow({ limit: 500, window: '1h', align: 'first-hit' })],
  'a window of a calendar': [calendarWindow({ limit: 500, unit: 'hour', timeZone: 'Asia/Kathmandu' })],
  'a token bucket': [tokenBucket({ capacity: 500, refill: 500, interval: '1h' })],
  'a sliding counter': [slidingCounter({ limit: 500, window: '1h' })],
  'a sliding window among others': [
    slidingWindow({ limit: 500, window: '1h' }),
    slidingWindow({ limit: 500, window: '1h', name: 'shadow', shadow: true }),
  ],
}

/** The log under which a key's state is stored, filled by some requests of different times. */
async function filledLog(limiter: Limiter, requests = 60): Promise<string> {
  for (let i = 0; i < requests; i++) {
    await limiter.consume('bad')
    clock.advance(1)
  }
  return (await redis.keys('*:bad:*')).sort()[0]!
}

/** Asks for the key whose state is damaged, between two others in the same call. */
async function askBetween(limiter: Limiter): Promise<unknown> {
  const results = await Promise.allSettled(['before', 'bad', 'after'].map((key) => limiter.consume(key)))
  const [before, bad, after] = results.map((each) => (each.status === 'fulfilled' ? each.value : each.reason))
  expect(before).toMatchObject({ allowed: true, remaining: 499 })
  expect(after).toMatchObject({ allowed: true, remaining: 499 })
  const again = await Promise.all(['before', 'after'].map((key) => limiter.peek(key)))
  expect(again.map(({ remaining }) => remaining)).toEqual([499, 499])
  return bad
}

/** What cannot be seen to be damaged is believed; the answer makes sense all the same. */
function expectSense(answer: unknown): void {
  if (answer instanceof StoreUnavailableError) expect(answer.reason).toBe('invalid_state')
  else expect((answer as Decision).remaining).toBeGreaterThanOrEqual(0)
}

describe.each(Object.entries(LIMITS))('%s', (_, limits) => {
  let limiter: Limiter
  beforeAll(() => {
    limiter = createLimiter({ limits, store: redisStore(redis, { clock: clock.now }), timeoutMs: 30_000 })
  })

  const foreign: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
    'a list': (key) => redis.rpush(key, 'x'),
    'a hash': (key) => redis.hset(key, 'x', 'y'),
    'a sorted set': (key) => redis.zadd(key, 1, 'x'),
    'a counter': (key) => redis.set(key, '5'),
    'a text': (key) => redis.set(key, 'x'.repeat(100)),
    'a format of a later version': (key) => redis.set(key, Buffer.alloc(64, 2)),
  }

  it.each(Object.entries(foreign))('%s in its place is unavailable, and left alone', async (_, put) => {
    const key = await filledLog(limiter)
    const decision = await limiter.consume('bad')
    await redis.del(key)
    await put(key)
    const value = await redis.dumpBuffer(key)
    const error = await askBetween(limiter)
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ reason: 'invalid_state', message: expect.stringMatching(/\bbad\b/) })
    await expect(limiter.peek('bad')).rejects.toMatchObject({ reason: 'invalid_state' })
    await expect(limiter.charge('bad', 1)).rejects.toMatchObject({ reason: 'invalid_state' })
    await expect(limiter.refund('bad', decision)).rejects.toMatchObject({ reason: 'invalid_state' })
    expect(await redis.dumpBuffer(key)).toEqual(value)
  })

  it('a reset puts it right', async () => {
    const key = await filledLog(limiter)
    await redis.del(key)
    await redis.rpush(key, 'x')
    await limiter.reset('bad')
    expect((await limiter.consume('bad')).remaining).toBe(499)
  })

  // The first of them is just about to outgrow its ring.
  it.each([41, 60])(
    'cut off at any place it does not trouble the requests beside it: %i requests',
    async (requests) => {
      await redis.flushall()
      const key = await filledLog(limiter, requests)
      const value = (await redis.getBuffer(key))!
      for (let length = 1; length < value.length; length += length < 100 ? 1 : 13) {
        // While all of it counts, and when the older half is gone.
        for (const laterMs of [0, 3_599_970]) {
          await redis.flushall()
          await redis.set(key, value.subarray(0, length))
          clock.advance(laterMs)
          const answer = await askBetween(limiter)
          clock.advance(-laterMs)
          // A request may be decided without a look at what is missing; not without the header.
          if (length < 56) expect([length, answer]).toMatchObject([length, { reason: 'invalid_state' }])
          else expectSense(answer)
        }
      }
    },
  )

  it('cut off while it is short it does not trouble the requests beside it either', async () => {
    await redis.flushall()
    const key = await filledLog(limiter, 4)
    const value = (await redis.getBuffer(key))!
    for (let length = 1; length < value.length; length++) {
      await redis.flushall()
      await redis.set(key, value.subarray(0, length))
      expect(await askBetween(limiter)).toMatchObject({ reason: 'invalid_state' })
    }
  })

  it('with any number of its header at its extremes it does not trouble the requests beside it', async () => {
    // Numbers in the header of a window log, and of others.
    const numbers = [1, 7, 9, 13, 15, 19, 21, 25, 27, 33, 39, 45].map((at) => [at, 6] as const)
    const counts = [7, 31, 35, 37, 51, 53].map((at) => [at, 2] as const)
    for (const requests of [1, 4, 60]) {
      await redis.flushall()
      const key = await filledLog(limiter, requests)
      const value = (await redis.getBuffer(key))!
      for (const [at, bytes] of [...numbers, ...counts, ...[33, 34, 55, 56].map((at) => [at, 1] as const)]) {
        for (const extreme of [0, 1, 256 ** bytes - 1]) {
          if (at + bytes > value.length) continue
          const changed = Buffer.from(value)
          changed.writeUIntBE(extreme, at, bytes)
          for (const laterMs of [0, 3_599_970]) {
            await redis.flushall()
            await redis.set(key, changed)
            clock.advance(laterMs)
            expectSense(await askBetween(limiter))
            clock.advance(-laterMs)
          }
        }
      }
    }
  })
})

it.each([
  ['a debt beyond all that may be', tokenBucket({ capacity: 5, refill: 5, interval: '1h' }), 7, 2 ** 53, 7],
  ['a window that begins anywhere', slidingCounter({ limit: 5, window: '1h' }), 1, 1_700_000_000_001, 6],
  ['units beyond all that may be', slidingCounter({ limit: 5, window: '1h' }), 7, 2 ** 53, 7],
  ['more units before', slidingCounter({ limit: 5, window: '1h' }), 14, 2 ** 53, 7],
])('%s is no log of ours', async (_, limit, at, number, bytes) => {
  const store = redisStore(redis, { clock: clock.now })
  const limiter = createLimiter({ limits: [limit], store, timeoutMs: 30_000 })
  const key = await filledLog(limiter, 1)
  const value = (await redis.getBuffer(key))!
  const high = Math.floor(number / 2 ** 40)
  value.writeUIntBE(high, at, bytes - 5)
  value.writeUIntBE(number % 2 ** 40, at + bytes - 5, 5)
  await redis.set(key, value)
  await expect(limiter.consume('bad')).rejects.toMatchObject({ reason: 'invalid_state' })
})

/** Limits whose log keeps what it counts one by one. */
const KEPT: Readonly<Record<string, readonly Limit[]>> = {
  'a sorted set': [slidingWindow({ limit: 500, window: '1h', log: 'zset' })],
  'a stream': [slidingWindow({ limit: 500, window: '1h', log: 'stream' })],
  'a set of holders': [concurrency({ limit: 500, ttl: '1h' })],
  'a stream among others': [
    slidingWindow({ limit: 500, window: '1h', log: 'stream' }),
    slidingWindow({ limit: 500, window: '1h', name: 'packed' }),
  ],
}

describe.each(Object.entries(KEPT))('%s', (what, limits) => {
  const isStream = what.includes('stream')
  let limiter: Limiter
  beforeAll(() => {
    limiter = createLimiter({ limits, store: redisStore(redis, { clock: clock.now }), timeoutMs: 30_000 })
  })
  const logOf = async () => (await redis.keys('*:bad:*')).sort().at(-1)!

  const foreign: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
    'a list': (key) => redis.rpush(key, 'x'),
    'a hash': (key) => redis.hset(key, 'x', 'y'),
    'a text': (key) => redis.set(key, 'x'.repeat(100)),
    'a log of the other kind': (key) =>
      isStream
        ? redis.zadd(key, clock.now(), 'x')
        : redis.xadd(key, `${clock.now()}-0`, 'id', 'x', 'cost', '1', 'total', '1'),
    'a log of another scale': (key) =>
      isStream
        ? redis.xadd(key, `${2 ** 60}-0`, 'id', 'x', 'cost', '1', 'total', '1')
        : redis.zadd(key, 1e300, 'x'),
    'a log of other numbers': (key) =>
      isStream
        ? redis.xadd(key, `${clock.now()}-0`, 'id', 'x', 'cost', '1', 'total', '0.5')
        : redis.zadd(key, 0.5, 'x'),
    'a log of no numbers': (key) =>
      isStream
        ? redis.xadd(key, `${clock.now()}-0`, 'id', 'x', 'cost', '', 'total', 'y')
        : redis.zadd(key, 'inf', 'x'),
  }

  it.each(Object.entries(foreign))('%s in its place is unavailable, and left alone', async (_, put) => {
    await filledLog(limiter)
    const key = await logOf()
    await redis.del(key)
    await put(key)
    const value = await redis.dumpBuffer(key)
    expect(await askBetween(limiter)).toMatchObject({
      reason: 'invalid_state',
      message: expect.stringMatching(/\bbad\b/),
    })
    await expect(limiter.peek('bad')).rejects.toMatchObject({ reason: 'invalid_state' })
    await expect(limiter.charge('bad', 1)).rejects.toMatchObject({ reason: 'invalid_state' })
    await expect(limiter.list('bad')).rejects.toMatchObject({ reason: 'invalid_state' })
    expect(await redis.dumpBuffer(key)).toEqual(value)
    await limiter.reset('bad')
    expect((await limiter.consume('bad')).remaining).toBe(499)
  })
})

it('a window log whose oldest total is above its newest is no log of ours', async () => {
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 5, window: '1h' })],
    store: redisStore(redis, { clock: clock.now }),
    timeoutMs: 30_000,
  })
  const key = await filledLog(limiter, 3)
  const value = (await redis.getBuffer(key))!
  // All of it would be free, and far more.
  const base = Buffer.from(value)
  base.writeUIntBE(2 ** 40, 15, 6)
  const record = Buffer.from(value)
  record.writeUIntBE(2 ** 40, 51, 6)
  for (const [changed, laterMs] of [
    [base, 0],
    [record, 3_599_998],
  ] as const) {
    await redis.set(key, changed)
    clock.advance(laterMs)
    await expect(limiter.consume('bad', { cost: 2 })).rejects.toMatchObject({ reason: 'invalid_state' })
    await expect(limiter.peek('bad')).rejects.toMatchObject({ reason: 'invalid_state' })
  }
})

describe('an override', () => {
  const minute = slidingWindow({ limit: 5, window: '1m', name: 'minute' })
  const create = (name = 'default') =>
    createLimiter({
      name,
      limits: [slidingWindow({ limit: 5, window: '1h', name: 'hour' })],
      overrides: true,
      store: redisStore(redis, { clock: clock.now }),
      timeoutMs: 30_000,
    })
  const keysOf = async (key: string) => (await redis.keys(`*:default:${key}:*`)).sort()
  const JSONS = [
    ...['null', 'true', '5', '"exempt"', '{', '{"hour":5}', '{"hour":{"limit":0}}', '{"hour":{"limit":1.5}}'],
    ...['{"hour":{"limit":"5"}}', '{"hour":{"limit":1e999}}', '{"hour":{"limit":1099511627777}}', 'EXEMPT'],
    ...['{"hour":{"limit":null}}', '{"hour":{"limit":[5]}}', '['.repeat(2000), '[]', '{"hour":[5]}'],
    // cjson reads these.
    ...[
      '{"hour":{"limit":0x10}}',
      '{"hour":{"limit":inf}}',
      '{"hour": {"limit":5}}',
      '{"hour":{"limit":1.}}',
    ],
    ...[
      '{"hour":{"limit":5,"more":5}}',
      '{"hour":{"limit":-5}}',
      '{"hour":{"limit":5}} ',
      '{"ho\tur":{"limit":5}}',
    ],
    // All is right but what stands between, before or behind.
    ...[
      '{"hour":{"limit":5}]',
      '["hour":{"limit":5}}',
      '{"hour":{"limit":5};"day":{"limit":5}}',
      '{"hour":{"limit":5;"windowMs":60000}}',
    ],
  ]
  const HUGE = ['4503599627370497', '9'.repeat(20), '9'.repeat(400)]
  const records = [
    ...[
      '',
      '1',
      '1 0 0',
      '2 0 0 exempt\n',
      '1 0 x exempt\n',
      '1 -5 0 exempt\n',
      '1 0  exempt\n',
      '1 0 0 exempt',
    ],
    ...HUGE.flatMap((ms) => [`1 ${ms} 0 \n`, `1 0 ${ms} exempt\n`]),
    ...JSONS.map((rule) => `1 0 4503599627370496 ${rule}\n`),
  ]

  it.each(records.map((record) => [record.slice(0, 60), record]))(
    '%j is unavailable, and is left alone',
    async (_, record) => {
      const limiter = create()
      await limiter.overrides.set('vip', { limit: 500 })
      await limiter.overrides.set('other', { limit: 300 })
      const [key = ''] = await redis.keys('*:vip:o')
      await redis.set(key, record)
      const before = await keysOf('vip')
      const asked = await Promise.allSettled([
        limiter.consume('vip'),
        limiter.peek('vip'),
        limiter.overrides.get('vip'),
        limiter.overrides.set('vip', 'exempt'),
        limiter.block('vip', '1m'),
        limiter.overrides.delete('vip'),
        limiter.consume('other'),
        create('bare').consume('vip'),
      ])
      const state = { reason: { name: 'StoreUnavailableError', reason: 'invalid_state' } }
      for (const each of asked.slice(0, 6)) expect(each).toMatchObject(state)
      expect(asked.slice(6)).toMatchObject([{ value: { remaining: 299 } }, { value: { remaining: 4 } }])
      expect(await redis.get(key)).toBe(record)
      expect(await keysOf('vip')).toEqual(before)
      // A list has the others.
      expect((await listed(limiter)).map((each) => each.key)).toEqual(['other'])
    },
  )

  it.each(['user', 'ip'])(
    'a list or half a line as that of the %s is the affair of its requests',
    async (damaged) => {
      const dimensions = { user: [minute], ip: [minute] }
      const store = redisStore(redis, { clock: clock.now, buckets: 1 })
      const limiter = createLimiter({ dimensions, overrides: true, store, timeoutMs: 30_000 })
      for (const dimension of ['user', 'ip']) await limiter.overrides.set({ [dimension]: 'k' }, { limit: 3 })
      const [key = ''] = await redis.keys(`*/${damaged}:k:o`)
      const state = { reason: { name: 'StoreUnavailableError', reason: 'invalid_state' } }
      for (const write of [
        () => redis.rpush(key, 'x'),
        () => redis.set(key, '1 0 0'),
        () => redis.set(key, ''),
      ]) {
        await redis.del(key)
        await write()
        const asked = await Promise.allSettled([
          limiter.consume({ user: 'k', ip: 'k' }),
          limiter.consume({ user: 'other', ip: 'other' }),
        ])
        expect(asked).toMatchObject([state, { value: { allowed: true } }])
      }
    },
  )

  it.each(['a text', 'a list'])(
    '%s in place of an index: nothing is set, and decisions go on',
    async (what) => {
      const limiter = create()
      await limiter.overrides.set('vip', { limit: 500 })
      const [index = ''] = await redis.keys('*~overrides')
      await redis.del(index)
      await (what === 'a list' ? redis.rpush(index, 'x') : redis.set(index, 'x'))
      const before = (await redis.keys('*')).sort()
      const asked = await Promise.allSettled([
        limiter.overrides.set('vip', 'exempt'),
        limiter.overrides.delete('vip'),
        limiter.block('vip', '1m'),
        listed(limiter),
      ])
      for (const each of asked) expect(each).toMatchObject({ reason: { reason: 'invalid_state' } })
      expect((await redis.keys('*')).sort()).toEqual(before)
      expect((await limiter.consume('vip')).remaining).toBe(499)
    },
  )
})

describe.each(['zzzzzzzzzzzzzzzz', '~'.repeat(100), '7', ''])('what is no receipt: %s', (text) => {
  it('in the place of one is written over', async () => {
    const resending = new Redis(redis.options.port!, { autoResendUnfulfilledCommands: true })
    const limiter = createLimiter({
      limits: [slidingWindow({ limit: 500, window: '1h' })],
      store: redisStore(resending, { clock: clock.now }),
      timeoutMs: 30_000,
    })
    await limiter.consume('k')
    const receipts = await redis.keys('*:~*')
    expect(receipts.length).toBeGreaterThan(0)
    for (const receipt of receipts) {
      await redis.del(receipt)
      if (text === '') await redis.rpush(receipt, 'x')
      else await redis.set(receipt, text)
    }
    expect((await limiter.consume('k')).remaining).toBe(498)
    expect((await limiter.consume('k')).remaining).toBe(497)
    for (const receipt of receipts) expect(await redis.type(receipt)).toBe('string')
    await resending.quit()
  })
})

function withByte(value: Buffer, at: number, byte: number): Buffer {
  const changed = Buffer.from(value)
  changed[at] = byte
  return changed
}

/** Ways to damage a log with this many requests. With 41, its back and its ring are full. */
const DAMAGES: Readonly<Record<string, readonly [requests: number, damage: (value: Buffer) => Buffer]>> = {
  'cut off in its header': [3, (value) => value.subarray(0, 38)],
  'cut off in its back': [3, (value) => value.subarray(0, 62)],
  'cut off in its front': [7, (value) => value.subarray(0, 146)],
  'cut off in its leases': [3, (value) => withByte(Buffer.concat([value, Buffer.alloc(30)]), 33, 16)],
  'with a front that is longer than a page': [41, (value) => withByte(value, 33, 5)],
  'with a back that is longer than a page': [41, (value) => withByte(value, 34, 5)],
  'with pages, but no front': [41, (value) => withByte(value, 33, 0)],
  'with more pages than there is room for': [41, (value) => withByte(value, 38, 100)],
  'cut off in its ring': [41, (value) => value.subarray(0, value.length - 1)],
  'with a byte too many': [41, (value) => Buffer.concat([value, Buffer.alloc(1)])],
  'with a total that is below its base': [3, (value) => withByte(value, 15, 1)],
  'of another format': [3, (value) => withByte(value, 0, 2)],
}

describe.each(Object.entries(DAMAGES))('a window log %s', (_, [requests, damage]) => {
  const isTold = {
    reason: 'invalid_state',
    message: expect.stringMatching(/not a window log of format 1|a damaged window log/),
  }
  const create = () =>
    createLimiter({
      limits: [slidingWindow({ limit: 500, window: '1h' })],
      store: redisStore(redis, { clock: clock.now }),
      timeoutMs: 30_000,
    })

  it('each operation is rejected and leaves the log alone', async () => {
    const limiter = create()
    const key = await filledLog(limiter, requests - 1)
    const decision = await limiter.consume('bad')
    await redis.set(key, damage((await redis.getBuffer(key))!))
    const value = await redis.dumpBuffer(key)
    expect(await askBetween(limiter)).toMatchObject(isTold)
    await expect(limiter.charge('bad', 1000)).rejects.toMatchObject(isTold)
    await expect(limiter.refund('bad', decision)).rejects.toMatchObject(isTold)
    await expect(limiter.explain('bad', { charges: true })).rejects.toMatchObject(isTold)
    expect(await redis.dumpBuffer(key)).toEqual(value)
  })
})

it('a refund returns nothing if the newest total of a window log is below the one before', async () => {
  const store = redisStore(redis, { clock: clock.now })
  const limits = [slidingWindow({ limit: 500, window: '1h' })]
  const limiter = createLimiter({ limits, store, timeoutMs: 30_000 })
  const key = await filledLog(limiter, 2)
  const decision = await limiter.consume('bad')
  await redis.set(key, withByte((await redis.getBuffer(key))!, 51, 1))
  expect(await limiter.refund('bad', decision)).toBe(0)
})

it('a window log that is cut off where a shorter window begins does not trouble the requests beside it', async () => {
  const store = redisStore(redis, { clock: clock.now })
  const limits = [
    slidingWindow({ limit: 500, window: '1h' }),
    slidingWindow({ limit: 500, window: 20, name: 'short' }),
  ]
  const limiter = createLimiter({ limits, store, timeoutMs: 30_000 })
  const key = await filledLog(limiter, 60)
  await redis.set(key, (await redis.getBuffer(key))!.subarray(0, 200))
  expect(await askBetween(limiter)).toMatchObject({ reason: 'invalid_state' })
})

it('a window log of more than 2^46 units, cut off, is left alone', async () => {
  const store = redisStore(redis, { clock: clock.now })
  const limits = [slidingWindow({ limit: 500, window: '1h' })]
  const limiter = createLimiter({ limits, store, timeoutMs: 30_000 })
  const key = await filledLog(limiter, 41)
  await limiter.charge('bad', 2 ** 46)
  await redis.set(key, (await redis.getBuffer(key))!.subarray(0, -1))
  const value = await redis.dumpBuffer(key)
  clock.advance(1)
  await expect(limiter.charge('bad', 1)).rejects.toMatchObject({ reason: 'invalid_state' })
  expect(await redis.dumpBuffer(key)).toEqual(value)
})
