// tier: integration
import { beforeEach, describe, expect, it } from 'vitest'
import {
  type ConsumeOptions,
  createLimiter,
  type Decision,
  fixedWindow,
  type Limiter,
  memoryStore,
  SlidegateError,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { errorOf, expectRefusal } from './refusal.ts'

const { redis } = await useRedis()

const limits = [
  slidingWindow({ limit: 5, window: '1m' }),
  fixedWindow({ limit: 9, window: '1h' }),
  slidingWindow({ limit: 1, window: '1m', name: 'shadow', shadow: true }),
]
const clock = new ManualClock()
const stores = {
  memory: () => memoryStore({ clock: clock.now }),
  Redis: () => redisStore(redis, { clock: clock.now }),
}

const NO_KEYS = [
  ...[undefined, null, 5, 5n, true, {}, ['k'], new String('k'), Symbol('k')],
  ...[
    '',
    '\uD800',
    'a\uDC00b',
    '\uDC00\uD800',
    'x'.repeat(65_537),
    'é'.repeat(32_769),
    'x'.repeat(10_000_000),
  ],
].map((key) => [typeof key === 'string' ? JSON.stringify(key).slice(0, 20) : typeof key, key])
const NO_UNITS = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '1', 1n, true, {}].map(
  (units) => [units],
)

