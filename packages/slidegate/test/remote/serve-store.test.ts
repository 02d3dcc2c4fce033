// tier: integration
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  failurePolicy,
  fixedWindow,
  memoryStore,
  SlidegateError,
  type Store,
  slidingWindow,
  tupleKey,
} from '../../src/index.ts'
import { FOREVER } from '../../src/limits/override.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { WIRE_VERSION } from '../../src/stores/remote/bodies.ts'
import { type ServedStore, serveStore } from '../../src/stores/remote/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { held } from '../resilience/stores.ts'
import { until } from '../support/until.ts'
import { useRedis } from '../support/use-redis.ts'
import { damagedBody, sentBodies, VICTIM } from './bodies.ts'
import { served } from './served.ts'

// Tests that malicious bodies from the network do no harm.

const { redis } = await useRedis()
const bodies = await sentBodies()

class Forbidden extends Error {}

const authorize = (limiter: string) => {
  if (!/^mine(\.|$)/.test(limiter)) throw new Forbidden(limiter)
}

const BAN = { after: 3, within: 60_000, for: 60_000 }
const set = { limiter: 'mine', limits: [{ kind: 'slidingWindow', limit: 2, window: 60_000 }] }
const override = (more: object) => ({ type: 'override', parts: [[0, 'ann']], ...more })
const consume = { type: 'consume', parts: [[0, 'ann']], cost: 1, count: 1, leaseMs: 0 }
const bodyOf = (ops: unknown, sets: unknown = [set], version: unknown = WIRE_VERSION) => ({
  version,
  sets,
  ops,
})

const STORES: Record<string, (clock?: () => number) => Store> = {
  memory: (clock) => memoryStore({ ...(clock && { clock }) }),
  Redis: (clock) => redisStore(redis, { prefix: 'slidegate:hostile', ...(clock && { clock }) }),
}

describe.each(Object.entries(STORES))('a service on %s', (_, open) => {
  it('accepts all bodies that the library sends', async () => {
    const serve = serveStore(open(), { timeoutMs: 30_000 })
    for (const body of bodies) {
      const { outcomes } = await serve(body, authorize)
      expect(outcomes.filter((outcome) => (outcome as { error?: unknown } | null)?.error)).toEqual([])
    }
    expect(new Set(JSON.stringify(bodies).match(/"type":"\w+"/g)).size).toBe(12)
  })

  it('rejects damaged bodies and leaves other limiters unaffected', async () => {
    const store = open()
    const serve = serveStore(store, { timeoutMs: 30_000 })
    const keys = ['ann', 'bob', 'k0', '~overrides', 'x']
    const victims = ['victim', 'slidegate.readiness'].map((name) =>
      createLimiter({ name, store, limits: [slidingWindow({ limit: 7, window: '1h' })], timeoutMs: 30_000 }),
    )
    for (const victim of victims) for (const key of keys) await victim.charge(tupleKey(key), 3)
    const seen = { answered: 0, refused: 0, isWrong: 0, failed: 0 }
    const property = fc.asyncProperty(damagedBody(bodies), async (body) => {
      try {
        const { outcomes } = await serve(JSON.parse(JSON.stringify(body ?? null)), authorize)
        for (const outcome of outcomes) {
          const { error } = (outcome ?? {}) as {
            error?: { code?: string; reason?: string; message?: string }
          }
          if (error === undefined) seen.answered++
          else if (error.reason !== undefined) {
            // Only the store could detect the mistake.
            expect(error.reason, JSON.stringify(body)).toMatch(/^(full|state)$/)
            seen.failed++
          } else {
            if (error.code === undefined) expect(error.message).not.toMatch(/^mine/)
            seen.isWrong++
          }
        }
        JSON.stringify(outcomes)
      } catch (error) {
        if (!(error instanceof SlidegateError || error instanceof Forbidden)) throw error
        seen.refused++
      }
    })
    await fc.assert(property, { numRuns: 1500 })
    expect(seen.answered).toBeGreaterThan(50)
    expect(seen.refused).toBeGreaterThan(50)
    expect(seen.isWrong).toBeGreaterThan(50)
    for (const victim of victims) {
      for (const key of keys) expect((await victim.peek(tupleKey(key))).remaining).toBe(4)
      victim.close()
    }
  })
})

