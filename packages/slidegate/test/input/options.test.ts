import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  type LimiterOptions,
  type MemoryStoreOptions,
  memoryStore,
  SlidegateError,
  slidingWindow,
} from '../../src/index.ts'
import { type RedisClient, type RedisStoreOptions, redisStore } from '../../src/stores/redis/index.ts'
import { errorOf, expectRefusal } from './refusal.ts'

const limits = [slidingWindow({ limit: 10, window: '1m' })]
const none: unknown[] = []
const client: RedisClient = { command: async () => [] }

describe('createLimiter rejects', () => {
  const create = (options: unknown) => createLimiter(options as LimiterOptions)

  it.each([undefined, null, 10, 'api', true])('%s in place of options', async (options) => {
    const error = await errorOf(() => create(options))
    expect(error).toBeInstanceOf(SlidegateError)
    expect((error as SlidegateError).message).toMatch(/must be|write|give/)
  })

  it.each([
    ['missing', undefined],
    ['null', null],
    ['an object', {}],
    ['a text', '10/1m'],
    ['a number', 10],
    ['one limit', limits[0]],
    ['a set', new Set(limits)],
  ])('limits that are %s', async (_, value) => {
    const right = /must be an array with at least one limit/
    await expectRefusal(() => create({ limits: value }), { code: 'invalid_limit', value, right })
  })

  it('too many limits', async () => {
    const many = Array.from({ length: 65 }, (_, i) => slidingWindow({ limit: 1, window: 1000 + i }))
    const right = /there are 65 limits; at most 64 are allowed/
    await expectRefusal(() => create({ limits: many }), { code: 'invalid_limit', value: many, right })
    create({ limits: many.slice(1) }).close()
  })

  it('an empty array of limits', async () => {
    const right = /must be an array with at least one limit/
    await expectRefusal(() => create({ limits: none }), { code: 'invalid_limit', value: none, right })
  })

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a number', 10],
    ['a text', '10/1m'],
    ['the options of one', { limit: 10, window: '1m' }],
    ['a function that creates them', slidingWindow],
    ['more limits', limits],
  ])('limits among which is %s', async (_, value) => {
    const right = /create limits with slidingWindow\(\), fixedWindow\(\) and so on/
    await expectRefusal(() => create({ limits: [...limits, value] }), { code: 'invalid_limit', value, right })
  })

  it.each(['', 'two words', 'a:b', '{a}', 'é', 'x'.repeat(65), 'x\n', 5, {}, false])(
    'the name %j',
    async (name) => {
      const right = /must be 1 to 64 of A-Z a-z 0-9 \. _ -/
      await expectRefusal(() => create({ limits, name }), { code: 'invalid_name', value: name, right })
    },
  )

  it.each([
    ['null', null],
    ['a name', 'memory'],
    ['an empty object', {}],
    ['a Redis client', client],
    ['the function that creates it', memoryStore],
    ['the other function that creates it', redisStore],
  ])('a store that is %s', async (_, store) => {
    const right = /use memoryStore\(\) or redisStore\(client\)/
    await expectRefusal(() => create({ limits, store }), { code: 'invalid_option', value: store, right })
  })

  it.each([0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, '50', 50n, null])(
    'timeoutMs %s',
    async (timeoutMs) => {
      const right = /must be an integer from 1 to 2147483647/
      const options = { limits, timeoutMs, store: redisStore(client) }
      await expectRefusal(() => create(options), { code: 'invalid_option', value: timeoutMs, right })
    },
  )
})

describe('createLimiter rejects, among the options for store failures,', () => {
  const create = (options: unknown) => createLimiter(options as LimiterOptions)

  it.each(['', 'Throw', 'fallback', 'open', true, null, 0, {}, ['deny'], () => 'deny'])(
    'onStoreError %s',
    async (onStoreError) => {
      const right = /onStoreError .* must be 'throw', 'deny', 'allow' or 'local'/
      const options = { limits, onStoreError }
      await expectRefusal(() => create(options), { code: 'invalid_option', value: onStoreError, right })
    },
  )

  it('an asynchronous store without a failure policy', async () => {
    const store = { apply() {}, close() {} }
    const right = /the store has no failurePolicy; add the one that slidegate exports/
    await expectRefusal(() => create({ limits, store }), { code: 'invalid_option', value: store, right })
  })

  it.each([0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 20 + 1, '4', 4n, null])(
    'instances %s',
    async (instances) => {
      const right = /instances .* must be an integer from 1 to 1048576/
      await expectRefusal(() => create({ limits, instances }), {
        ...{ code: 'invalid_option', value: instances, right },
      })
    },
  )

  it.each([null, true, 5, 'off', () => {}])('the breaker %s', async (breaker) => {
    const right = /breaker .* must be an object/
    await expectRefusal(() => create({ limits, breaker }), { code: 'invalid_option', value: breaker, right })
  })

  it.each<[string, RegExp, unknown[]]>([
    ['failureRate', /must be above 0 and at most 1/, [0, -0.1, 1.1, 50, Number.NaN, '0.5', 1n, null]],
    ['minRequests', /must be an integer from 1 to 1048576/, [0, 1.5, 2 ** 20 + 1, Number.NaN, '5', null]],
    ['maxBackoffMs', /must be an integer from 10 to 60000/, [9, 10.5, 60_001, Number.NaN, '500', null]],
  ])('breaker.%s', async (name, right, values) => {
    for (const value of values) {
      const options = { limits, breaker: { [name]: value } }
      await expectRefusal(() => create(options), { code: 'invalid_option', value, right })
    }
  })

  it.each([null, true, 'console', {}, { warn: 'warn' }, { info() {} }, console.warn])(
    'the logger %s',
    async (logger) => {
      const right = /the logger .* must have a warn method, or be false/
      await expectRefusal(() => create({ limits, logger }), { code: 'invalid_option', value: logger, right })
    },
  )

  it('none of the valid values at the bounds', () => {
    const extremes: LimiterOptions[] = [
      { limits, onStoreError: 'local', instances: 1, breaker: {}, logger: false },
      { limits, instances: 2 ** 20, logger: console },
      { limits, breaker: { failureRate: 1, minRequests: 1, maxBackoffMs: 10 } },
      { limits, breaker: { failureRate: Number.MIN_VALUE, minRequests: 2 ** 20, maxBackoffMs: 60_000 } },
      // These values are treated as omitted.
      {
        limits,
        ...({
          onStoreError: undefined,
          instances: undefined,
          breaker: undefined,
          logger: undefined,
        } as object),
      },
    ]
    for (const options of extremes) expect(create(options).consumeSync('k').allowed).toBe(true)
  })
})

