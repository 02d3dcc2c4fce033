// tier: integration
import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  type DimensionOptions,
  type Limiter,
  memoryStore,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { listed } from '../support/overrides.ts'
import { useRedis } from '../support/use-redis.ts'
import { expectRefusal } from './refusal.ts'

const { redis } = await useRedis()

const limits = [slidingWindow({ limit: 3, window: '1m' })]
const create = (options: unknown) => createLimiter(options as DimensionOptions<string>)

describe('createLimiter rejects', () => {
  it.each([
    ['null', null],
    ['none', {}],
    ['an array of limits', limits],
    ['an array of arrays', [limits]],
    ['a text', 'user'],
    ['a number', 2],
    ['true', true],
    ['a map', new Map([['user', limits]])],
    ['more than 16', Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`d${i}`, limits]))],
  ])('dimensions that are %s', async (_, dimensions) => {
    const right = /must be an object with the limits of 1 to 16 dimensions/
    await expectRefusal(() => create({ dimensions }), { code: 'invalid_option', value: dimensions, right })
  })

  it.each(['', 'a b', 'a.b', 'a/b', 'a:b', '{a}', 'é', 'x'.repeat(65), 'x\n'])(
    'a dimension called %j',
    async (name) => {
      const right = /must be 1 to 64 of A-Z a-z 0-9 _ -/
      await expectRefusal(() => create({ dimensions: { [name]: limits } }), {
        ...{ code: 'invalid_name', value: name, right },
      })
    },
  )

  it('limits and dimensions at once', async () => {
    const right = /pass only one of them/
    await expectRefusal(() => create({ limits, dimensions: { user: limits } }), {
      ...{ code: 'invalid_option', value: limits, right },
    })
  })

  it.each([undefined, null, [], {}, 3, 'x', limits[0]])('the limits %s of a dimension', async (value) => {
    const right = /must be an array with at least one limit/
    await expectRefusal(() => create({ dimensions: { user: limits, ip: value } }), {
      ...{ code: 'invalid_limit', value, right },
    })
  })

  it('two limits of a dimension with the same name', async () => {
    const twice = [slidingWindow({ limit: 3, window: '1m' }), slidingWindow({ limit: 3, window: '60s' })]
    await expectRefusal(() => create({ dimensions: { user: twice } }), {
      ...{ code: 'duplicate_limit', value: 'user.3-per-1m', right: /give one of them another name/ },
    })
  })

  it('a ban for an unknown dimension, or without a dimension', async () => {
    const dimensions = { user: limits }
    await expectRefusal(() => create({ dimensions, ban: { usr: true } }), {
      ...{ code: 'invalid_option', value: 'usr', right: /for ban with dimensions; did you mean "user"\?/ },
    })
    for (const value of [null, true, 5, 'user']) {
      const right = /the options for ban with dimensions are .*; they must be an object/
      await expectRefusal(() => create({ dimensions, ban: value }), {
        ...{ code: 'invalid_option', value, right },
      })
    }
  })

  it('none of the valid dimensions', async () => {
    const most = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`d${i}`, limits]))
    const all = Object.fromEntries(Object.keys(most).map((name) => [name, 'k']))
    expect((await create({ dimensions: most }).consume(all)).limits).toHaveLength(16)
    const names = ['x'.repeat(64), '_', '-', '0', '__proto__', 'constructor', 'toString', 'hasOwnProperty']
    const dimensions = Object.fromEntries(names.map((name) => [name, limits]))
    const limiter = create({ dimensions, ban: { _: { after: 9, within: '1h', for: '1h' } } })
    for (const name of names) {
      // Each dimension has only its own limits, even if every object inherits a property of that name.
      expect((await limiter.explain({ [name]: 'k' })).limits.map((limit) => limit.name)).toEqual([
        `${name}.3-per-1m`,
      ])
    }
    const lacking = Object.fromEntries(names.filter((name) => name !== 'toString').map((name) => [name, 'k']))
    await expect(limiter.consume(lacking)).rejects.toMatchObject({ code: 'invalid_key' })
    expect((await limiter.consume(Object.fromEntries(names.map((name) => [name, 'k'])))).remaining).toBe(2)
  })
})

const stores = { memory: () => memoryStore(), Redis: () => redisStore(redis) }

