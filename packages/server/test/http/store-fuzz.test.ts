// tier: integration
import fc from 'fast-check'
import { createLimiter, fixedWindow, type LimiterOptions, slidingWindow } from 'slidegate'
import { serviceStore } from 'slidegate/client'
import { describe, expect, it } from 'vitest'
import { WIRE_VERSION } from '../../../slidegate/src/stores/remote/bodies.ts'
import { damagedBody, sentBodies } from '../../../slidegate/test/remote/bodies.ts'
import type { Config } from '../../src/config/schema.ts'
import { withRedis } from '../support/redis.ts'
import { type TestService, testService } from '../support/service.ts'

// One token sends arbitrary bodies to /v1/store. Another token must get the same responses as without them.

const ATTACKER = 'the-token-of-the-attacker'
const VICTIM = 'the-token-of-the-victim'
const READER = 'the-token-of-the-reader'

const config: Config = {
  limiters: {
    api: {
      limits: [{ kind: 'fixedWindow', limit: 7, window: '366d', align: 'first-hit' }],
      timeoutMs: 30_000,
    },
  },
  auth: {
    tokens: [
      { name: 'attacker', role: 'check', token: ATTACKER, ownLimiters: ['mine', 'mine.*'], limiters: [] },
      { name: 'victim', role: 'check', token: VICTIM, ownLimiters: ['victim', 'victim.*'] },
    ],
  },
}

const NAMES = [
  ...['mine', 'mine.1', 'mine/user', 'mine.kept', 'victim', 'victim/user', 'victim.users', 'api', 'MINE'],
  ...[
    'slidegate.readiness',
    'envoy.x',
    'mine.',
    'mïne',
    'mine\u0000',
    '__proto__',
    '*',
    'mine:victim',
    '{mine}',
  ],
]
const KEYS = [
  'ann',
  'bob',
  '~overrides',
  '{ann}',
  '*',
  'ann:w1',
  '__proto__',
  'é',
  '\u{1f600}',
  '\u0000',
  'a b',
  '',
]