/** Matches the error, which names both versions. */
const REFUSED = (version: unknown) =>
  new RegExp(
    `the body has version ${version} of the store format, but this side supports version ${WIRE_VERSION};`,
  )

describe('an error describes the mistake', () => {
  const serve = serveStore(memoryStore())
  const part = (more: object) => ({ ...consume, ...more })
  const zset = { ...set, limits: [{ ...set.limits[0], log: 'zset' }] }
  const wholes: readonly (readonly [string, unknown, RegExp])[] = [
    ['no body', null, /the body is null/],
    ['a later version', { version: WIRE_VERSION + 1, other: [] }, REFUSED(WIRE_VERSION + 1)],
    ['an earlier version', bodyOf([consume], [set], 1), REFUSED(1)],
    ['a version as text', bodyOf([consume], [set], `${WIRE_VERSION}`), REFUSED(`"${WIRE_VERSION}"`)],
    ['no version', { sets: [set], ops: [consume] }, REFUSED('undefined')],
    ['an unknown field', { ...bodyOf([consume]), more: 1 }, /the body has "more"/],
    ['no ops', bodyOf([]), /ops is an array of 0/],
    ['too many ops', bodyOf(Array.from({ length: 1025 }, () => consume)), /ops is an array of 1025/],
    ['no limits', bodyOf([consume], [{ limiter: 'mine' }]), /sets\[0\]: limits is undefined/],
    [
      'a kind of a later version',
      bodyOf([consume], [{ ...set, limits: [{ kind: 'new' }] }]),
      /sets\[0\]: limits\[0\]: /,
    ],
    [
      'an option of a later version',
      bodyOf([consume], [{ ...set, limits: [{ ...set.limits[0], smooth: true }] }]),
      /limits\[0\]: unknown option "smooth" for this limit; /,
    ],
    ['an addition of a later version', bodyOf([consume], [{ ...set, additions: [{ new: 1 }] }]), /has "new"/],
    [
      'two bans',
      bodyOf([consume], [{ ...set, additions: [{ ban: BAN }, { ban: BAN }] }]),
      /the set has "ban" more than once/,
    ],
    ['a ban without options', bodyOf([consume], [{ ...set, additions: [{ ban: true }] }]), /ban is true/],
    ['an override of none', bodyOf([consume], [{ ...set, isOverridable: 1 }]), /isOverridable is 1/],
    ['a bad name', bodyOf([consume], [{ ...set, limiter: 'mine/a/b' }]), /limiter is "mine\/a\/b"/],
    ['65 limits', bodyOf([consume], [{ ...set, limits: Array(65).fill(set.limits[0]) }]), /are 65 limits/],
    [
      'limits with the same name',
      bodyOf([consume], [{ ...set, limits: Array(2).fill(set.limits[0]) }]),
      /two limits/,
    ],
    [
      'values next to requests',
      bodyOf(
        [consume],
        [{ ...set, limits: [...set.limits, { kind: 'distinct', limit: 5, window: 60_000 }] }],
      ),
      /limit "5-per-1m" counts distinct values, so it must be the only limit of a limiter/,
    ],
  ]
  it.each(wholes)('in a body: %s', async (_, body, message) => {
    await expect(serve(body, authorize)).rejects.toThrow(message)
  })

  const ops: readonly (readonly [string, unknown, RegExp])[] = [
    ['no type', { parts: [[0, 'ann']] }, /the type is undefined/],
    [
      'a type named like a property of all objects',
      part({ type: 'constructor' }),
      /the type is "constructor"/,
    ],
    ['no key', part({ parts: [[0]] }), /a part is an array of 1/],
    ['no such set', part({ parts: [[1, 'ann']] }), /a part's set is 1/],
    ['a key that is not encoded', part({ parts: [[0, 'a b']] }), /a part's key is "a b"/],
    ['a key twice', part({ parts: Array(2).fill([0, 'ann']) }), /two parts have the same key/],
    [
      '17 keys',
      part({ parts: Array.from({ length: 17 }, (_, i) => [0, `${i}`]) }),
      /parts is an array of 17/,
    ],
    ['a cost of 0', part({ cost: 0 }), /cost is 0/],
    ['a cost that is too large', part({ cost: 2 ** 53 }), /cost is 9007199254740992/],
    ['a count that is too large', part({ count: 2 ** 31 }), /count is 2147483648/],
    ['a lease that is too long', part({ leaseMs: 2 ** 40 }), /leaseMs is/],
    ['an id that no limit keeps', part({ requestId: 'r' }), /requestId is "r"/],
    ['a reservation without its log', part({ reservation: 'r.1' }), /needs the addition "reservations"/],
    ['a block', { type: 'block', parts: [[0, 'ann']], ms: 1 }, /the type is "block"/],
    ['an override of keys without overrides', override({ blockMs: 1 }), /needs isOverridable/],
    [
      'a page of keys without overrides',
      { type: 'overrides', parts: [[0, '']], bucket: 0, after: '' },
      /needs isOverridable/,
    ],
    [
      'fields of another op',
      part({ type: 'peek', leaseMs: undefined, count: 2 }),
      /count is 2|has "leaseMs"/,
    ],
    [
      'missing logs',
      {
        ...consume,
        type: 'refund',
        units: 1,
        atMs: 0,
        charged: [true, true],
        cost: undefined,
        count: undefined,
        leaseMs: undefined,
      },
      /charged is an array of 2|has/,
    ],
  ]
  it.each(ops)('in an op: %s', async (_, op, message) => {
    const { outcomes } = await serve(JSON.parse(JSON.stringify(bodyOf([op, consume]))), authorize)
    expect(outcomes[0]).toMatchObject({ error: { message: expect.stringMatching(/^ops\[0\]: /) } })
    expect((outcomes[0] as { error: { message: string } }).error.message).toMatch(message)
    // Other ops in the same body aren't affected.
    expect(outcomes[1]).toMatchObject({ source: 'store' })
  })

  it.each(['refund', 'settle'])('in a %s: a log to which no request is charged', async (type) => {
    const serve = serveStore(redisStore(redis, { prefix: 'slidegate:uncharged' }), { timeoutMs: 30_000 })
    const additions = [{ ban: BAN }, { reservations: 60_000 }]
    const ask = async (charged: readonly boolean[]) => {
      const own = {
        refund: { units: 1, atMs: 1 },
        settle: { reservation: 'r.1', units: 1, actual: 0, instants: [1] },
      }
      const op = { type, parts: consume.parts, charged, ...own[type as keyof typeof own] }
      return (await serve(bodyOf([op], [{ ...set, additions }]), authorize)).outcomes[0]
    }
    expect(await ask([true, false, false])).not.toHaveProperty('error')
    for (const charged of [
      [true, true, false],
      [false, false, true],
    ]) {
      expect(await ask(charged)).toMatchObject({
        error: { message: expect.stringContaining('charged is true') },
      })
    }
  })

  it.each([
    ['sliding windows of 1,000 records', { kind: 'slidingWindow', limit: 1000, window: 60_000 }],
    ['streams', { kind: 'slidingWindow', limit: 100, window: 60_000, log: 'stream' }],
  ])('but a refund of 15 keys is accepted: %s', async (_, limit) => {
    const parts = Array.from({ length: 15 }, (_, i) => [0, `key${i}`])
    const named = 'log' in limit ? { requestId: 'r' } : {}
    const refund = { type: 'refund', parts, units: 1, atMs: 1, charged: parts.map(() => true), ...named }
    const { outcomes } = await serve(bodyOf([refund], [{ ...set, limits: [limit] }]), authorize)
    expect(outcomes[0]).not.toHaveProperty('error')
  })

  it('in an op: a missing id for limits that keep requests', async () => {
    const { outcomes } = await serve(bodyOf([consume], [zset]), authorize)
    expect(outcomes[0]).toMatchObject({ error: { message: expect.stringContaining('requestId') } })
  })

  it('in an op: more charges than are allowed', async () => {
    const explain = { type: 'explain', parts: consume.parts, cost: 1, count: 1 }
    const { outcomes } = await serve(
      bodyOf([512, 513].map((charges) => ({ ...explain, charges }))),
      authorize,
    )
    expect(outcomes).toMatchObject([
      { charges: [expect.any(Array)] },
      { error: { message: expect.stringContaining('charges is 513; it must be an integer from 1 to 512') } },
    ])
  })

  it("in an op: an operation that values don't support", async () => {
    const values = { ...set, limits: [{ kind: 'distinct', limit: 5, window: 60_000 }] }
    const named = { ...consume, requestId: 'v' }
    const settle = {
      type: 'settle',
      reservation: 'r.1',
      units: 1,
      actual: 2,
      charged: [true, false],
      instants: [0],
    }
    const reserved = { ...values, additions: [{ reservations: 60_000 }] }
    const wrong: readonly (readonly [object, object[], string])[] = [
      [{ ...named, cost: 2 }, [values], 'the number of units is 2; it must be 1'],
      [
        { type: 'charge', parts: named.parts, units: 3, requestId: 'v' },
        [values],
        'the number of units is 3',
      ],
      [consume, [values], 'requestId is undefined'],
      [
        { ...named, parts: [0, 1].map((place) => [place, 'ann']) },
        [values, { ...set, limiter: 'mine/b' }],
        'parts is an array of 2',
      ],
      [{ ...settle, parts: named.parts }, [reserved], "doesn't support reservations"],
    ]
    for (const [op, sets, message] of wrong) {
      const { outcomes } = await serve(bodyOf([op], sets), authorize)
      expect(outcomes).toMatchObject([{ error: { message: expect.stringContaining(message) } }])
    }
  })

  const rules: readonly (readonly [string, object, RegExp])[] = [
    ['a rule without its time', { rule: 'exempt' }, /ruleMs is undefined/],
    ['a time without its rule', { ruleMs: 5 }, /ruleMs is 5/],
    ['a time that is too long', { rule: 'exempt', ruleMs: 2 ** 40 }, /ruleMs is 1099511627776/],
    ['no time', { blockMs: null }, /blockMs is null/],
    ['a word', { rule: 'none', ruleMs: 5 }, /rule is "none"/],
    ['JSON with a space', { rule: '{"a": {"limit":5}}', ruleMs: 5 }, /rule is/],
    ['JSON with a line feed', { rule: '{"a":{"limit":5}}\n', ruleMs: 5 }, /rule is/],
    ['an invalid limit name', { rule: '{"a b":{"limit":5}}', ruleMs: 5 }, /rule is/],
    ['an unknown limit field', { rule: '{"a":{"units":5}}', ruleMs: 5 }, /rule is/],
    ['a string as a number', { rule: '{"a":{"limit":"5"}}', ruleMs: 5 }, /rule is/],
    ['a fraction', { rule: '{"a":{"limit":0.5}}', ruleMs: 5 }, /rule is/],
    ['a number that is too large', { rule: '{"a":{"limit":1099511627777}}', ruleMs: 5 }, /rule is/],
    ['a list', { rule: '[{"limit":5}]', ruleMs: 5 }, /rule is/],
    ['a rule that is too long', { rule: `{"a":{"limit":5},"${'b'.repeat(8192)}":{}}`, ruleMs: 5 }, /rule is/],
    [
      'fewer given keys than parts',
      { given: [], blockMs: 1 },
      /given is an array of 0; it must be an array of 1/,
    ],
    ['given keys that are not strings', { given: [5], blockMs: 1 }, /given is 5/],
  ]
  it.each(rules)('in an override: %s', async (_, fields, message) => {
    const overridable = { ...set, isOverridable: true }
    const { outcomes } = await serve(bodyOf([override(fields), consume], [overridable]), authorize)
    expect(outcomes[0]).toMatchObject({ error: { message: expect.stringMatching(message) } })
    expect(outcomes[1]).not.toHaveProperty('overrides')
  })

  it('in an op: a count of a request with an id', async () => {
    const kept = { ...set, limits: [{ kind: 'distinct', limit: 5, window: 60_000 }] }
    const reserved = { ...set, additions: [{ reservations: 60_000 }] }
    const own: readonly (readonly [unknown, object])[] = [
      [zset, { requestId: 'r' }],
      [kept, { requestId: 'v' }],
      [reserved, { reservation: 'r.1' }],
    ]
    for (const [sets, fields] of own) {
      const body = bodyOf(
        [1, 2].map((count) => ({ ...consume, ...fields, count })),
        [sets],
      )
      const { outcomes } = await serve(body, authorize)
      expect(outcomes).toMatchObject([
        { source: 'store' },
        { error: { message: expect.stringContaining('count is 2; it must be 1 if') } },
      ])
    }
  })
})

describe.each(Object.entries(STORES))('on %s', (_, open) => {
  const own: Readonly<Record<string, object>> = {
    consume: { cost: 1, count: 1, leaseMs: 0 },
    peek: { cost: 1, count: 1 },
    explain: { cost: 1, count: 1 },
    charge: { units: 1 },
    refund: { units: 1, atMs: 1, charged: [] },
    extend: { units: 1, requestId: 'r' },
    release: { units: 1, requestId: 'r' },
    list: {},
    reset: {},
    settle: { reservation: 'r.1', units: 1, actual: 1, charged: [], instants: [1] },
    override: { blockMs: 1 },
    overrides: { bucket: 0, after: '' },
  }

  it.each(Object.keys(own))(
    'a %s on a set without logs is rejected, and other keys stay unchanged',
    async (type) => {
      const serve = serveStore(open(), { timeoutMs: 30_000 })
      const empty = { limiter: 'mine', limits: [] }
      const key = `ann-${type}`
      const use = { ...consume, parts: [[0, key]] }
      await serve(bodyOf([use]), authorize)
      const parts = [[1, key]]
      const both = [
        [0, `bob-${type}`],
        [1, key],
      ]
      const { outcomes } = await serve(
        bodyOf([{ type, ...own[type], parts }, { type, ...own[type], parts: both }, use], [set, empty]),
        authorize,
      )
      expect(outcomes).toEqual([
        ...Array(2).fill({
          error: { code: 'invalid_option', message: expect.stringContaining('no limits') },
        }),
        expect.objectContaining({ admitted: 1, limits: [1, expect.any(Number), expect.any(Number)] }),
      ])
    },
  )
})

// Otherwise the work of a body would depend on the data of its keys.
describe.each(Object.entries(STORES))(
  'on %s, a refund writes at most as much as its own limit allows',
  (_, open) => {
    it.each([
      ['packed', {}, 256],
      ['stream', { requestId: 'r' }, 128],
    ])('%s', async (log, named, most) => {
      const clock = new ManualClock()
      const serve = serveStore(open(clock.now), { timeoutMs: 30_000 })
      const limits = [1000, 5].map((limit) => ({ ...set, limits: [{ ...set.limits[0], limit, log }] }))
      const ask = async (op: object) => {
        const { outcomes } = await serve(bodyOf([{ parts: [[0, log]], ...op, ...named }], limits), authorize)
        return outcomes[0]
      }
      const consumeOnce = async () => {
        clock.advance(1)
        await ask({ ...consume, parts: [[0, log]] })
        return clock.now()
      }
      const refund = (limit: 0 | 1, atMs: number) =>
        ask({ type: 'refund', parts: [[limit, log]], units: 1, atMs, charged: [true] })
      const first = await consumeOnce()
      for (let i = 0; i < most; i++) await consumeOnce()
      const last = await consumeOnce()
      expect(await refund(1, first)).toEqual({ returned: [0] })
      expect(await refund(1, last)).toEqual({ returned: [1] })
      expect(await refund(0, first)).toEqual({ returned: [1] })
    })
  },
)

describe('a function that returns the store of a limiter', () => {
  const asks = (limiters: readonly string[]) =>
    bodyOf(
      limiters.map((_, i) => ({ ...consume, parts: [[i, 'ann']] })),
      limiters.map((limiter) => ({ ...set, limiter })),
    )

  it('keeps the charges of limiters separate', async () => {
    const stores = { mine: memoryStore(), 'mine.too': memoryStore() }
    const serve = serveStore((limiter) => stores[limiter as keyof typeof stores])
    const { outcomes } = await serve(asks(['mine', 'mine/user', 'mine.too']), authorize)
    expect(outcomes).toMatchObject(Array(3).fill({ admitted: 1 }))
    expect([stores.mine.stats().keys, stores['mine.too'].stats().keys]).toEqual([2, 1])
  })

  it('fails a request with limiters of several stores', async () => {
    const stores = { mine: memoryStore(), 'mine.too': memoryStore() }
    const serve = serveStore((limiter) => stores[limiter as keyof typeof stores])
    const parts = [
      [0, 'ann'],
      [1, 'ann'],
    ]
    const sets = ['mine', 'mine.too'].map((limiter) => ({ ...set, limiter }))
    const { outcomes } = await serve(bodyOf([{ ...consume, parts }], sets), authorize)
    expect(outcomes).toMatchObject([
      { error: { code: 'invalid_option', message: 'all limiters in the op consume must be on one store' } },
    ])
    expect([stores.mine.stats().keys, stores['mine.too'].stats().keys]).toEqual([0, 0])
  })

  it('fails only the requests of a limiter without a store', async () => {
    const serve = serveStore((limiter) => (limiter === 'mine' ? memoryStore() : (undefined as never)))
    const { outcomes } = await serve(asks(['mine.too', 'mine']), authorize)
    expect(outcomes).toMatchObject([
      { error: { code: 'invalid_option', message: expect.stringContaining('the store is undefined') } },
      { admitted: 1 },
    ])
  })

  it.each([undefined, null, 'memory', {}])('rejects any value other than a store: %j', (store) => {
    expect(() => serveStore(store as never)).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  })

  it('needs a valid timeoutMs, which is checked immediately', () => {
    expect(() => serveStore(() => memoryStore(), { timeoutMs: 0 })).toThrow(
      expect.objectContaining({ code: 'invalid_option' }),
    )
  })
})

it('an unauthorized limiter is rejected without failing authorized ones', async () => {
  const serve: ServedStore = serveStore(memoryStore())
  const foreign = { ...set, limiter: `${VICTIM}/user` }
  await expect(serve(bodyOf([consume], [foreign]), authorize)).rejects.toBeInstanceOf(Forbidden)
  const theirs = { ...consume, parts: [[1, 'ann']] }
  const mixed = {
    ...consume,
    parts: [
      [0, 'ann'],
      [1, 'bob'],
    ],
  }
  const { outcomes } = await serve(bodyOf([theirs, mixed, consume], [set, foreign]), authorize)
  expect(outcomes).toEqual([
    ...[{ error: { message: VICTIM } }, { error: { message: VICTIM } }],
    expect.objectContaining({ admitted: 1, limits: [0, 0, 60_000] }),
  ])
})

it('authorization is checked for each body', async () => {
  const serve = serveStore(memoryStore())
  let isAllowed = true
  const asked: string[] = []
  const now = (limiter: string) => {
    asked.push(limiter)
    if (!isAllowed) throw new Forbidden()
  }
  await serve(bodyOf([consume]), now)
  isAllowed = false
  await expect(serve(bodyOf([consume]), now)).rejects.toBeInstanceOf(Forbidden)
  expect(asked).toEqual(['mine', 'mine'])
})

describe('one body', () => {
  const limitsOf = (count: number, from = 0) =>
    Array.from({ length: count }, (_, i) => ({
      ...{ kind: 'fixedWindow', limit: 5, window: 60_000 + from + i, name: `n${i}` },
    }))
  const setsOf = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ ...set, limits: limitsOf(64, 64 * i) }))
  const partsOf = (count: number) => Array.from({ length: count }, (_, i) => [0, `k${i}`])
  const tooMuch = (what: string) => ({
    error: {
      code: 'invalid_option',
      message: expect.stringMatching(`^the body's total for ${what} is \\d+; it must be at most`),
    },
  })
  const isAnswered = (outcome: unknown) => !('error' in (outcome as object))

  it('with too much work fails from that op on', async () => {
    const serve = serveStore(memoryStore())
    const ops = [...Array(20).fill({ ...consume, parts: partsOf(5) }), consume]
    const { outcomes } = await serve(bodyOf(ops, setsOf(1)), authorize)
    // 16 parts with 64 logs each are three quarters of a body's work.
    expect(outcomes.filter(isAnswered)).toHaveLength(4)
    expect(outcomes.slice(4)).toEqual(Array(17).fill(tooMuch('work')))
  })

  it('with too many limits fails from that op on, before the limits are created', async () => {
    const serve = serveStore(memoryStore())
    const ops = [19, 20, 21].map((place) => ({ ...consume, parts: [[place, 'ann']] }))
    const { outcomes } = await serve(bodyOf(ops, [...setsOf(21), set]), authorize)
    expect(outcomes).toEqual([expect.objectContaining({ admitted: 1 }), tooMuch('limits'), tooMuch('limits')])
  })

  it('fails even if only its first op has too much work', async () => {
    const serve = serveStore(memoryStore())
    const sliding = Array.from({ length: 64 }, (_, i) => ({
      ...set.limits[0],
      precision: 60 * i + 60,
      window: 3_600_000 * 60,
      name: `s${i}`,
    }))
    const { outcomes } = await serve(
      bodyOf([{ ...consume, parts: partsOf(16) }], [{ ...set, limits: sliding }]),
      authorize,
    )
    expect(outcomes).toEqual([tooMuch('work')])
  })

  it('gets at most a few hundred error messages', async () => {
    const serve = serveStore(memoryStore())
    const { outcomes } = await serve(bodyOf(Array(1024).fill({ ...consume, cost: 0 })), authorize)
    expect(outcomes[200]).toMatchObject({
      error: { message: expect.stringContaining('ops[200]: cost is 0') },
    })
    expect(outcomes[300]).toEqual(tooMuch('work'))
  })

  it('lists up to 10,000 entries plus those of one part', async () => {
    const serve = serveStore(memoryStore())
    const kept = { ...set, limits: [{ kind: 'concurrency', limit: 5000, ttl: 60_000 }] }
    for (let key = 0; key < 4; key++) {
      for (let from = 0; from < 4000; from += 500) {
        const ops = Array.from({ length: 500 }, (_, i) => ({
          ...{ ...consume, parts: [[0, `k${key}`]], requestId: `r${from + i}` },
        }))
        expect((await serve(bodyOf(ops, [kept]), authorize)).outcomes.every(isAnswered)).toBe(true)
      }
    }
    const list = (parts: number) => ({ type: 'list', parts: partsOf(parts) })
    const answer = await serve(bodyOf([list(3)], [kept]), authorize)
    expect((answer.outcomes[0] as { lists: unknown[][] }).lists.map((each) => each.length)).toEqual([
      4000, 4000, 4000,
    ])
    const more = await serve(bodyOf([list(4)], [kept]), authorize)
    expect(more.outcomes).toEqual([
      {
        error: {
          code: 'invalid_option',
          message: expect.stringContaining('the list already has 12000 entries'),
        },
      },
    ])
  })
})

