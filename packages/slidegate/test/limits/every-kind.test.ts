// tier: integration
import { readdirSync, readFileSync } from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import * as calendar from '../../src/calendar.ts'
import * as api from '../../src/index.ts'
import { createLimiter, type Decision, type Limiter, memoryStore } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { changeTo, SAMPLES, type Sample } from '../support/kinds.ts'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'

// Tests the guarantees of every kind, whatever it counts. Add a new kind to SAMPLES to run these tests for it.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const LIMIT = 4

const stores = storesOn(redis)

/** A limiter with one limit of the kind. Each request has a new value if the kind needs one. */
class Scene {
  readonly clock = new ManualClock()
  readonly limiter: Limiter
  readonly #sample: Sample
  #requests = 0

  constructor(sample: Sample, storeOf: (clock: ManualClock) => api.Store, shadow = false) {
    this.#sample = sample
    this.limiter = createLimiter({
      limits: [sample.make({ limit: LIMIT, shadow })],
      store: storeOf(this.clock),
      timeoutMs: 30_000,
      // Failures must not affect the next request.
      breaker: { minRequests: 2 ** 20 },
      logger: false,
    })
  }

  get options(): api.ConsumeOptions {
    return this.#sample.options?.(this.#requests++) ?? {}
  }

  ask(cost = 1): Promise<Decision> {
    return this.limiter.consume('k', { cost, ...this.options })
  }

  peek(cost = 1): Promise<Decision> {
    return this.limiter.peek('k', { cost, ...this.options })
  }

  async fill(): Promise<Decision> {
    for (let i = 1; i < LIMIT; i++) expect((await this.ask()).allowed).toBe(true)
    const last = await this.ask()
    expect([last.allowed, last.remaining]).toEqual([true, 0])
    return last
  }
}

const samples = Object.entries(SAMPLES)
const everywhere = Object.entries(stores).flatMap(([where, storeOf]) =>
  samples.map(([name, sample]) => ({
    name,
    where,
    sample,
    scene: () => new Scene(sample, storeOf),
    storeOf,
  })),
)