const limit = fc.oneof(
  fc.record({
    kind: fc.constantFrom('slidingWindow', 'fixedWindow', 'slidingCounter'),
    limit: fc.constantFrom(1, 2, 1000, 2 ** 40, 0, -1, 1.5),
    window: fc.constantFrom(10, 60_000, '366d', 31_622_400_000, 9),
    name: fc.string({ minLength: 1, maxLength: 4 }),
  }),
  fc.constantFrom<unknown>(
    { kind: 'slidingWindow', limit: 10, window: 60_000, log: 'zset' },
    { kind: 'slidingWindow', limit: 10, window: 60_000, log: 'stream' },
    { kind: 'concurrency', limit: 2, ttl: 60_000 },
    { kind: 'distinct', limit: 2, window: 60_000 },
    { kind: 'tokenBucket', capacity: 5, refill: 1, interval: '1h' },
    { kind: 'calendarWindow', limit: 3, unit: 'hour', timeZone: 'Europe/Berlin' },
    null,
  ),
)
const manyLimits = fc.integer({ min: 30, max: 64 }).map((count) =>
  Array.from({ length: count }, (_, i) => ({
    kind: 'fixedWindow',
    limit: 1,
    window: 60_000 + i,
    name: `${i}`,
  })),
)
const limits = fc.oneof(
  { weight: 4, arbitrary: fc.array(limit, { maxLength: 3 }) },
  { weight: 2, arbitrary: fc.constantFrom([], [{ kind: 'slidingWindow', limit: 2, window: 1000 }]) },
  manyLimits,
)
const addition = fc.oneof(
  fc.constantFrom<unknown>({ ban: true }, { reservations: 60_000 }, { other: 1 }),
  fc.constant({ ban: { after: 1, within: 60_000, for: '366d' } }),
)
const set = fc.record(
  {
    limiter: fc.oneof(
      { weight: 3, arbitrary: fc.constant('mine') },
      fc.constantFrom(...NAMES),
      fc.integer({ min: 0, max: 1e9 }).map((n) => `mine.${n}`),
    ),
    limits,
    additions: fc.array(addition, { maxLength: 3 }),
    isOverridable: fc.constantFrom<unknown>(true, true, true, false, 1),
  },
  { requiredKeys: ['limiter', 'limits'] },
)
const RULES = [
  ...[
    undefined,
    '',
    'exempt',
    '{"":{"limit":1}}',
    '{"0":{"windowMs":10}}',
    '{"__proto__":{"limit":1099511627776}}',
  ],
  ...['{"10-per-1m":{"limit":9,"refill":1}}', '{}', '{ }', '{"a":1}', '[]', 'null', '{"a":{"limit":1e9}}'],
]
const op = fc
  .record({
    type: fc.constantFrom(
      ...['consume', 'peek', 'explain', 'charge', 'refund', 'extend', 'release', 'list', 'reset', 'settle'],
      ...['override', 'override', 'override', 'overrides', 'block'],
    ),
    parts: fc.oneof(
      { weight: 3, arbitrary: fc.tuple(fc.tuple(fc.nat(1), fc.constantFrom('ann', 'bob'))) },
      fc.array(fc.tuple(fc.nat(3), fc.oneof(fc.constantFrom(...KEYS), fc.string({ maxLength: 5 }))), {
        maxLength: 3,
      }),
    ),
    units: fc.constantFrom(1, 5, 10_000, 2 ** 53 - 1, 0, -1),
    charged: fc.array(fc.boolean(), { maxLength: 3 }),
    isNamed: fc.boolean(),
    ms: fc.constantFrom(0, 1, 31_622_400_000),
    rule: fc.constantFrom(...RULES),
  })
  .map(({ type, units, charged, isNamed, ms, rule, ...drawn }) => {
    const parts: readonly unknown[] = drawn.parts
    const names = isNamed ? { requestId: 'r' } : {}
    const settling = { reservation: 'r.1', units, actual: 0, charged, instants: parts.map(() => 1) }
    const fields: Record<string, object> = {
      consume: { cost: units, count: 1, leaseMs: ms, ...names },
      peek: { cost: units, count: 1, ...names },
      explain: { cost: units, count: 1, charges: 5 },
      charge: { units, ...names },
      refund: { units, atMs: 1, charged, ...names },
      extend: { units, requestId: 'r' },
      release: { units, requestId: 'r' },
      settle: settling,
      block: { ms },
      override: {
        ...(rule !== undefined && { rule, ruleMs: ms }),
        ...((isNamed || rule === undefined) && { blockMs: ms }),
        ...(units === 5 && { given: parts.map(() => 'x'.repeat(ms % 60_000)) }),
      },
      overrides: { bucket: units, after: isNamed ? 'ann' : '' },
    }
    return { type, parts, ...fields[type] }
  })
/** Bodies of generated ops after two valid ones. The valid ones put the keys to use. */
const crafted = fc
  .tuple(fc.array(set, { minLength: 1, maxLength: 4 }), fc.array(op, { minLength: 1, maxLength: 8 }))
  .map(([sets, ops]) => ({
    version: WIRE_VERSION,
    sets: [...sets, { limiter: 'mine', limits: [{ kind: 'slidingWindow', limit: 9, window: 100 }] }],
    ops: [
      ...['ann', 'bob'].map((key) => ({
        ...{ type: 'consume', parts: [[sets.length, key]], cost: 1, count: 1, leaseMs: 0 },
      })),
      ...ops,
    ],
  }))

const bodies = await sentBodies()
const hostile = fc.oneof(
  { weight: 4, arbitrary: crafted },
  { weight: 1, arbitrary: damagedBody(bodies) },
  { weight: 1, arbitrary: fc.constantFrom(...bodies) },
)

const ACTS = [
  ...[
    'consume',
    'consume',
    'peek',
    'charge',
    'refund',
    'reset',
    'block',
    'unblock',
    'override',
    'list',
    'acquire',
  ],
  ...['release', 'settle', 'configured'],
] as const

