// tier: integration
import fc from 'fast-check'
import { expect } from 'vitest'
import { show } from '../../src/errors.ts'
import { type Binding, createGuard } from '../../src/http/index.ts'
import {
  createLimiter,
  fixedWindow,
  type Limit,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type Store,
  slidingCount,
  slidingWindow,
  tokenBucket,
  withDenyCache,
  withLeases,
} from '../../src/index.ts'
import { declarationOf, limitOf } from '../../src/limits/declaration.ts'
import { FOREVER, isRule } from '../../src/limits/override.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { bucketOf, tagsOf } from '../../src/stores/redis/keyspace.ts'
import { addressOf } from '../../src/stores/redis/url.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { declarations, declare, jsonDeclarations } from './declarations.ts'
import { fuzz } from './harness.ts'
import { Given, Hostility, hostile, mutated, nearly, numbers, plain } from './hostile.ts'
import { playLimit } from './play-limit.ts'
import { answered, expectSense, expectUnpolluted, MAX_MESSAGE, made } from './sense.ts'

const { redis } = await useRedis()

fuzz('shown values', hostile, (given) => {
  const shown = show(given.make())
  if (typeof shown !== 'string' || shown.length > MAX_MESSAGE / 2 + 100)
    throw new Error(`show() returned ${shown.length} characters`)
})

fuzz('declared limits', declarations, async (declared) => {
  const limit = made(() => declare(declared))
  if (limit === undefined) return
  const clock = new ManualClock()
  await playLimit(limit, memoryStore({ clock: clock.now }), clock)
  expectUnpolluted()
})

fuzz('limits on Redis', declarations, async (declared) => {
  const limit = made(() => declare(declared))
  if (limit === undefined) return
  await redis.flushall()
  const clocks = [new ManualClock(), new ManualClock()] as const
  const inRedis = await playLimit(limit, redisStore(redis, { clock: clocks[0].now }), clocks[0])
  const inMemory = await playLimit(limit, memoryStore({ clock: clocks[1].now }), clocks[1])
  expect(inRedis).toEqual(inMemory)
})

fuzz('limits as JSON', fc.record({ json: jsonDeclarations }), ({ json }) => {
  const limit = made(() => limitOf(json.make()))
  if (limit === undefined) return
  const again = limitOf(JSON.parse(JSON.stringify(declarationOf(limit))))
  expect(numbersOf(again)).toEqual(numbersOf(limit))
})

/** Override rules as they are stored. */
const RULES = [
  'exempt',
  '{"minute":{"limit":300}}',
  '{"minute":{"limit":300,"windowMs":60000},"bucket":{"capacity":7,"refill":2}}',
  '{"":{"windowMs":1099511627776}}',
]

fuzz('override rules', mutated(fc.constantFrom(...RULES)), async (rule) => {
  if (rule.includes('\n')) return
  const limiter = createLimiter({
    limits: [
      slidingWindow({ limit: 5, window: '1m', name: 'minute' }),
      tokenBucket({ capacity: 5, refill: 1, interval: '1m', name: 'bucket' }),
    ],
    ...{ store: redisStore(redis), overrides: true, timeoutMs: 60_000, logger: false },
  })
  await redis.set(`slidegate:{${tagsOf(64)[bucketOf('k', 64)]}}:default:k:o`, `1 0 ${FOREVER} ${rule}\n`)
  const [decision, override] = await Promise.allSettled([limiter.peek('k'), limiter.overrides.get('k')])
  limiter.close()
  expect(decision.status).toBe(override.status)
  // Rules that a limiter writes can be read. Anything else that can be read must make sense in Redis and here.
  if (isRule(rule)) expect(decision.status).toBe('fulfilled')
  if (decision.status === 'fulfilled') expectSense(decision.value)
  else expect(decision.reason).toMatchObject({ name: 'StoreUnavailableError', reason: 'invalid_state' })
})

function numbersOf({ kind, rule: _, ...numbers }: Limit): unknown {
  return { ...numbers, tag: kind.tag }
}

const good = slidingWindow({ limit: 3, window: '1m' })
const limits = fc.constantFrom([good], [good, fixedWindow({ limit: 2, window: '1h' })], [])
const durations = fc.constantFrom('1m', '10ms', 60_000, '1h')
const bans = fc.oneof(
  fc.record(
    {
      after: fc.integer({ min: 1, max: 3 }),
      within: durations,
      for: fc.oneof(durations, fc.array(durations)),
      forgetAfter: durations,
    },
    { requiredKeys: ['after', 'within', 'for'] },
  ),
)
const common = {
  name: fc.constantFrom('api', '-', '__proto__'),
  timeoutMs: fc.constantFrom(1, 50, 2 ** 31 - 1),
  onStoreError: fc.constantFrom('throw', 'deny', 'allow', 'local'),
  instances: fc.constantFrom(1, 2, 2 ** 20),
  breaker: fc.record(
    {
      failureRate: fc.constantFrom(0.5, 1),
      minRequests: fc.constantFrom(1, 5),
      maxBackoffMs: fc.constantFrom(10, 500),
    },
    { requiredKeys: [] },
  ),
  logger: fc.constant(false),
  overrides: fc.constantFrom(true, false),
  maxWaiting: fc.constantFrom(1, 2 ** 20),
  reservationTtl: durations,
}
const COMMON = Object.keys(common)