describe.each(everywhere)('$name, $where', ({ sample, scene, storeOf }) => {
  it('admits its limit, and denials charge nothing', async () => {
    const one = scene()
    await one.fill()
    const first = await one.ask()
    expect([first.allowed, first.remaining, first.deniedBy]).toEqual([
      false,
      0,
      [one.limiter.limits[0]!.name],
    ])
    for (let i = 0; i < 5; i++) expect((await one.ask()).retryAfterMs).toBe(first.retryAfterMs)
    expect((await one.peek()).retryAfterMs).toBe(first.retryAfterMs)
  })

  it('reports when the same request is admitted, to the millisecond', async () => {
    const one = scene()
    for (let i = 0; i < LIMIT; i++) {
      one.clock.advance(700)
      await one.ask()
    }
    for (let cycle = 0; cycle < 6; cycle++) {
      const { allowed, retryAfterMs } = await one.ask()
      expect(allowed).toBe(false)
      expect(retryAfterMs).toBeGreaterThan(0)
      one.clock.advance(retryAfterMs - 1)
      expect((await one.ask()).retryAfterMs).toBe(1)
      one.clock.advance(1)
      expect((await one.ask()).allowed).toBe(true)
      // If there was room for several requests, this uses it up before the next wait.
      while ((await one.peek()).allowed) await one.ask()
    }
  })

  it('reports when it is unused again, to the millisecond', async () => {
    const one = scene()
    await one.ask()
    one.clock.advance(300)
    const { resetAfterMs } = await one.ask()
    one.clock.advance(resetAfterMs - 1)
    expect((await one.peek()).remaining).toBeLessThan(LIMIT)
    expect((await one.peek()).resetAfterMs).toBe(1)
    one.clock.advance(1)
    const free = await one.peek()
    expect([free.remaining, free.resetAfterMs]).toEqual([LIMIT, 0])
  })

  if (sample.isByCost)
    it('charges the cost of a request, and never admits a cost above the limit', async () => {
      const one = scene()
      expect(await one.ask(LIMIT + 1)).toMatchObject({
        allowed: false,
        retryAfterMs: Number.POSITIVE_INFINITY,
      })
      expect((await one.ask(LIMIT - 1)).remaining).toBe(1)
      expect((await one.ask(2)).allowed).toBe(false)
      expect((await one.ask()).allowed).toBe(true)
    })

  if (sample.isRefundable)
    it('refunds a charge once, without creating extra units', async () => {
      const one = scene()
      const decision = await one.ask(2)
      const other = await one.ask(2)
      expect(await one.limiter.refund('k', decision)).toBe(2)
      expect(await one.limiter.refund('k', decision)).toBe(0)
      expect((await one.peek()).remaining).toBe(2)
      expect(await one.limiter.refund('k', other)).toBe(2)
      expect((await one.peek()).remaining).toBe(LIMIT)
      const late = await one.ask(2)
      one.clock.advance(late.resetAfterMs)
      expect(await one.limiter.refund('k', late)).toBe(0)
      await one.fill()
      expect((await one.ask()).allowed).toBe(false)
    })

  if (sample.isRefundable)
    it('stores no time after all of its units were refunded', async () => {
      const one = scene()
      await one.limiter.refund('k', await one.ask())
      one.clock.advance(-500)
      expect((await one.ask()).atMs).toBe(one.clock.now())
    })

  it('allows charges beyond its limit, and a reset', async () => {
    const one = scene()
    const units = sample.isByCost ? LIMIT : 1
    for (let i = 0; i < 2 * LIMIT; i++) await one.limiter.charge('k', units, one.options)
    const { allowed, remaining, retryAfterMs } = await one.ask()
    expect([allowed, remaining]).toEqual([false, 0])
    one.clock.advance(retryAfterMs)
    expect((await one.peek()).allowed).toBe(true)
    await one.limiter.reset('k')
    await one.fill()
  })

  it('denies nothing as a shadow limit, and has its own count', async () => {
    const one = new Scene(sample, storeOf, true)
    for (let i = 0; i <= LIMIT + 2; i++) {
      const { allowed, remaining, limits } = await one.ask()
      expect([allowed, remaining]).toEqual([true, Number.POSITIVE_INFINITY])
      expect(limits[0]!.allowed).toBe(i < LIMIT)
    }
  })

  it.each([500, 3_600_000])(
    'neither frees nor blocks a key when the clock is set back by %i ms',
    async (backMs) => {
      const one = scene()
      await one.fill()
      const before = (await one.peek()).retryAfterMs
      one.clock.advance(-backMs)
      const { allowed, retryAfterMs } = await one.ask()
      expect(allowed).toBe(false)
      // A sliding counter may count its old units as new ones, and the edge of a calendar window may be near or far.
      const longest = Math.max(before, 2 * one.limiter.limits[0]!.windowMs)
      expect(retryAfterMs).toBeLessThanOrEqual(longest)
      one.clock.advance(retryAfterMs + backMs)
      expect((await one.ask()).allowed).toBe(true)
    },
  )
})