/** Creates the victim's limiters. Their results don't depend on the time. */
function victimOf(service: TestService) {
  const common = { store: serviceStore(service.httpUrl, { token: VICTIM }), timeoutMs: 30_000, logger: false }
  const options: LimiterOptions = {
    ...{ ...common, name: 'victim', overrides: true, ban: { after: 4, within: '366d', for: '366d' } },
    limits: [
      fixedWindow({ limit: 9, window: '366d', align: 'first-hit' }),
      slidingWindow({ limit: 12, window: '366d', name: 'sliding' }),
    ],
  } as LimiterOptions
  const limiter = createLimiter(options)
  const kept = createLimiter({
    ...{ ...common, name: 'victim.kept' },
    dimensions: { user: [slidingWindow({ limit: 5, window: '366d', log: 'zset' })] },
  } as never) as ReturnType<typeof createLimiter<'user'>>
  const seen = ({
    allowed,
    remaining,
    deniedBy,
    blockedMs,
    limits,
  }: Awaited<ReturnType<typeof limiter.consume>>) => ({
    ...{ allowed, remaining, deniedBy, isBlocked: (blockedMs ?? 0) > 0 },
    limits: limits.map(({ name, remaining }) => [name, remaining]),
  })
  let last: { key: string; decision: Awaited<ReturnType<typeof limiter.consume>> } | undefined
  let requests = 0
  return {
    async act(what: (typeof ACTS)[number], key: string): Promise<unknown> {
      switch (what) {
        case 'consume': {
          const decision = await limiter.consume(key)
          last = decision.allowed ? { key, decision } : undefined
          return seen(decision)
        }
        case 'peek':
          return seen(await limiter.peek(key))
        case 'charge':
          return limiter.charge(key, 1)
        case 'refund':
          return last && limiter.refund(last.key, last.decision)
        case 'reset':
          return limiter.reset(key)
        case 'block':
          return limiter.block(key, '366d')
        case 'unblock':
          return limiter.unblock(key)
        case 'override':
          await limiter.overrides.set(key, { sliding: { limit: 20 } })
          return (await limiter.overrides.get(key))?.limits
        case 'list':
          return (await kept.list({ user: key })).map(({ entries }) => entries.map(({ name }) => name))
        case 'acquire':
          return seen(await kept.consume({ user: key }, { requestId: `r${requests++}` }))
        case 'release':
          return kept.reset({ user: key })
        case 'settle': {
          const { token, decision } = (await limiter.reserve(key, 2)) as never as {
            token: string
            decision: never
          }
          return [token === undefined, decision !== undefined]
        }
        case 'configured': {
          const { status, body } = await service.post(
            '/v1/consume',
            { limiter: 'api', key },
            { authorization: `Bearer ${VICTIM}` },
          )
          return [status, body.allowed, body.remaining]
        }
      }
    },
    close() {
      limiter.close()
      kept.close()
    },
  }
}

