// tier: integration
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  createLimiter,
  type Duration,
  fixedWindow,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  SlidegateError,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { errorOf, expectRefusal } from './refusal.ts'

const { redis } = await useRedis()

const limits = [slidingWindow({ limit: 20, window: '1h' }), fixedWindow({ limit: 30, window: '1h' })]
const create = (options: object) => createLimiter({ limits, ...options } as LimiterOptions)
const NO_DURATIONS = [undefined, null, '', 'x', '1', '1y', Number.NaN, 1.5, -10, true, {}, ['1m'], 10n]
const OUT_OF_RANGE = [0, 9, '9ms', '367d', 366 * 86_400_000 + 1]
const NO_UNITS = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '1', 1n, true, {}, null]

describe('createLimiter rejects', () => {
  it.each([null, true, false, 5, 'on', () => {}])('the ban %s', async (value) => {
    const right = /the options for ban are .*; they must be an object/
    await expectRefusal(() => create({ ban: value }), { code: 'invalid_option', value, right })
  })

  const ban = { after: 3, within: '1m', for: '1h' }
  it.each([undefined, null, 0, -1, 1.5, 1001, Number.NaN, '3', 3n, true])('a ban after %s', async (value) => {
    const right = /ban.after .* must be an integer from 1 to 1000/
    await expectRefusal(() => create({ ban: { ...ban, after: value } }), {
      ...{ code: 'invalid_option', value, right },
    })
  })

  it.each(['within', 'forgetAfter', 'for'])('an invalid duration in ban.%s', async (option) => {
    for (const value of [...NO_DURATIONS, ...OUT_OF_RANGE]) {
      if (value === undefined && option === 'forgetAfter') continue
      const isDuration = typeof value === 'number' || typeof value === 'string'
      if (option === 'for' && !isDuration && !Array.isArray(value)) {
        const right = /ban.for .* must be a duration or an array of 1 to 32/
        await expectRefusal(() => create({ ban: { ...ban, for: value } }), {
          ...{ code: 'invalid_option', value, right },
        })
      } else if (option !== 'for' || isDuration) {
        const right = /must be whole milliseconds or a string|must be from 10ms to 366d/
        await expectRefusal(() => create({ ban: { ...ban, [option]: value } }), {
          ...{ code: 'invalid_duration', value, right },
        })
      }
    }
  })

  it('a limit with the same name as its ban', async () => {
    const named = [slidingWindow({ limit: 1, window: '1m', name: 'ban' })]
    const right = /the name is "ban"; it must be different, because deniedBy uses it for bans and blocks/
    await expectRefusal(() => create({ limits: named, ban }), {
      code: 'duplicate_limit',
      value: 'ban',
      right,
    })
    const dimensions = { ip: named }
    const refused = {
      code: 'duplicate_limit',
      value: 'ip.ban',
      right: /the name is "ip.ban"; it must be different/,
    } as const
    await expectRefusal(() => create({ limits: undefined, dimensions, ban: { ip: ban } }), refused)
    await expectRefusal(() => create({ limits: undefined, dimensions, overrides: true }), refused)
    const block = [slidingWindow({ limit: 1, window: '1m', name: 'block' })]
    const taken = {
      code: 'duplicate_limit',
      value: 'block',
      right: /the name is "block"; it must be different/,
    } as const
    await expectRefusal(() => create({ limits: block, overrides: true }), taken)
    expect(() => create({ limits: named })).not.toThrow()
  })

  it('an array of bans that is empty, too long, or has an invalid duration', async () => {
    for (const value of [[], new Array(33).fill('1m')]) {
      await expectRefusal(() => create({ ban: { ...ban, for: value } }), {
        ...{ code: 'invalid_option', value, right: /must be a duration or an array of 1 to 32/ },
      })
    }
    for (const value of [...NO_DURATIONS, ...OUT_OF_RANGE]) {
      await expectRefusal(() => create({ ban: { ...ban, for: ['1m', value] } }), {
        ...{ code: 'invalid_duration', value, right: /ban.for\[1\]/ },
      })
    }
  })

  it.each([null, 5, 'on', {}, () => {}])('overrides %s', async (value) => {
    const right = /must be true or false/
    await expectRefusal(() => create({ overrides: value }), { code: 'invalid_option', value, right })
  })

  it.each([null, 0, -1, 1.5, 2 ** 20 + 1, Number.NaN, '10', 10n, true])('maxWaiting %s', async (value) => {
    const right = /maxWaiting .* must be an integer from 1 to 1048576/
    await expectRefusal(() => create({ maxWaiting: value }), { code: 'invalid_option', value, right })
  })

  it('an invalid reservationTtl', async () => {
    for (const value of [...NO_DURATIONS, ...OUT_OF_RANGE]) {
      if (value === undefined) continue
      const right = /reservationTtl .*must be (whole milliseconds|from 10ms)/
      await expectRefusal(() => create({ reservationTtl: value }), { code: 'invalid_duration', value, right })
    }
  })

  it('none of the valid options', () => {
    for (const options of [
      { overrides: true, maxWaiting: 1, reservationTtl: 10 },
      { overrides: false, maxWaiting: 2 ** 20, reservationTtl: '366d' },
      { ban: { after: 1, within: 10, for: 10, forgetAfter: '366d' } },
      { ban: { after: 1000, within: '366d', for: new Array(32).fill('366d') } },
      { ban: undefined, overrides: undefined, maxWaiting: undefined },
    ]) {
      const limiter = create(options)
      expect(limiter.consumeSync('k').allowed).toBe(true)
      limiter.close()
    }
  })
})