it('the largest possible limiter works, including overrides of all its limits', async () => {
  await using service = await served(memoryStore())
  const names = Array.from({ length: 16 }, (_, i) => `d${i}`)
  const limits = Array.from({ length: 64 }, (_, i) =>
    slidingWindow({ limit: 9, window: 60_000 + i, name: `l${i}`.padEnd(64, '-') }),
  )
  const dimensions = Object.fromEntries(names.map((name) => [name, limits]))
  const ban = Object.fromEntries(names.map((name) => [name, { after: 3, within: '1m', for: '1m' }]))
  const limiter = createLimiter({
    ...{ name: 'mine', dimensions, ban, overrides: true },
    ...{ store: service.connect(), timeoutMs: 30_000, logger: false },
  } as never) as ReturnType<typeof createLimiter<string>>
  const key = Object.fromEntries(names.map((name) => [name, 'ann']))
  expect((await limiter.consume(key)).allowed).toBe(true)
  const numbers = { limit: 2 ** 16, window: '366d' } as const
  const change = Object.fromEntries(limits.map(({ name }) => [name, numbers]))
  for (const name of names) await limiter.overrides.set({ [name]: 'ann' }, change)
  expect((await limiter.peek(key)).remaining).toBe(2 ** 16 - 1)
  expect((await limiter.overrides.get({ d7: 'ann' }))?.limits).toHaveProperty(limits[63]!.name)
  let listed = 0
  for await (const { limits } of limiter.overrides.list()) listed += Object.keys(limits!).length
  expect(listed).toBe(16 * 64)
  limiter.close()
})