describe.each(Object.entries(stores))('a key on %s', (where, store) => {
  type Both = Limiter<{ readonly user: string | null; readonly ip: string | null }>
  const setUp = async () => {
    await redis.flushall()
    const dimensions = { user: limits, ip: limits }
    const limiter = createLimiter({
      ...{ dimensions, overrides: true, store: store(), timeoutMs: 30_000 },
    })
    const plain = createLimiter({ limits, overrides: true, store: store(), timeoutMs: 30_000 })
    const decision = await limiter.consume({ user: 'control', ip: 'control' })
    return { limiter, plain, decision }
  }

  /** The operations that need a key for every dimension. Those in `some` accept fewer. */
  const whole = (limiter: Both, key: never, decision: never): (() => unknown)[] => [
    () => limiter.consume(key),
    () => limiter.consumeMany([{ key: { user: 'a', ip: 'b' } }, { key }]),
    () => limiter.peek(key),
    () => limiter.charge(key, 1),
    () => limiter.refund(key, decision),
    () => limiter.wait(key),
    () => limiter.schedule(key, () => {}),
    () => limiter.reserve(key, 1),
    () => limiter.waiting(key),
    ...(where === 'memory' ? [() => limiter.consumeSync(key)] : []),
  ]
  const some = (limiter: Both, key: never): (() => unknown)[] => [
    () => limiter.explain(key),
    () => limiter.reset(key),
    () => limiter.block(key, '1m'),
    () => limiter.unblock(key),
    () => limiter.isBlocked(key),
    () => limiter.overrides.set(key, 'exempt'),
    () => limiter.overrides.get(key),
    () => limiter.overrides.delete(key),
  ]

  async function expectRefusals(
    limiter: Both,
    asks: readonly (() => unknown)[],
    value: unknown,
    right: RegExp,
  ): Promise<void> {
    const before = (await redis.keys('*')).sort()
    // Without a key, `waiting` covers all keys.
    const waiting = asks.filter((ask) => !(value === undefined && String(ask).includes('waiting')))
    for (const ask of waiting) await expectRefusal(ask, { code: 'invalid_key', value, right })
    expect((await redis.keys('*')).sort()).toEqual(before)
    expect((await limiter.peek({ user: 'control', ip: 'control' })).remaining).toBe(2)
    expect((await limiter.peek({ user: 'a', ip: 'b' })).remaining).toBe(3)
    expect(await listed(limiter)).toEqual([])
  }

  it.each([undefined, null, 'a', '', 5, true, Symbol('a'), () => 'a'].map((key) => [key]))(
    'such as %s is rejected if there are dimensions',
    async (key) => {
      const { limiter, decision } = await setUp()
      const asks = [...whole(limiter, key as never, decision as never), ...some(limiter, key as never)]
      await expectRefusals(limiter, asks, key, /must be \{ user: '\.\.\.', ip: '\.\.\.' \}/)
    },
  )

  it.each([
    ['without one', { user: 'a' }, /no "ip"; pass all of user, ip, with null/],
    ['with an undefined one', { user: 'a', ip: undefined }, /no "ip"/],
    ['without any', {}, /no "user"/],
    ['with an array', [], /no "user"/],
    ['with inherited ones', Object.create({ user: 'a', ip: 'b' }), /no "user"/],
    ['with another one', { user: 'a', ip: 'b', route: 'c' }, /unknown dimension "route"; expected user, ip/],
    ['with a wrong one', { USER: 'a', ip: 'b' }, /unknown dimension "USER"/],
    ['with only nulls', { user: null, ip: null }, /pass at least one/],
  ])('%s', async (_, key, right) => {
    const { limiter, decision } = await setUp()
    const asks = [...whole(limiter, key as never, decision as never)]
    await expectRefusals(limiter, asks, key, right)
  })

  it.each([
    ['without any', {}, /pass at least one/],
    ['with only nulls', { user: null, ip: null }, /pass at least one/],
    ['with another dimension', { user: 'a', route: 'c' }, /unknown dimension "route"/],
  ])('%s is rejected even if some dimensions are enough', async (_, key, right) => {
    const { limiter } = await setUp()
    await expectRefusals(limiter, some(limiter, key as never), key, right)
  })

  it.each([5, true, {}, ['a'], '', '\uD800', 'x'.repeat(65_537)])(
    'with %j in one of its dimensions is rejected',
    async (value) => {
      const { limiter, decision } = await setUp()
      const key = { user: 'a', ip: value } as never
      const right = /must be|more than 65536 bytes|lone surrogate/
      const asks = [...whole(limiter, key, decision as never), ...some(limiter, key)]
      await expectRefusals(limiter, asks, value, right)
    },
  )

  it("with two dimensions can't have an override", async () => {
    const { limiter } = await setUp()
    const key = { user: 'a', ip: 'b' }
    const asks = [
      () => limiter.overrides.set(key, 'exempt'),
      () => limiter.overrides.get(key),
      () => limiter.overrides.delete(key),
    ]
    await expectRefusals(limiter, asks, key, /pass only one to set an override/)
  })

  it('rejects anything but a string if there are no dimensions', async () => {
    const { limiter, plain, decision } = await setUp()
    for (const key of [{ user: 'a' }, {}, null, 5, ['a'], '']) {
      const asks = [
        ...whole(plain as never, key as never, decision as never),
        ...some(plain as never, key as never),
      ]
      // The other requests of `consumeMany` have keys with dimensions.
      const own = asks.filter((ask) => !String(ask).includes('consumeMany'))
      own.push(() => plain.consumeMany([{ key: 'k' }, { key: key as never }]))
      await expectRefusals(limiter, own, key, /must be/)
    }
    expect((await plain.peek('k')).remaining).toBe(3)
  })
})