const ofLimiters = fc.oneof(
  nearly(fc.record({ limits, ban: bans, ...common }, { requiredKeys: ['limits', 'logger'] }), [
    'limits',
    'ban',
    'store',
    'dimensions',
    ...COMMON,
  ]),
  nearly(
    fc.record(
      {
        dimensions: fc.dictionary(fc.constantFrom('user', 'ip', '__proto__', 'a.b', ''), limits, {
          maxKeys: 3,
        }),
        ban: fc.dictionary(fc.constantFrom('user', 'ip', 'other'), bans, { maxKeys: 1 }),
        ...common,
      },
      { requiredKeys: ['dimensions', 'logger'] },
    ),
    ['dimensions', 'limits', 'ban', 'store', ...COMMON],
  ),
)

/** Uses a new limiter and closes it. */
async function expectToWork(limiter: Limiter): Promise<void> {
  const key = { user: 'u', ip: 'i' } as unknown as string
  for (const each of ['k', key]) {
    for (let i = 0; i < 4; i++) {
      const decision = await answered(() => limiter.consume(each))
      if (decision !== undefined) expectSense(decision)
    }
    await answered(() => limiter.block(each, '1m'))
    const blocked = await answered(() => limiter.peek(each))
    if (blocked !== undefined) expectSense(blocked)
    await answered(() => limiter.reset(each))
  }
  limiter.close()
  expectUnpolluted()
}

fuzz('limiter options', ofLimiters, async (given) => {
  const limiter = made(() => createLimiter(given.make() as LimiterOptions))
  if (limiter !== undefined) await expectToWork(limiter)
})

const clock = fc.oneof(
  fc.constant(() => 1_700_000_000_000).map(plain),
  numbers.map(
    (time) =>
      new Given(
        () => () => time,
        () => `a clock that returns ${time}`,
      ),
  ),
  hostile.map(
    (time) =>
      new Given(
        () => () => time.make(),
        () => `a clock that returns ${fc.stringify(time)}`,
      ),
  ),
)

/** Options for each function that creates a store. */
const ofStores = fc.oneof(
  fc.record({
    by: fc.constant('memoryStore' as const),
    options: nearly(
      fc.record(
        {
          maxKeys: fc.constantFrom(1, 2, 1000, 2 ** 53 - 1),
          onFull: fc.constantFrom('throw', 'deny', 'allow'),
        },
        { requiredKeys: [] },
      ),
      ['maxKeys', 'onFull', 'clock'],
    ),
    clock,
  }),
  fc.record({
    by: fc.constant('redisStore' as const),
    options: nearly(
      fc.record(
        { prefix: mutated(fc.constantFrom('slidegate', 'a:b')), buckets: fc.constantFrom(1, 64, 1024) },
        { requiredKeys: [] },
      ),
      ['prefix', 'buckets', 'clock'],
    ),
    clock,
  }),
  fc.record({
    by: fc.constantFrom('withDenyCache' as const, 'withLeases' as const),
    options: nearly(
      fc.record(
        {
          maxStaleMs: fc.constantFrom(1, 1000),
          leaseMs: fc.constantFrom(2, 100),
          maxKeys: fc.constantFrom(1, 1000),
        },
        { requiredKeys: [] },
      ),
      ['maxStaleMs', 'leaseMs', 'maxKeys', 'clock'],
    ),
    clock,
  }),
)

const BY: Readonly<Record<string, (options: never) => Store>> = {
  memoryStore,
  redisStore: (options) => redisStore(redis, options),
  withDenyCache: (options) => withDenyCache(memoryStore(), options),
  withLeases: (options) => withLeases(memoryStore(), options),
}

fuzz(
  'store options',
  fc.record({ of: ofStores, hasClock: fc.boolean(), wrapped: hostile }),
  async ({ of: { by, options, clock }, hasClock, wrapped }) => {
    const store = made(() => {
      const given = options.make()
      const isObject = typeof given === 'object' && given !== null
      return BY[by]!((isObject && hasClock ? { ...given, clock: clock.make() } : given) as never)
    })
    if (store !== undefined) {
      await expectToWork(createLimiter({ limits: [good], store, timeoutMs: 60_000, logger: false }))
      if (by !== 'redisStore') await store.close()
    }
    made(() => redisStore(wrapped.make() as never, {}))
    made(() => withLeases(wrapped.make() as never))
    made(() => withDenyCache(wrapped.make() as never))
  },
)