describe.each(Object.entries(STORES))('overrides on %s', (_, open) => {
  it('outcomes contain overrides, and lists have pages', async () => {
    const serve = serveStore(open(), { timeoutMs: 30_000 })
    const sets = [{ ...set, limiter: 'mine.told', isOverridable: true }]
    const rule = '{"":{"limit":5}}'
    const ask = async (...ops: object[]) =>
      JSON.parse(JSON.stringify((await serve(bodyOf(ops, sets), authorize)).outcomes))
    const page = { type: 'overrides', parts: [[0, '']], bucket: 0, after: '' }
    const [written, admitted, { buckets }] = await ask(
      override({ rule, ruleMs: FOREVER, given: ['Ann'] }),
      consume,
      page,
    )
    expect(written).toEqual({ existed: false })
    expect(admitted).toMatchObject({ admitted: 1, overrides: [{ rule, ruleMs: FOREVER, blockedMs: 0 }] })
    const found = []
    for (let bucket = 0; bucket < buckets; bucket++)
      found.push(...(await ask({ ...page, bucket }))[0].overrides)
    expect(found).toEqual([{ key: 'ann', given: 'Ann', rule, ruleMs: FOREVER, blockedMs: 0 }])
    const [, blocked] = await ask(override({ blockMs: FOREVER }), consume)
    expect(blocked).toMatchObject({ admitted: 0, ban: { ms: null, parts: [0] } })
    // There are up to 1,024 buckets. A higher number reads one of the existing buckets.
    expect(await ask({ ...page, bucket: 1023 })).toEqual([expect.objectContaining({ buckets })])
    expect(await ask({ ...page, bucket: 1024 })).toMatchObject([{ error: { code: 'invalid_option' } }])
  })
})