describe.each(Object.entries(stores))('%s', (_, store) => {
  let limiter: Limiter
  let decision: Decision
  /** Charges one request of 2 units. */
  beforeEach(async () => {
    await redis.flushall()
    limiter = createLimiter({ limits, store: store(), timeoutMs: 30_000 })
    decision = await limiter.consume('k', { cost: 2 })
  })

  /** Returns all visible stored state. */
  async function state(): Promise<unknown> {
    const keys = (await redis.keys('*')).sort()
    const values = await Promise.all(keys.map((key) => redis.getBuffer(key)))
    return { keys, values, decision: await limiter.peek('k') }
  }

  async function expectRefusals(
    asks: readonly (() => unknown)[],
    expected: Parameters<typeof expectRefusal>[1],
  ): Promise<void> {
    const before = await state()
    for (const ask of asks) await expectRefusal(ask, expected)
    expect(await state()).toEqual(before)
  }

  it.each(NO_KEYS)('rejects an invalid key: %s', async (_, value) => {
    const key = value as string
    const unused = createLimiter({ limits, store: store() })
    await expectRefusals(
      [
        () => unused.consume(key),
        () => unused.consumeSync(key),
        () => limiter.consume(key),
        () => limiter.consumeSync(key),
        () => limiter.peek(key),
        () => limiter.charge(key, 1),
        () => limiter.refund(key, decision),
        () => limiter.reset(key),
      ],
      { code: 'invalid_key', value, right: /must be|must name|more than 65536 bytes|lone surrogate/ },
    )
  })

  it.each(NO_UNITS)('rejects a cost of %s', async (value) => {
    const cost = value as number
    await expectRefusals(
      [
        () => limiter.consume('k', { cost }),
        () => limiter.peek('k', { cost }),
        () => limiter.charge('k', cost),
      ],
      { code: 'invalid_cost', value, right: /must be an integer of at least 1/ },
    )
  })

  it.each([
    ['consume', { costs: 5 }, /did you mean "cost"\?/],
    ['peek', { requestid: 'a' }, /did you mean "requestId"\?/],
    ['wait', { maxWait: 5 }, /did you mean "maxWaitMs"\?/],
    ['acquire', { requestId: 'a' }, /unknown option "requestId"/],
    ['explain', { charge: true }, /did you mean "charges"\?/],
  ] as const)('rejects a misspelt option of %s: %j', async (method, options, right) => {
    await expectRefusals([() => limiter[method]('k', options as object)], {
      ...{ code: 'invalid_option', value: Object.keys(options)[0], right },
    })
  })

  it('ignores the properties of a class instance, and options that are undefined', async () => {
    class Own {
      readonly cost = 2
      readonly costs = 5
    }
    expect((await limiter.consume('k', new Own())).cost).toBe(2)
    expect((await limiter.consume('k', { costs: undefined } as object)).cost).toBe(1)
  })

  it.each([null, 2, '2', true, () => 2].map((options) => [options]))(
    'rejects %s in place of options',
    async (value) => {
      const options = value as ConsumeOptions
      await expectRefusals([() => limiter.consume('k', options), () => limiter.peek('k', options)], {
        code: 'invalid_cost',
        value,
        right: value === 2 ? /write \{ cost: 2 \}/ : /write \{ cost: 1 \}/,
      })
    },
  )

  it.each([undefined, null])('rejects a charge of %s', async (value) => {
    const right = /must be an integer of at least 1/
    await expectRefusals([() => limiter.charge('k', value as never)], { code: 'invalid_cost', value, right })
  })

  it.each(NO_UNITS)('rejects a refund of %s units', async (value) => {
    const right = /must be an integer of at least 1/
    await expectRefusals([() => limiter.refund('k', decision, value as number)], {
      code: 'invalid_refund',
      value,
      right,
    })
  })

  it('rejects a refund of more than was charged', async () => {
    const right = /cannot refund 3 units: only 2 were charged/
    await expectRefusals([() => limiter.refund('k', decision, 3)], {
      code: 'invalid_refund',
      value: 3,
      right,
    })
    // The caller's changes to the decision have no effect.
    Object.assign(decision, { cost: 3 })
    await expectRefusals([() => limiter.refund('k', decision)], { code: 'invalid_refund', value: 3, right })
  })

  it('rejects a refund for another key', async () => {
    const right = /belongs to a different key than "other"/
    await expectRefusals([() => limiter.refund('other', decision)], {
      code: 'invalid_refund',
      value: 'other',
      right,
    })
  })

  it("rejects a refund of a decision that this limiter didn't admit", async () => {
    const other = createLimiter({ limits, store: store(), timeoutMs: 30_000 })
    const right = /pass an allowed one from consume\(\)/
    for (const value of [
      await limiter.consume('k', { cost: 4 }),
      await limiter.peek('k'),
      await other.consume('other'),
      { ...decision },
      structuredClone(decision),
      Object.create(decision),
      new Proxy(decision, {}),
      undefined,
      null,
      {},
      'yes',
    ]) {
      await expectRefusals([() => limiter.refund('k', value, 1)], { code: 'invalid_refund', value, right })
    }
  })

  it('rejects everything after close', async () => {
    limiter.close()
    limiter.close()
    const right = /limiter "default" is closed/
    for (const ask of [
      () => limiter.consume('k'),
      () => limiter.consumeSync('k'),
      () => limiter.peek('k'),
      () => limiter.charge('k', 1),
      () => limiter.refund('k', decision),
      () => limiter.reset('k'),
    ]) {
      await expectRefusal(ask, { code: 'closed', value: 'default', right })
    }
  })

  it('denies a cost above the limit instead of rejecting it', async () => {
    const before = await state()
    for (const cost of [6, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
      const { allowed, retryAfterMs } = await limiter.consume('k', { cost })
      expect({ allowed, retryAfterMs }).toEqual({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
    }
    expect(await state()).toEqual(before)
  })
})

it('consumeSync on Redis throws before anything is sent', async () => {
  const limiter = createLimiter({ limits, store: stores.Redis() })
  await redis.flushall()
  await expectRefusal(() => limiter.consumeSync('k'), {
    code: 'sync_unsupported',
    value: 'k',
    right: /needs a store in this process, such as memoryStore; use consume/,
  })
  expect(await redis.dbsize()).toBe(0)
})

it('consumeSync throws, the other methods reject', async () => {
  const limiter = createLimiter({ limits })
  expect(() => limiter.consumeSync('')).toThrow(SlidegateError)
  for (const ask of [
    () => limiter.consume(''),
    () => limiter.peek(''),
    () => limiter.charge('', 1),
    () => limiter.refund('', {} as Decision),
    () => limiter.reset(''),
  ]) {
    let promise: Promise<unknown> | undefined
    expect(() => {
      promise = ask()
    }).not.toThrow()
    expect(await errorOf(() => promise)).toBeInstanceOf(SlidegateError)
  }
})