/** Operations besides a single request, for each kind on each store. */
describe.each(everywhere)('$name, $where, with other operations', ({ sample, storeOf }) => {
  const clock = new ManualClock()
  let asked = 0
  const options = () => sample.options?.(asked++) ?? {}
  const common = () => ({
    ...({ store: storeOf(clock), timeoutMs: 30_000, logger: false } as const),
    breaker: { minRequests: 2 ** 20 },
  })
  const create = (more: Partial<api.LimiterOptions> = {}) =>
    createLimiter({ limits: [sample.make({ limit: LIMIT })], ...common(), ...more } as api.LimiterOptions)
  const fill = async (limiter: Limiter) => {
    for (let i = 0; i < LIMIT; i++) expect((await limiter.consume('k', options())).allowed).toBe(true)
  }
  /** Limits that store each request separately don't support reservations. */
  const isKept = sample.make({ limit: LIMIT }).kind.entries !== undefined
  const needsValue = !sample.isByCost

  it.skipIf(needsValue)('charges all dimensions or none, together with another kind', async () => {
    const others = [
      api.slidingWindow({ limit: 2, window: '5s' }),
      api.tokenBucket({ capacity: 2, refill: 1, interval: '1h' }),
    ]
    for (const [i, other] of others.entries()) {
      for (const order of [0, 1]) {
        const own = [sample.make({ limit: LIMIT })]
        const dimensions = order === 0 ? { own, other: [other] } : { other: [other], own }
        const limiter = createLimiter({ name: `d${i}${order}`, dimensions, ...common() })
        const left = async (key: { own: string | null; other: string | null }) =>
          (await limiter.peek(key)).remaining
        const both = { own: 'a', other: 'x' }
        const decision = await limiter.consume(both, options())
        expect([decision.allowed, decision.remaining, decision.limits.length]).toEqual([true, 1, 2])
        expect((await limiter.consume(both, options())).allowed).toBe(true)
        for (let n = 0; n < 3; n++) {
          const denied = await limiter.consume(both, options())
          expect(denied.deniedBy).toEqual([`other.${other.name}`])
        }
        expect(await left({ own: 'a', other: null })).toBe(LIMIT - 2)
        for (let n = 0; n < 2; n++) {
          expect((await limiter.consume({ own: 'a', other: 'y' }, options())).allowed).toBe(true)
        }
        expect((await limiter.consume({ own: 'a', other: 'z' }, options())).deniedBy).toEqual([
          `own.${own[0]!.name}`,
        ])
        expect(await left({ own: null, other: 'z' })).toBe(2)
        const returned = await limiter.refund(both, decision)
        expect(returned).toBe(1)
        expect(await left({ own: 'a', other: null })).toBe(1)
        expect(await left({ own: null, other: 'x' })).toBe(1)
        await limiter.reset({ own: 'a' })
        expect(await left({ own: 'a', other: null })).toBe(LIMIT)
        expect(await left({ own: null, other: 'x' })).toBe(1)
      }
    }
  })

  it('decides each key of a batch on its own', async () => {
    const limiter = create()
    const ask = async (...asked: (readonly [key: string, cost?: number])[]) =>
      (await Promise.all(asked.map(([key, cost = 1]) => limiter.consume(key, { cost, ...options() })))).map(
        ({ remaining }) => remaining,
      )
    await ask(['b'], ['c'], ['c'])
    expect(await ask(['a'], ['b'], ['c'], ['b'], ['a'])).toEqual([3, 2, 1, 1, 2])
    if (!sample.isByCost) return
    expect(await ask(['d'], ['g'], ['c'])).toEqual([3, 3, 0])
    expect(await ask(['d'], ['g'], ['d', 2])).toEqual([2, 2, 0])
    expect(await ask(['c'], ['f'], ['a', 2], ['f', 2])).toEqual([0, 3, 0, 1])
    expect(await ask(['i'], ['j'], ['g', 2], ['k', 2])).toEqual([3, 3, 0, 2])
    if (!sample.isRefundable) return
    const [first, second] = [await limiter.consume('e', options()), await limiter.consume('e', options())]
    const [, , third] = await Promise.all([
      limiter.refund('e', first),
      limiter.refund('e', second),
      limiter.consume('e', options()),
    ])
    expect(third.remaining).toBe(3)
  })

  it('supports explain, with its usage and when it frees up', async () => {
    const limiter = create()
    await limiter.consume('k', options())
    clock.advance(100)
    await limiter.consume('k', options())
    const before = await limiter.peek('k', options())
    const explained = await limiter.explain('k', { charges: true })
    const { used, frees, oldestAtMs, charges, olderUnits, declared, ...verdict } = explained.limits[0]!
    expect([used, verdict]).toEqual([2, before.limits[0]])
    expect(declared).toEqual(api.declarationOf(limiter.limits[0]!))
    // A kind that stores the times of charges reports them.
    expect(charges?.[0]?.atMs).toBe(oldestAtMs)
    if (charges !== undefined) {
      expect(charges.reduce((sum, { units }) => sum + units, olderUnits!)).toBe(2)
    }
    expect(frees.at(-1)).toEqual({ afterMs: before.resetAfterMs, units: 2 })
    if (oldestAtMs !== undefined) expect(clock.now() - oldestAtMs).toBe(100)
    expect(await limiter.peek('k', options())).toMatchObject({ remaining: before.remaining })
    const startMs = clock.now()
    for (const { afterMs, units } of frees) {
      clock.set(startMs + afterMs - 1)
      expect((await limiter.explain('k')).limits[0]!.used).toBeGreaterThan(2 - units)
      clock.set(startMs + afterMs)
      expect((await limiter.explain('k')).limits[0]!.used).toBeLessThanOrEqual(2 - units)
    }
  })

  it(isKept ? 'rejects a reservation' : 'supports reservations', async () => {
    const limiter = create()
    if (isKept) {
      await expect(limiter.reserve('k', 1)).rejects.toMatchObject({ code: 'invalid_option' })
      expect((await limiter.peek('k', options())).remaining).toBe(LIMIT)
      return
    }
    const high = await limiter.reserve('k', 3)
    expect((await limiter.peek('k')).remaining).toBe(LIMIT - 3)
    expect(await high.settle(1)).toEqual({ returned: 2, added: 0 })
    const low = await limiter.reserve('k', 1)
    expect(await low.settle(2)).toEqual({ returned: 0, added: 1 })
    expect((await limiter.peek('k')).remaining).toBe(1)
    await expect(limiter.settle(low.token, 0)).rejects.toMatchObject({ code: 'invalid_reservation' })
    const late = await limiter.reserve('k', 1)
    clock.advance((await limiter.peek('k')).resetAfterMs)
    if (clock.now() - late.decision.atMs < 3_600_000) expect((await late.cancel()).returned).toBe(0)
    await fill(limiter)
    expect((await limiter.consume('k')).allowed).toBe(false)
  })

  it.skipIf(needsValue)('supports waiting', async () => {
    const limiter = create()
    for (let i = 0; i < LIMIT; i++) await limiter.wait('k')
    await expect(limiter.wait('k', { maxWaitMs: 0 })).rejects.toMatchObject({ reason: 'timeout' })
    const wait = limiter.wait('k', { maxWaitMs: 2 ** 31 - 1 })
    await limiter.reset('k')
    expect((await wait).allowed).toBe(true)
    expect((await limiter.peek('k')).remaining).toBe(LIMIT - 1)
    await expect(limiter.wait('k', { cost: LIMIT + 1 })).rejects.toMatchObject({ reason: 'impossible' })
    limiter.close()
  })

  it('causes a ban, on which a decision and an explanation agree', async () => {
    const limiter = create({ ban: { after: 2, within: '10s', for: '3s' }, overrides: true })
    await fill(limiter)
    expect((await limiter.consume('k', options())).blockedMs).toBeUndefined()
    const denied = await limiter.consume('k', options())
    const { name } = limiter.limits[0]!
    expect([denied.blockedMs, denied.deniedBy]).toEqual([3000, [name]])
    const full = await limiter.consume('k', options())
    expect([full.blockedMs, full.deniedBy, full.limits[0]!.allowed]).toEqual([3000, ['ban', name], false])
    const { retryAfterMs, deniedBy } = await limiter.explain('k')
    expect([full.retryAfterMs, full.deniedBy]).toEqual([retryAfterMs, deniedBy])
    await limiter.reset('k')
    await limiter.block('k', '3s')
    const blocked = await limiter.consume('k', options())
    expect([blocked.allowed, blocked.blockedMs, blocked.deniedBy]).toEqual([false, 3000, ['block']])
    expect(blocked.limits[0]).toMatchObject({ allowed: true, remaining: LIMIT })
    clock.advance(3000)
    await fill(limiter)
  })

  it('keeps its usage when its numbers change', async () => {
    let limits = [sample.make({ limit: LIMIT })]
    const limiter = create({ limits: () => limits })
    await fill(limiter)
    limits = [sample.make({ limit: LIMIT + 2 })]
    expect((await limiter.consume('k', options())).remaining).toBe(1)
    limits = [sample.make({ limit: LIMIT - 1 })]
    expect(await limiter.consume('k', options())).toMatchObject({ allowed: false, remaining: 0 })
    limits = [sample.make({ limit: LIMIT + 2 })]
    expect((await limiter.peek('k', options())).remaining).toBe(1)
  })

  it('returns to its own numbers when an override ends', async () => {
    const limiter = create({ overrides: true })
    await limiter.consume('k', options())
    await limiter.overrides.set('k', changeTo(sample, LIMIT + 2))
    expect((await limiter.consume('k', options())).remaining).toBe(LIMIT)
    await limiter.overrides.delete('k')
    expect((await limiter.consume('k', options())).remaining).toBe(LIMIT - 3)
  })

  it('only counts while its key is exempt', async () => {
    const limiter = create({ overrides: true })
    await limiter.overrides.set('k', 'exempt')
    for (let i = 0; i < LIMIT + 2; i++) {
      const { allowed, limits } = await limiter.consume('k', options())
      expect([allowed, limits[0]!.shadow, limits[0]!.allowed]).toEqual([true, true, i < LIMIT])
    }
    await limiter.overrides.delete('k')
    expect(await limiter.consume('k', options())).toMatchObject({ allowed: false, remaining: 0 })
  })

  it('decides concurrent requests in order', async () => {
    const limiter = create()
    const requests = Array.from({ length: LIMIT + 2 }, () => ({ key: 'k', ...options() }))
    const decisions = await limiter.consumeMany(requests)
    expect(decisions.map(({ allowed }) => allowed)).toEqual(requests.map((_, i) => i < LIMIT))
    expect(decisions.map(({ remaining }) => remaining)).toEqual(
      requests.map((_, i) => Math.max(0, LIMIT - 1 - i)),
    )
  })
})