const stores = { memory: () => memoryStore(), Redis: () => redisStore(redis) }

describe.each(Object.entries(stores))('%s', (_, store) => {
  let limiter: Limiter
  let token: string
  beforeEach(async () => {
    await redis.flushall()
    limiter = create({ store: store(), overrides: true, timeoutMs: 30_000 })
    token = (await limiter.reserve('k', 5)).token
  })

  /** Returns all visible stored state. */
  async function state(): Promise<unknown> {
    const keys = (await redis.keys('*')).sort()
    const values = await Promise.all(keys.map((key) => redis.dumpBuffer(key)))
    return {
      keys,
      values,
      bans: (await limiter.explain('k')).bans,
      left: (await limiter.peek('k')).remaining,
    }
  }

  async function expectRefusals(
    asks: readonly (() => unknown)[],
    expected: Parameters<typeof expectRefusal>[1],
  ): Promise<void> {
    const before = await state()
    for (const ask of asks) await expectRefusal(ask, expected)
    expect(await state()).toEqual(before)
  }

  it('rejects invalid costs and estimates', async () => {
    for (const value of NO_UNITS) {
      const cost = value as number
      await expectRefusals(
        [
          () => limiter.wait('k', { cost }),
          () => limiter.schedule('k', () => expect.unreachable(), { cost }),
          () => limiter.reserve('k', cost),
          () => limiter.explain('k', { cost }),
          () => limiter.consumeMany([{ key: 'k' }, { key: 'k', cost }]),
        ],
        { code: 'invalid_cost', value, right: /must be an integer of at least 1/ },
      )
    }
    const right = /must be an integer of at least 1/
    await expectRefusals([() => limiter.reserve('k', undefined as never)], {
      ...{ code: 'invalid_cost', value: undefined, right },
    })
  })

  it.each([null, 0, 1, 'true', {}])('rejects %s for the charges option of explain', async (value) => {
    await expectRefusals([() => limiter.explain('k', { charges: value as never })], {
      ...{ code: 'invalid_option', value, right: /must be true or false/ },
    })
  })

  it.each([null, 5, '5', true, () => {}])('rejects %s in place of options', async (value) => {
    const options = value as never
    await expectRefusals(
      [
        () => limiter.wait('k', options),
        () => limiter.schedule('k', () => expect.unreachable(), options),
        () => limiter.explain('k', options),
      ],
      { code: 'invalid_cost', value, right: value === 5 ? /write \{ cost: 5 \}/ : /write \{ cost: 1 \}/ },
    )
    await expectRefusals([() => limiter.consumeMany([{ key: 'k' }, options])], {
      ...{ code: 'invalid_option', value, right: /must be an object like \{ key, cost \}/ },
    })
    const right = /must be an object/
    await expectRefusals([() => limiter.overrides.set('k', 'exempt', options)], {
      ...{ code: 'invalid_option', value, right },
    })
  })

  it('rejects invalid wait options', async () => {
    const refuse = async (option: string, values: readonly unknown[], right: RegExp) => {
      for (const value of values) {
        const options = { [option]: value }
        const asks = [() => limiter.wait('k', options), () => limiter.schedule('k', () => {}, options)]
        await expectRefusals(asks, { code: 'invalid_option', value, right })
      }
    }
    const integer = [null, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '1', 1n, true, {}]
    await refuse(
      'maxWaitMs',
      [-1, 2 ** 31, ...integer],
      /maxWaitMs .* must be an integer from 0 to 2147483647/,
    )
    await refuse('priority', [2 ** 53, ...integer], /priority .* must be an integer/)
    const noSignals = [null, 5, 'abort', {}, { aborted: false }, new AbortController(), AbortSignal]
    await refuse('signal', noSignals, /signal .* must be an AbortSignal/)
  })

  it.each([undefined, null, 5, 'task', {}, Promise.resolve()])('rejects the task %s', async (value) => {
    await expectRefusals([() => limiter.schedule('k', value as never)], {
      ...{ code: 'invalid_option', value, right: /the task .* must be a function/ },
    })
  })

  it('rejects invalid units for a settlement, and keeps the reservation', async () => {
    const reservation = await limiter.reserve('k', 5)
    for (const value of [undefined, ...NO_UNITS.slice(1)]) {
      const actual = value as number
      await expectRefusals([() => reservation.settle(actual), () => limiter.settle(token, actual)], {
        ...{ code: 'invalid_cost', value, right: /must be an integer of at least 0/ },
      })
    }
    expect(await reservation.settle(0)).toEqual({ returned: 5, added: 0 })
    expect(await limiter.settle(token, 1)).toEqual({ returned: 4, added: 0 })
  })

  const aWord = fc.oneof(
    fc.anything(),
    fc.constantFrom<unknown>(1, 'default', 'k', 5, 1000, '', 'x.5', '.5', [[]], [['w1', 'f3600000']], null),
  )
  const anyToken = fc.oneof(
    fc.anything(),
    fc.base64String(),
    fc.string(),
    fc
      .oneof(
        fc.anything(),
        fc.array(aWord),
        fc.tuple(fc.constant(1), fc.constant('default'), aWord, aWord, aWord, aWord),
      )
      .map((words) => {
        const text = JSON.stringify(words, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
        return Buffer.from(text ?? '').toString('base64url')
      }),
  )

  it("rejects anything that isn't a token, and creates no units", () =>
    fc.assert(
      fc.asyncProperty(anyToken, async (garbage) => {
        const error = await errorOf(() => limiter.cancel(garbage as string))
        // A reservation unknown to the store has nothing to return.
        if (error !== undefined) {
          expect(error).toBeInstanceOf(SlidegateError)
          expect(['invalid_reservation', 'invalid_key']).toContain((error as SlidegateError).code)
          expect((error as SlidegateError).message.length).toBeLessThan(300)
        }
        expect((await limiter.peek('k')).remaining).toBe(15)
      }),
      { numRuns: 400 },
    ))

  it('rejects a token in which any word was changed, and creates no units', () =>
    fc.assert(
      fc.asyncProperty(fc.nat(4), aWord, async (place, word) => {
        // Words 1 to 5, all except the version. Which logs were charged is trusted, but at most the charged units are returned.
        const words: unknown[] = JSON.parse(Buffer.from(token, 'base64url').toString())
        fc.pre(JSON.stringify(words[place]) !== JSON.stringify(word))
        words[place] = word
        const text = JSON.stringify(words, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
        const forged = Buffer.from(text).toString('base64url')
        const error = await errorOf(() => limiter.cancel(forged))
        // Without a name, the store doesn't know the reservation.
        if (!(place === 4 && word === '')) expect(error).toBeInstanceOf(SlidegateError)
        expect((await limiter.peek('k')).remaining).toBe(15)
      }),
      { numRuns: 200 },
    ))

  it('rejects a token with more keys or logs than a request can have', async () => {
    const words: unknown[] = JSON.parse(Buffer.from(token, 'base64url').toString())
    const logs = Array.from({ length: 1025 }, () => 'w1')
    const instants = Array.from({ length: 17 }, () => 0)
    for (const [place, word] of [
      [5, [logs]],
      [5, instants.map(() => [])],
      [6, instants],
    ] as const) {
      const forged = Buffer.from(JSON.stringify(words.with(place, word))).toString('base64url')
      const right = /pass the token of a reservation/
      await expectRefusals([() => limiter.cancel(forged)], {
        code: 'invalid_reservation',
        value: forged,
        right,
      })
    }
    expect((await limiter.peek('k')).remaining).toBe(15)
  })

  it('rejects an invalid block duration', async () => {
    for (const value of [...NO_DURATIONS, ...OUT_OF_RANGE]) {
      const right = /the duration .*must be (whole milliseconds|from 10ms)/
      await expectRefusals([() => limiter.block('k', value as never)], {
        ...{ code: 'invalid_duration', value, right },
      })
    }
  })

  it('rejects a consumeMany with invalid requests, and charges none of the others', async () => {
    for (const value of [undefined, null, 5, 'k', {}, { key: 'k' }, new Set([{ key: 'k' }])]) {
      const right = /requests is .* must be an array of at most 10000 objects like \{ key, cost \}/
      await expectRefusals([() => limiter.consumeMany(value as never)], {
        ...{ code: 'invalid_option', value, right },
      })
    }
    const before = await state()
    for (const request of [
      undefined,
      null,
      5,
      'k',
      [],
      {},
      { cost: 2 },
      { key: null },
      { key: 'k', cost: 0 },
    ]) {
      const error = await errorOf(() => limiter.consumeMany([{ key: 'k' }, request as never, { key: 'k' }]))
      expect(error, String(request)).toBeInstanceOf(SlidegateError)
    }
    expect(await state()).toEqual(before)
  })

  it('rejects invalid keys in every operation', async () => {
    for (const value of [undefined, null, 5, true, {}, ['k'], '', '\uD800', 'x'.repeat(65_537)]) {
      const key = value as string
      await expectRefusals(
        [
          () => limiter.consumeMany([{ key: 'k' }, { key }]),
          () => limiter.wait(key),
          () => limiter.schedule(key, () => expect.unreachable()),
          () => limiter.reserve(key, 1),
          () => limiter.explain(key),
          () => limiter.block(key, '1m'),
          () => limiter.unblock(key),
          () => limiter.isBlocked(key),
          () => limiter.overrides.set(key, 'exempt'),
          () => limiter.overrides.get(key),
          () => limiter.overrides.delete(key),
          ...(value === undefined ? [] : [() => limiter.waiting(key)]),
        ],
        { code: 'invalid_key', value, right: /must be|more than 65536 bytes|lone surrogate/ },
      )
    }
  })

  it('rejects invalid overrides', async () => {
    const hour = [slidingWindow({ limit: 20, window: '1h', name: 'hour' })]
    const named = create({ limits: hour, store: store(), overrides: true })
    const refuse = (set: unknown, code: SlidegateError['code'], value: unknown, right: RegExp) =>
      expectRefusals([() => named.overrides.set('k', set as never)], { code, value, right })
    for (const value of [undefined, null, {}, '10/1m', 'ban', 5, () => limits, []]) {
      await refuse(
        value,
        'invalid_limit',
        value,
        /must be \{ <name>: \{ limit, window \} \}, 'exempt' or 'block'/,
      )
    }
    const unknown = /the override for "hour" has "limt"; it can change limit, window/
    const misspelt = { limt: 5 }
    await refuse(misspelt, 'invalid_limit', misspelt, unknown)
    await refuse({ day: { limit: 5 } }, 'invalid_limit', 'day', /unknown limit "day"; expected one of: hour/)
    for (const limit of [0, -1, 1.5, 2 ** 40 + 1, Number.NaN, '5', null]) {
      await refuse({ limit }, 'invalid_limit', limit, /must be an integer from 1 to 2\^40/)
    }
    for (const window of OUT_OF_RANGE) await refuse({ window }, 'invalid_duration', window, /the window/)
    named.close()
    for (const value of [...NO_DURATIONS, ...OUT_OF_RANGE]) {
      if (value === undefined) continue
      const ttl = value as Duration
      await expectRefusals([() => limiter.overrides.set('k', 'exempt', { ttl })], {
        ...{ code: 'invalid_duration', value, right: /the ttl/ },
      })
    }
  })

  it('rejects a value if no limit counts it', async () => {
    const right = /no limit in this limiter counts values/
    const options = { value: 'v' }
    const asks = [() => limiter.consume('k', options), () => limiter.peek('k', options)]
    await expectRefusals(asks, { code: 'invalid_value', value: 'v', right })
  })

  it("rejects operations that the limiter doesn't support", async () => {
    const plain = create({ store: store() })
    await expectRefusal(() => plain.block('k', '1m'), {
      ...{ code: 'invalid_option', value: 'default', right: /create it with overrides: true/ },
    })
    for (const ask of [() => plain.unblock('k'), () => plain.isBlocked('k')]) {
      await expectRefusal(ask, {
        code: 'invalid_option',
        value: 'k',
        right: /with overrides: true or a ban option/,
      })
    }
    await expectRefusal(() => plain.overrides, {
      ...{ code: 'invalid_option', value: 'default', right: /create it with overrides: true/ },
    })
  })

  it('rejects everything after close', async () => {
    const reservation = await limiter.reserve('k', 1)
    const { overrides } = limiter
    limiter.close()
    for (const ask of [
      () => limiter.consumeMany([{ key: 'k' }]),
      () => limiter.wait('k'),
      () => limiter.schedule('k', () => expect.unreachable()),
      () => limiter.waiting('k'),
      () => limiter.reserve('k', 1),
      () => limiter.settle(token, 1),
      () => limiter.cancel(token),
      () => reservation.settle(1),
      () => reservation.cancel(),
      () => limiter.explain('k'),
      () => limiter.block('k', '1m'),
      () => limiter.unblock('k'),
      () => limiter.isBlocked('k'),
      () => overrides.set('k', 'exempt'),
      () => overrides.get('k'),
      () => overrides.delete('k'),
      async () => overrides.list()[Symbol.asyncIterator]().next(),
    ]) {
      expect(await errorOf(ask), String(ask)).toMatchObject({ code: 'closed', value: 'default' })
    }
  })

  it('rejects instead of throwing', async () => {
    for (const ask of [
      () => limiter.consumeMany(null as never),
      () => limiter.wait(''),
      () => limiter.schedule('', null as never),
      () => limiter.reserve('', 0),
      () => limiter.settle('', 0),
      () => limiter.cancel(null as never),
      () => limiter.explain(''),
      () => limiter.block('', '' as '1m'),
      () => limiter.unblock(''),
      () => limiter.isBlocked(''),
      () => limiter.overrides.set('', null as never),
      () => limiter.overrides.get(''),
      () => limiter.overrides.delete(''),
    ]) {
      let promise: Promise<unknown> | undefined
      expect(() => {
        promise = ask()
      }).not.toThrow()
      expect(await errorOf(() => promise)).toBeInstanceOf(SlidegateError)
    }
  })
})