describe('limits functions', () => {
  const told: readonly (readonly [string, unknown, string, RegExp])[] = [
    ['nothing', undefined, 'invalid_limit', /must be an array with at least one limit/],
    ['null', null, 'invalid_limit', /must be an array with at least one limit/],
    ['no limits', [], 'invalid_limit', /must be an array with at least one limit/],
    ['a limit', limits[0], 'invalid_limit', /must be an array with at least one limit/],
    [
      'a promise',
      Promise.resolve(limits),
      'invalid_limit',
      /limits is a promise; it must be an array with at least one limit/,
    ],
    ['a text', '10/1m', 'invalid_limit', /must be an array with at least one limit/],
    ['something else among them', [...limits, 5], 'invalid_limit', /create limits with slidingWindow/],
    ['a copy of a limit', [{ ...limits[0]! }], 'invalid_limit', /create limits with slidingWindow/],
    ['duplicates', [...limits, ...limits], 'duplicate_limit', /give one of them another name/],
  ]

  it.each(told)('get rejected each time they return %s', async (_, value, code, right) => {
    await redis.flushall()
    for (const store of [memoryStore(), redisStore(redis)]) {
      const common = { store, timeoutMs: 30_000 }
      const plain = createLimiter({ limits: () => value as never, overrides: true, ...common })
      const several = createLimiter({ dimensions: { user: limits, ip: () => value as never }, ...common })
      const key = { user: 'a', ip: 'b' }
      for (let i = 0; i < 2; i++) {
        for (const ask of [
          () => plain.consume('k'),
          () => plain.consumeMany([{ key: 'k' }]),
          () => plain.peek('k'),
          () => plain.charge('k', 1),
          () => plain.wait('k'),
          () => plain.schedule('k', () => {}),
          () => plain.reserve('k', 1),
          () => plain.explain('k'),
          () => plain.reset('k'),
          () => several.consume(key),
          () => several.peek(key),
          () => several.reserve(key, 1),
          () => several.wait(key),
        ]) {
          await expect((async () => ask())()).rejects.toMatchObject({
            code,
            message: expect.stringMatching(right),
          })
        }
      }
      // Operations that don't need limits still work.
      await plain.block('k', '1m')
      expect(await plain.isBlocked('k')).toBe(true)
      await plain.unblock('k')
      expect((await several.consume({ user: 'c', ip: null })).remaining).toBe(2)
      await several.reset({ user: 'c' })
    }
    expect((await redis.keys('*')).filter((key) => !key.includes(':b'))).toEqual([])
  })

  it('reject the request with their error', async () => {
    const failure = new TypeError('by the caller')
    const throwing = () => {
      throw failure
    }
    const limiter = createLimiter({ limits: throwing })
    for (const ask of [
      () => limiter.consume('k'),
      () => limiter.consumeMany([{ key: 'k' }]),
      () => limiter.peek('k'),
      () => limiter.charge('k', 1),
      () => limiter.wait('k'),
      () => limiter.reserve('k', 1),
      () => limiter.explain('k'),
      () => limiter.reset('k'),
    ]) {
      let promise: Promise<unknown> | undefined
      expect(() => {
        promise = ask()
      }, 'it rejects instead of throwing').not.toThrow()
      await expect(promise).rejects.toBe(failure)
    }
    expect(() => limiter.consumeSync('k')).toThrow(failure)
  })

  it('never get an invalid key', async () => {
    const asked: string[] = []
    const limiter = createLimiter({
      limits: (key) => {
        asked.push(key)
        return limits
      },
    })
    for (const key of ['', 5, null, '\uD800']) await limiter.consume(key as string).catch(() => {})
    expect(asked).toEqual([])
    await limiter.consume('two words')
    expect(asked).toEqual(['two words'])
  })
})
