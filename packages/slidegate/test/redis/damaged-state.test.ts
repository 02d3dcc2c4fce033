// tier: integration

import { randomUUID } from 'node:crypto'
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

/** Limits for the script's fast path and for its general path. */
const LIMITS: Readonly<Record<string, readonly Limit[]>> = {
  'a sliding window': [slidingWindow({ limit: 500, window: '1h' })],
  'a fixed window': [fixedWindow({ limit: 500, window: '1h' })],
  'a window from its first hit': [fixedWindow({ limit: 500, window: '1h', align: 'first-hit' })],
  'a calendar window': [calendarWindow({ limit: 500, unit: 'hour', timeZone: 'Asia/Kathmandu' })],
  'a token bucket': [tokenBucket({ capacity: 500, refill: 500, interval: '1h' })],
  'a sliding counter': [slidingCounter({ limit: 500, window: '1h' })],
  'a sliding window among others': [
    slidingWindow({ limit: 500, window: '1h' }),
    slidingWindow({ limit: 500, window: '1h', name: 'shadow', shadow: true }),
  ],
}

/** Makes requests at different times. Returns the key's log. */
/** Slots need an id. */
function named(limiter: Limiter): { requestId?: string } {
  const isHeld = limiter.limits.some(({ kind }) => kind.entries?.are === 'holder')
  return isHeld ? { requestId: randomUUID() } : {}
}

async function filledLog(limiter: Limiter, requests = 60): Promise<string> {
  for (let i = 0; i < requests; i++) {
    await limiter.consume('bad', named(limiter))
    clock.advance(1)
  }
  return (await redis.keys('*:bad:*')).sort()[0]!
}

/** Requests the damaged key between two others in the same call. */
async function askBetween(limiter: Limiter): Promise<unknown> {
  const results = await Promise.allSettled(
    ['before', 'bad', 'after'].map((key) => limiter.consume(key, named(limiter))),
  )
  const [before, bad, after] = results.map((each) => (each.status === 'fulfilled' ? each.value : each.reason))
  expect(before).toMatchObject({ allowed: true, remaining: 499 })
  expect(after).toMatchObject({ allowed: true, remaining: 499 })
  const again = await Promise.all(['before', 'after'].map((key) => limiter.peek(key)))
  expect(again.map(({ remaining }) => remaining)).toEqual([499, 499])
  return bad
}

/** Expects `invalid_state`, or a plausible answer if the damage can't be detected. */
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
    'a string': (key) => redis.set(key, 'x'.repeat(100)),
    'a later format': (key) => redis.set(key, Buffer.alloc(64, 2)),
  }

  it.each(Object.entries(foreign))(
    'rejects requests with %s in place of its log, and leaves it unchanged',
    async (_, put) => {
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
    },
  )

  it('works again after a reset', async () => {
    const key = await filledLog(limiter)
    await redis.del(key)
    await redis.rpush(key, 'x')
    await limiter.reset('bad')
    expect((await limiter.consume('bad')).remaining).toBe(499)
  })

  // With 41 requests, the ring of the log is about to be resized.
  it.each([41, 60])(
    "doesn't disturb other requests if its log is truncated anywhere: %i requests",
    async (requests) => {
      await redis.flushall()
      const key = await filledLog(limiter, requests)
      const value = (await redis.getBuffer(key))!
      for (let length = 1; length < value.length; length += length < 100 ? 1 : 13) {
        // Reads it while everything counts, and after the older half has expired.
        for (const laterMs of [0, 3_599_970]) {
          await redis.flushall()
          await redis.set(key, value.subarray(0, length))
          clock.advance(laterMs)
          const answer = await askBetween(limiter)
          clock.advance(-laterMs)
          // Some requests can be decided without the missing part, but never without the header.
          if (length < 56) expect([length, answer]).toMatchObject([length, { reason: 'invalid_state' }])
          else expectSense(answer)
        }
      }
    },
  )

  it("doesn't disturb other requests if its short log is truncated", async () => {
    await redis.flushall()
    const key = await filledLog(limiter, 4)
    const value = (await redis.getBuffer(key))!
    for (let length = 1; length < value.length; length++) {
      await redis.flushall()
      await redis.set(key, value.subarray(0, length))
      expect(await askBetween(limiter)).toMatchObject({ reason: 'invalid_state' })
    }
  })

  it("doesn't disturb other requests if a number in its header is extreme", async () => {
    // These are the offsets of numbers in the headers of window logs and other logs.
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
  ['too high a debt', tokenBucket({ capacity: 5, refill: 5, interval: '1h' }), 7, 2 ** 53, 7],
  ['a misaligned window', slidingCounter({ limit: 5, window: '1h' }), 1, 1_700_000_000_001, 6],
  ['too many units', slidingCounter({ limit: 5, window: '1h' }), 7, 2 ** 53, 7],
  ['too many units in the previous window', slidingCounter({ limit: 5, window: '1h' }), 14, 2 ** 53, 7],
])('a log with %s is rejected', async (_, limit, at, number, bytes) => {
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

/** Limits whose logs keep individual entries. */
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
    'a string': (key) => redis.set(key, 'x'.repeat(100)),
    'a log of another kind': (key) =>
      isStream
        ? redis.zadd(key, clock.now(), 'x')
        : redis.xadd(key, `${clock.now()}-0`, 'id', 'x', 'cost', '1', 'total', '1'),
    'timestamps out of range': (key) =>
      isStream
        ? redis.xadd(key, `${2 ** 60}-0`, 'id', 'x', 'cost', '1', 'total', '1')
        : redis.zadd(key, 1e300, 'x'),
    fractions: (key) =>
      isStream
        ? redis.xadd(key, `${clock.now()}-0`, 'id', 'x', 'cost', '1', 'total', '0.5')
        : redis.zadd(key, 0.5, 'x'),
    "values that aren't numbers": (key) =>
      isStream
        ? redis.xadd(key, `${clock.now()}-0`, 'id', 'x', 'cost', '', 'total', 'y')
        : redis.zadd(key, 'inf', 'x'),
  }

  it.each(Object.entries(foreign))(
    'rejects requests with %s in place of its log, and leaves it unchanged',
    async (_, put) => {
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
      expect((await limiter.consume('bad', named(limiter))).remaining).toBe(499)
    },
  )
})