describe('memoryStore rejects', () => {
  const create = (options: unknown) => memoryStore(options as MemoryStoreOptions)

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '10', null])(
    'maxKeys %s',
    async (maxKeys) => {
      const right = /must be an integer of at least 1/
      await expectRefusal(() => create({ maxKeys }), { code: 'invalid_option', value: maxKeys, right })
    },
  )

  it.each(['block', '', true, null, 1])('onFull %j', async (onFull) => {
    const right = /must be 'throw', 'deny' or 'allow'/
    await expectRefusal(() => create({ onFull }), { code: 'invalid_option', value: onFull, right })
  })

  it.each([0, 1_700_000_000_000, 'now', null, {}])('the clock %j', async (clock) => {
    const right = /must be a function/
    await expectRefusal(() => create({ clock }), { code: 'invalid_option', value: clock, right })
  })

  it('null in place of options', async () => {
    await expectRefusal(() => create(null), { code: 'invalid_option', value: null, right: /must be|write/ })
  })
})

describe('redisStore rejects', () => {
  const create = (redis: unknown, options?: unknown) =>
    redisStore(redis as RedisClient, options as RedisStoreOptions)

  it.each([
    ['missing', undefined],
    ['null', null],
    ['a port', 6379],
    ['an empty object', {}],
    ['an incomplete client', { eval: async () => [] }],
  ])('a client that is %s', async (_, value) => {
    const right = /pass a URL, an ioredis, .* client, or \{ command\(words\) \}/
    await expectRefusal(() => create(value), { code: 'invalid_option', value, right })
  })

  it.each(['', 'a b', '{a}', 'a{', 'a*', 'é', 'x'.repeat(129), 'a\n', 5, null])(
    'the prefix %j',
    async (prefix) => {
      const right = /must be 1 to 128 characters from A-Z a-z 0-9 \. _ : -/
      await expectRefusal(() => create(client, { prefix }), { code: 'invalid_option', value: prefix, right })
    },
  )

  it.each([0, 'now', null, {}])('the clock %j', async (clock) => {
    const right = /must be a function/
    await expectRefusal(() => create(client, { clock }), { code: 'invalid_option', value: clock, right })
  })

  it('null in place of options', async () => {
    await expectRefusal(() => create(client, null), {
      code: 'invalid_option',
      value: null,
      right: /must be|write/,
    })
  })
})

describe('the first request rejects a clock that returns no valid time', () => {
  const stores = {
    memory: (clock: () => number) => memoryStore({ clock }),
    Redis: (clock: () => number) => redisStore(client, { clock }),
  }
  const times = [Number.NaN, -1, Number.POSITIVE_INFINITY, 2 ** 48, undefined, null, '1700000000000', 5n, {}]
  const cases = Object.entries(stores).flatMap(([name, store]) =>
    times.map((time) => [name, time, store] as const),
  )

  it.each(cases)('%s: %s', async (_, time, store) => {
    const limiter = createLimiter({ limits, store: store(() => time as number) })
    const right = /must be milliseconds since the epoch/
    await expectRefusal(() => limiter.consume('k'), { code: 'invalid_option', value: time, right })
  })
})

describe('later changes to the options have no effect', () => {
  it('such as adding limits to the array, or removing them', () => {
    const mine = [slidingWindow({ limit: 2, window: '1m' })]
    const limiter = createLimiter({ limits: mine })
    const before = structuredClone(limiter.consumeSync('k'))
    mine.push(slidingWindow({ limit: 1, window: '1h' }))
    mine.shift()
    const after = limiter.consumeSync('k')
    expect(after.limits.map(({ name }) => name)).toEqual(before.limits.map(({ name }) => name))
    expect(after.remaining).toBe(0)
    expect(limiter.consumeSync('k').allowed).toBe(false)
  })
})