fuzz(
  'count options',
  fc.record({
    options: nearly(
      fc.record(
        { period: durations, precision: durations, ...common },
        { requiredKeys: ['period', 'logger'] },
      ),
      ['period', 'precision', 'store', ...COMMON],
    ),
    key: hostile,
    units: hostile,
  }),
  async ({ options, key, units }) => {
    const count = made(() => slidingCount(options.make() as never))
    if (count === undefined) return
    const added = await answered(() => count.add('k', 5))
    if (added !== undefined) expect(added).toBe(5)
    const counted = await answered(() => count.add(key.make() as string, units.make() as number))
    if (counted !== undefined && !Number.isSafeInteger(counted)) throw new Error(`the count is ${counted}`)
    await answered(() => count.get(key.make() as string))
    count.close()
    expectUnpolluted()
  },
)

const strikes = () => {
  throw new Hostility('thrown by a function')
}

/** A user's functions, which return anything, now or later. */
const functions = hostile.map(
  (result) =>
    new Given(
      () => (request: { readonly later: boolean }) =>
        request.later ? Promise.resolve(result.make()) : result.make(),
      () => `a function that returns ${fc.stringify(result)}`,
    ),
)

const ofGuards = nearly(
  fc.record(
    {
      limits,
      limiter: fc.constantFrom(createLimiter({ limits: [good] }), {}, { consume: strikes }),
      key: fc.constantFrom(
        () => 'k',
        async () => 'k',
        strikes,
      ),
      cost: fc.constantFrom(
        () => 1,
        async () => 2,
        strikes,
      ),
      skip: fc.constantFrom(
        () => false,
        async () => true,
        strikes,
      ),
      headers: fc.constantFrom('draft-11', 'draft-7', 'draft-6', 'legacy', false, ['draft-11', 'legacy']),
      address: fc.constantFrom({ trust: 1 }, { trust: ['loopback'], header: 'forwarded' }),
      allow: fc.constantFrom(['10.0.0.0/8'], ['::1'], []),
      deny: fc.constantFrom(['192.0.2.0/24'], []),
      denied: fc.constantFrom('reject', 'drop', { delay: 1 }, { queue: 1, maxWait: 1 }, strikes),
      disclose: fc.boolean(),
      refundIf: fc.constantFrom('successful', 'failed', strikes),
      settle: fc.constantFrom(() => 0, strikes),
      onDenied: fc.constant(() => {}),
      name: common.name,
    },
    { requiredKeys: [] },
  ),
  [
    ...['limits', 'limiter', 'key', 'cost', 'skip', 'headers', 'onDenied', 'name', 'store', '__proto__'],
    ...['address', 'allow', 'deny', 'denied', 'disclose', 'onAllowed', 'refundIf', 'settle', 'onSettleError'],
  ],
)

const ANY: Binding<[request: { readonly later: boolean }]> = {
  address: () => '192.0.2.1',
  peer: () => '192.0.2.1',
  header: () => 'text/html, */*;q=0.1',
  signal: () => new AbortController().signal,
  canDrop: true,
}

fuzz(
  'guard options',
  fc.record({
    options: ofGuards,
    more: fc.dictionary(fc.constantFrom('key', 'cost', 'skip'), functions, { maxKeys: 2 }),
    later: fc.boolean(),
  }),
  async ({ options, more, later }) => {
    const own = Object.fromEntries(Object.entries(more).map(([name, each]) => [name, each.make()]))
    const guard = made(() => {
      const given = options.make()
      const isObject = typeof given === 'object' && given !== null
      return createGuard((isObject ? { ...given, ...own } : given) as never, ANY)
    })
    if (guard === undefined) return
    for (let i = 0; i < 2; i++) {
      const verdict = await answered(() => guard({ later }))
      if (verdict === undefined) continue
      const denial = verdict.denial?.action === 'drop' ? undefined : verdict.denial
      const sets = verdict.headers.flatMap(({ headers }) => headers)
      for (const { name, value } of [...sets, ...(denial?.headers ?? [])]) {
        expect(name).toMatch(/^[A-Za-z-]+$/)
        expect(value).toMatch(/^[ -~]+$/)
      }
    }
    expectUnpolluted()
  },
)

fuzz(
  'Redis URLs',
  mutated(
    fc.constantFrom(
      'redis://127.0.0.1:6379',
      'rediss://user:pa%40ss@[::1]:6380/15',
      'valkey://host/0',
      'redis://h?x#y',
    ),
  ),
  (url) => {
    const address = made(() => addressOf(url))
    if (address === undefined) return
    const { host, port, database } = address
    if (host === '' || !(port >= 0 && port <= 65_535) || !Number.isSafeInteger(database))
      throw new Error(fc.stringify(address))
  },
)