it('requests of many limiters are sent in bodies that the service accepts', async () => {
  await using service = await served(memoryStore())
  const store = service.connect()
  const limiters = Array.from({ length: 300 }, (_, i) =>
    createLimiter({
      ...{ name: `mine${i}`, store, timeoutMs: 30_000, logger: false },
      limits: Array.from({ length: 20 }, (_, l) =>
        fixedWindow({ limit: 9, window: 60_000 + l, name: `${l}` }),
      ),
    }),
  )
  const decisions = await Promise.all(
    limiters.flatMap((each) => ['ann', 'bob'].map((key) => each.consume(key))),
  )
  expect(decisions.filter(({ source, allowed }) => source === 'store' && allowed)).toHaveLength(600)
  expect(Math.max(...service.bodies.map((body) => body.length))).toBeLessThan(2 ** 19)
  for (const each of limiters) each.close()
})

it.each([1, 2, 3])(
  'a silent store times out, and its late charges are refunded: %i together',
  async (count) => {
    const store = held(memoryStore())
    const serve = serveStore(store, { timeoutMs: 50 })
    store.isHolding = true
    const { outcomes } = await serve(bodyOf([{ ...consume, count }]), authorize)
    expect(outcomes).toEqual([{ error: { reason: 'timeout' } }])
    store.isHolding = false
    const used = async () => {
      const answer = await serve(
        bodyOf([{ type: 'peek', parts: [[0, 'ann']], cost: 1, count: 1 }]),
        authorize,
      )
      return (answer.outcomes[0] as { limits: number[] }).limits[0]
    }
    expect(await used()).toBe(Math.min(count, 2))
    store.release()
    await until('the refund', async () => (await used()) === 0)
  },
)