describe('limiters that tokens declare in memory', () => {
  it('use separate stores: one token fills its own, and others still have room', async () => {
    const tokens = [...config.auth!.tokens!, { name: 'reader', role: 'read' as const, token: READER }]
    const memory = { maxKeys: 50, onFull: 'deny' as const }
    await using service = await testService({ ...config, auth: { tokens }, store: { memory } })
    const limits = [{ kind: 'fixedWindow', limit: 1, window: '366d', align: 'first-hit' }]
    const consume = async (token: string, limiter: string, keys: readonly string[]) => {
      const ops = keys.map((key) => ({ type: 'consume', parts: [[0, key]], cost: 1, count: 1, leaseMs: 0 }))
      const { body } = await service.post(
        '/v1/store',
        { version: WIRE_VERSION, sets: [{ limiter, limits }], ops },
        { authorization: `Bearer ${token}` },
      )
      return body.outcomes.map(({ admitted }: { admitted: number }) => admitted)
    }
    const many = Array.from({ length: 60 }, (_, i) => `key${i}`)
    expect(await consume(ATTACKER, 'mine.1', many)).toEqual([...Array(50).fill(1), ...Array(10).fill(0)])
    // Limiters that match the same pattern share a store.
    expect(await consume(ATTACKER, 'mine.2', ['new'])).toEqual([0])
    expect(await consume(VICTIM, 'victim', ['new'])).toEqual([1])
    expect(await consume(VICTIM, 'victim.users', ['new'])).toEqual([1])
    const { body } = await service.post(
      '/v1/consume',
      { limiter: 'api', key: 'new' },
      { authorization: `Bearer ${VICTIM}` },
    )
    expect(body).toMatchObject({ allowed: true, remaining: 6 })
    const metrics = await service.get('/metrics', { authorization: `Bearer ${READER}` })
    // The store has 50 keys of the attacker, one per pattern of the victim, and one of the configuration.
    expect(metrics.body).toMatch(/^slidegate_memory_store_keys(\{.*\})? 53$/m)
  })

  it('store at most 10,000 overrides per pattern', async () => {
    await using service = await testService({ ...config, store: { memory: {}, timeoutMs: 30_000 } })
    const [theirs, ours] = [
      ['mine', ATTACKER],
      ['victim', VICTIM],
    ].map(([name, token]) =>
      createLimiter({
        ...{ name: name!, limits: [slidingWindow({ limit: 3, window: '366d' })], overrides: true },
        ...{ store: serviceStore(service.httpUrl, { token: token! }), timeoutMs: 30_000, logger: false },
      }),
    )
    const keys = Array.from({ length: 10_000 }, (_, i) => `key${i}`)
    await Promise.all(keys.map((key) => theirs!.overrides.set(key, { limit: 9 })))
    const full = { name: 'StoreUnavailableError', reason: 'full' }
    await expect(theirs!.overrides.set('new', 'exempt')).rejects.toMatchObject(full)
    await expect(theirs!.block('new', '1h')).rejects.toMatchObject(full)
    await theirs!.overrides.set('key0', 'block')
    expect((await theirs!.consume('new')).remaining).toBe(2)
    await ours!.overrides.set('new', { limit: 9 })
    expect((await ours!.consume('new')).remaining).toBe(8)
    let listed = 0
    for await (const { key } of theirs!.overrides.list()) listed += key === 'new' ? 10_000 : 1
    expect(listed).toBe(10_000)
    for (const limiter of [theirs!, ours!]) limiter.close()
  })

  it('share their state between tokens that may both declare them', async () => {
    const auth = {
      tokens: [
        { name: 'all', role: 'check' as const, token: ATTACKER, ownLimiters: ['*'] },
        { name: 'team', role: 'check' as const, token: VICTIM, ownLimiters: ['team.*'] },
      ],
    }
    await using service = await testService({ limiters: config.limiters, auth, store: { memory: {} } })
    const [theirs, ours] = [ATTACKER, VICTIM].map((token) =>
      createLimiter({
        name: 'team.shared',
        limits: [slidingWindow({ limit: 3, window: '366d' })],
        store: serviceStore(service.httpUrl, { token }),
        timeoutMs: 30_000,
      }),
    )
    expect((await theirs!.consume('ann')).remaining).toBe(2)
    expect((await ours!.consume('ann')).remaining).toBe(1)
    for (const limiter of [theirs!, ours!]) limiter.close()
  })
})

describe('fuzzed requests of one token to /v1/store', () => {
  const check = async (
    open: () => Promise<{ store: Config['store'] } & AsyncDisposable>,
    numRuns: number,
  ) => {
    await using one = await open()
    await using other = await open()
    await using attacked = await testService({ ...config, store: one.store })
    await using untouched = await testService({ ...config, store: other.store })
    const [ours, theirs] = [victimOf(attacked), victimOf(untouched)]
    const statuses = new Map<number, number>()
    const turn = fc.record({
      body: hostile,
      act: fc.constantFrom(...ACTS),
      key: fc.constantFrom('ann', 'bob', '~overrides', 'k0', 'x'),
    })
    const property = fc.asyncProperty(turn, async ({ body, act, key }) => {
      const { status } = await attacked.post('/v1/store', body ?? null, {
        authorization: `Bearer ${ATTACKER}`,
      })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      expect([200, 400, 403, 413]).toContain(status)
      const [got, right] = await Promise.all([ours.act(act, key), theirs.act(act, key)])
      expect(got).toEqual(right)
    })
    // Doesn't shrink failures, because each run depends on the state after the previous ones.
    await fc.assert(property, { numRuns, endOnFailure: true, interruptAfterTimeLimit: 90_000 })
    for (const status of [200, 400]) expect(statuses.get(status) ?? 0).toBeGreaterThan(numRuns / 20)
    expect((await attacked.get('/readyz')).status).toBe(200)
    for (const each of [ours, theirs]) each.close()
    return attacked.service.store
  }
  const nothing = async () => {}

  it(
    'leave the responses to another token unchanged, on memory',
    () =>
      check(async () => ({ store: { memory: {}, timeoutMs: 30_000 }, [Symbol.asyncDispose]: nothing }), 400),
    180_000,
  )

  it(
    'leave the responses to another token unchanged, on Redis',
    () =>
      check(async () => {
        const redis = await withRedis()
        return {
          store: { redis: { url: redis.url }, timeoutMs: 30_000 },
          [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
        }
      }, 200),
    180_000,
  )
})