it.each(samples)("a full limit isn't evicted from memory for another key: %s", async (_, sample) => {
  const one = new Scene(sample, (clock) => memoryStore({ clock: clock.now, maxKeys: 1 }))
  await one.fill()
  one.clock.advance((await one.ask()).retryAfterMs - 1)
  await expect(one.limiter.consume('other', one.options)).rejects.toMatchObject({ reason: 'full' })
  expect((await one.ask()).allowed).toBe(false)
})

describe.each(samples)('%s in Redis', (_, sample) => {
  const key = async () => (await redis.keys('*:k:*')).sort()[0]!

  it('uses one key, which expires some time after it is empty', async () => {
    const one = new Scene(sample, (clock) => redisStore(redis, { clock: clock.now }))
    const real = createLimiter({
      limits: [sample.make({ limit: LIMIT })],
      store: redisStore(redis),
      timeoutMs: 30_000,
    })
    const startMs = performance.now()
    const { resetAfterMs } = await real.consume('k', one.options)
    const ttl = await redis.pttl(await key())
    expect(await redis.keys('*:k:*')).toHaveLength(sample.keys ?? 1)
    expect(ttl).toBeGreaterThan(resetAfterMs - 1000 - (performance.now() - startMs))
    expect(ttl).toBeLessThanOrEqual(1.25 * 2 * real.limits[0]!.windowMs + 5000)
    await real.reset('k')
    expect(await redis.keys('*:k:*')).toEqual([])
  })

  it.each(['not a log', ''.padEnd(200, '\0'), ''.padEnd(14, '\u0001')])(
    'rejects %j in its place, and leaves it unchanged',
    async (foreign) => {
      const one = new Scene(sample, (clock) => redisStore(redis, { clock: clock.now }))
      await one.ask()
      const stored = await key()
      for (const write of [() => redis.set(stored, foreign), () => redis.hset(stored, 'a', foreign)]) {
        await redis.del(stored)
        await write()
        const before = await redis.dump(stored)
        const asked = [one.ask(), one.limiter.consume('other', one.options), one.peek()] as const
        await expect(asked[0]).rejects.toMatchObject({ reason: 'invalid_state' })
        expect((await asked[1]).allowed).toBe(true)
        await expect(asked[2]).rejects.toMatchObject({ reason: 'invalid_state' })
        await expect(one.limiter.charge('k', 1, one.options)).rejects.toMatchObject({
          reason: 'invalid_state',
        })
        expect(await redis.dump(stored)).toEqual(before)
        await one.limiter.reset('k')
        await one.fill()
      }
    },
  )

  it('charges nothing if Redis is out of memory, and keeps denying', async () => {
    const one = new Scene(sample, (clock) => redisStore(redis, { clock: clock.now }))
    await one.ask()
    const before = await redis.dumpBuffer(await key())
    await redis.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', '1')
    try {
      for (let i = 0; i < 3; i++) {
        await expect(one.ask()).rejects.toMatchObject({
          reason: 'error',
          message: expect.stringMatching(/OOM/),
        })
        await expect(one.limiter.charge('k', 1, one.options)).rejects.toMatchObject({ reason: 'error' })
      }
      expect(await redis.dumpBuffer(await key())).toEqual(before)
      await redis.config('SET', 'maxmemory', '0')
      for (let i = 1; i < LIMIT; i++) expect((await one.ask()).allowed).toBe(true)
      await redis.config('SET', 'maxmemory', '1')
      expect((await one.ask()).allowed).toBe(false)
    } finally {
      await redis.config('SET', 'maxmemory', '0')
    }
  })

  it('keeps its full TTL when the clock is set back', async () => {
    const one = new Scene(sample, (clock) => redisStore(redis, { clock: clock.now }))
    await one.ask()
    await redis.pexpire(await key(), 5000)
    // Sets the clock back into an earlier window, for any kind.
    one.clock.advance(-2 * 86_400_000)
    const { resetAfterMs } = await one.ask()
    expect(await redis.pttl(await key())).toBeGreaterThan(resetAfterMs)
  })

  it('leaves no key behind when it is empty', async () => {
    if (!sample.isRefundable) return
    const one = new Scene(sample, (clock) => redisStore(redis, { clock: clock.now }))
    const decision = await one.ask()
    await one.limiter.refund('k', decision)
    expect(await redis.keys('*:k:*')).toEqual([])
  })
})