it('a window log whose oldest total is above its newest is rejected', async () => {
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 5, window: '1h' })],
    store: redisStore(redis, { clock: clock.now }),
    timeoutMs: 30_000,
  })
  const key = await filledLog(limiter, 3)
  const value = (await redis.getBuffer(key))!
  // If it were accepted, more units than the limit would be free.
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
    // cjson accepts these texts.
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
    // These are valid except for their separators and brackets.
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
    'with the record %j is rejected and unchanged',
    async (_, record) => {
      const limiter = create()
      await limiter.overrides.set('vip', { limit: 500 })
      await limiter.overrides.set('other', { limit: 300 })
      const [key = ''] = await redis.keys('*:vip:o')
      await redis.set(key, record)
      const before = await keysOf('vip')
      const results = await Promise.allSettled([
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
      for (const each of results.slice(0, 6)) expect(each).toMatchObject(state)
      expect(results.slice(6)).toMatchObject([{ value: { remaining: 299 } }, { value: { remaining: 4 } }])
      expect(await redis.get(key)).toBe(record)
      expect(await keysOf('vip')).toEqual(before)
      // The list contains the others.
      expect((await listed(limiter)).map((each) => each.key)).toEqual(['other'])
    },
  )

  it.each(['user', 'ip'])(
    'with a damaged record of the %s fails only the requests of that key',
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
        const results = await Promise.allSettled([
          limiter.consume({ user: 'k', ip: 'k' }),
          limiter.consume({ user: 'other', ip: 'other' }),
        ])
        expect(results).toMatchObject([state, { value: { allowed: true } }])
      }
    },
  )

  it.each(['a string', 'a list'])(
    "with %s in place of its index can't be set, but decisions continue",
    async (what) => {
      const limiter = create()
      await limiter.overrides.set('vip', { limit: 500 })
      const [index = ''] = await redis.keys('*~overrides')
      await redis.del(index)
      await (what === 'a list' ? redis.rpush(index, 'x') : redis.set(index, 'x'))
      const before = (await redis.keys('*')).sort()
      const results = await Promise.allSettled([
        limiter.overrides.set('vip', 'exempt'),
        limiter.overrides.delete('vip'),
        limiter.block('vip', '1m'),
        listed(limiter),
      ])
      for (const each of results) expect(each).toMatchObject({ reason: { reason: 'invalid_state' } })
      expect((await redis.keys('*')).sort()).toEqual(before)
      expect((await limiter.consume('vip')).remaining).toBe(499)
    },
  )
})

describe.each(['zzzzzzzzzzzzzzzz', '~'.repeat(100), '7', ''])('a damaged receipt %j', (text) => {
  it('gets overwritten', async () => {
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
  'truncated in its header': [3, (value) => value.subarray(0, 38)],
  'truncated in its back': [3, (value) => value.subarray(0, 62)],
  'truncated in its front': [7, (value) => value.subarray(0, 146)],
  'truncated in its leases': [3, (value) => withByte(Buffer.concat([value, Buffer.alloc(30)]), 33, 16)],
  'with a front longer than a page': [41, (value) => withByte(value, 33, 5)],
  'with a back longer than a page': [41, (value) => withByte(value, 34, 5)],
  'with pages but no front': [41, (value) => withByte(value, 33, 0)],
  'with more pages than fit': [41, (value) => withByte(value, 38, 100)],
  'truncated in its ring': [41, (value) => value.subarray(0, value.length - 1)],
  'with an extra byte': [41, (value) => Buffer.concat([value, Buffer.alloc(1)])],
  'with a total below its base': [3, (value) => withByte(value, 15, 1)],
  'of another format': [3, (value) => withByte(value, 0, 2)],
}

describe.each(Object.entries(DAMAGES))('a window log %s', (_, [requests, damage]) => {
  const isReported = {
    reason: 'invalid_state',
    message: expect.stringMatching(/not a window log of format 1|a damaged window log/),
  }
  const create = () =>
    createLimiter({
      limits: [slidingWindow({ limit: 500, window: '1h' })],
      store: redisStore(redis, { clock: clock.now }),
      timeoutMs: 30_000,
    })

  it("rejects each operation and isn't changed", async () => {
    const limiter = create()
    const key = await filledLog(limiter, requests - 1)
    const decision = await limiter.consume('bad')
    await redis.set(key, damage((await redis.getBuffer(key))!))
    const value = await redis.dumpBuffer(key)
    expect(await askBetween(limiter)).toMatchObject(isReported)
    await expect(limiter.charge('bad', 1000)).rejects.toMatchObject(isReported)
    await expect(limiter.refund('bad', decision)).rejects.toMatchObject(isReported)
    await expect(limiter.explain('bad', { charges: true })).rejects.toMatchObject(isReported)
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

it("a window log that is truncated where a shorter window starts doesn't disturb other requests", async () => {
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

it("a truncated window log of more than 2^46 units isn't changed", async () => {
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