it('repeated limits are created once, and only recent ones are remembered', async () => {
  const limits = new Set<unknown>()
  const store: Store = {
    failurePolicy,
    apply(ops, call) {
      for (const { parts } of ops) limits.add(parts[0]!.set)
      call.reject(new Error('this store decides nothing'))
    },
    close() {},
  }
  const serve = serveStore(store)
  const told = (limit: number) => [{ ...set, limits: [{ ...set.limits[0], limit, name: 'x'.repeat(64) }] }]
  for (let i = 0; i < 3; i++) await serve(bodyOf([consume], told(1)), authorize)
  expect(limits.size).toBe(1)
  // Thirty thousand sets with names of 64 characters exceed the cache.
  for (let first = 2; first < 40_000; first += 1000) {
    const sets = Array.from({ length: 1000 }, (_, i) => told(first + i)[0])
    await serve(bodyOf([{ type: 'list', parts: [] }], sets), authorize)
  }
  await serve(bodyOf([consume], told(1)), authorize)
  expect(limits.size).toBe(2)
})

it.each([0, 1.5, '40', 2 ** 31])('a timeoutMs of %s is rejected', (timeoutMs) => {
  expect(() => serveStore(memoryStore(), { timeoutMs } as object)).toThrow(/timeoutMs is/)
})