describe('the steps for adding a kind', () => {
  const read = (path: string) => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8')

  const FOLDER = 'docs/limits'

  /** The text of all pages about kinds. */
  const PAGES = readdirSync(new URL(`../../../../${FOLDER}`, import.meta.url))
    .filter((name) => name.endsWith('.md'))
    .map((name) => read(`${FOLDER}/${name}`))
    .join('\n')

  /** The changelog and its unreleased entries. */
  const CHANGES = readdirSync(new URL('../../../../.changeset', import.meta.url))
    .map((name) => `.changeset/${name}`)
    .concat('packages/slidegate/CHANGELOG.md')
    .map(read)
    .join('\n')

  /** Exports that don't create a limit. */
  const OTHERS = [
    ...[
      'createLimiter',
      'declarationOf',
      'failurePolicy',
      'limitOf',
      'limitsOf',
      'memoryStore',
      'slidingCount',
      'tupleKey',
      'withDenyCache',
      'withLeases',
    ],
    ...['SlidegateError', 'StoreUnavailableError', 'WaitError'],
  ]

  it('every function that creates a limit has samples', () => {
    const made = Object.keys({ ...api, ...calendar }).filter((name) => !OTHERS.includes(name))
    expect([...new Set(samples.map(([, { by }]) => by))].sort()).toEqual(made.sort())
  })

  it('all logs have different names, which are documented', () => {
    const names = samples.map(([, { make }]) => {
      const limit = make({ limit: LIMIT })
      return limit.kind.logName(limit)
    })
    expect(new Set(names).size).toBe(names.length)
    const documented = read('docs/state.md')
    for (const name of names) expect(documented).toContain(`\`${name.match(/^[a-z]+/)![0]}`)
  })

  it.each(samples)('a declaration creates the same limit: %s', (_, { make }) => {
    const limit = make({ limit: LIMIT })
    const declaration = api.declarationOf(limit)
    expect(api.declarationOf(api.limitOf(declaration))).toEqual(declaration)
  })

  it.each([...new Set(samples.map(([, { by }]) => by))])(
    '%s has documentation, a drawing and a measurement',
    (by) => {
      expect(PAGES).toContain(`${by}(`)
      expect(CHANGES).toContain(by)
      expect(read('bench/src/kinds/kinds.ts')).toContain(by)
      expect(read('packages/slidegate/test/history/declarations.ts')).toContain(by)
    },
  )
})
