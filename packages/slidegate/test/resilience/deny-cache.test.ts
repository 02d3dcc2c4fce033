// tier: integration
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  failurePolicy,
  fixedWindow,
  type Limit,
  type Limiter,
  memoryStore,
  slidingCounter,
  slidingWindow,
  tokenBucket,
  withDenyCache,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { held, recorded } from './stores.ts'

const { redis } = await useRedis()

let scenes = 0

/** Creates a limiter on a cached store. `behind` records the ops that reach the store. */
function scene(
  limits: readonly Limit[] = [slidingWindow({ limit: 5, window: 1000 })],
  options: { maxStaleMs?: number; maxKeys?: number } = {},
  storeOf: (clock: ManualClock) => Store = (clock) => memoryStore({ clock: clock.now }),
) {
  const clock = new ManualClock()
  const behind = recorded(storeOf(clock))
  const store = withDenyCache(behind, { clock: clock.now, ...options })
  const limiterOf = (name: string, own: readonly Limit[] = limits) =>
    createLimiter({ name, limits: own, store, timeoutMs: 30_000 })
  return { clock, behind, store, limiter: limiterOf('api'), limiterOf, name: `api${scenes++}` }
}

async function useUp(limiter: Limiter, key: string, units: number): Promise<void> {
  expect((await limiter.consume(key, { cost: units })).allowed).toBe(true)
}

const stores: Record<string, (clock: ManualClock) => Store> = {
  memory: (clock) => memoryStore({ clock: clock.now }),
  Redis: (clock) => redisStore(redis, { clock: clock.now, prefix: `slidegate:deny${scenes++}` }),
}

describe.each(Object.entries(stores))('a deny cache in front of %s', (_, storeOf) => {
  it('repeats a denial without calling the store, and subtracts the time that has passed from its waits', async () => {
    const { clock, behind, limiter } = scene(undefined, {}, storeOf)
    await useUp(limiter, 'k', 5)
    clock.advance(100)
    const first = await limiter.consume('k')
    expect(first).toMatchObject({ allowed: false, source: 'store', retryAfterMs: 900 })
    const calls = behind.ops.length
    for (const passedMs of [0, 1, 449, 899]) {
      clock.set(first.atMs + passedMs)
      expect(await limiter.consume('k')).toEqual({
        ...first,
        source: 'denyCache',
        atMs: clock.now(),
        retryAfterMs: 900 - passedMs,
        resetAfterMs: 900 - passedMs,
        limits: [{ ...first.limits[0], retryAfterMs: 900 - passedMs, resetAfterMs: 900 - passedMs }],
      })
    }
    expect(behind.ops.length).toBe(calls)
    clock.set(first.atMs + 900)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, source: 'store' })
  })

  it('reflects changes made elsewhere within maxStaleMs', async () => {
    const { clock, behind, limiter } = scene(undefined, { maxStaleMs: 50 }, storeOf)
    await useUp(limiter, 'k', 5)
    await limiter.consume('k')
    const elsewhere = createLimiter({
      name: 'api',
      limits: [slidingWindow({ limit: 5, window: 1000 })],
      store: behind,
      timeoutMs: 30_000,
    })
    await elsewhere.reset('k')
    clock.advance(49)
    expect((await limiter.consume('k')).source).toBe('denyCache')
    clock.advance(1)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, source: 'store' })
  })

  it('never reports a longer wait than the store, whatever is admitted elsewhere', async () => {
    const limits = [
      slidingWindow({ limit: 6, window: 1000, name: 'sliding' }),
      fixedWindow({ limit: 4, window: 300, name: 'fixed' }),
      slidingCounter({ limit: 5, window: 400, name: 'counter' }),
      tokenBucket({ capacity: 5, refill: 1, interval: 100, name: 'bucket' }),
    ]
    const request = fc.record({
      isElsewhere: fc.boolean(),
      cost: fc.constantFrom(1, 1, 2, 4),
      passMs: fc.constantFrom(0, 1, 10, 100, 250),
    })
    const isWithin = (names: readonly string[], others: readonly string[]) =>
      names.every((name) => others.includes(name))
    const seen = { held: 0, later: 0, moreDeny: 0 }
    const property = fc.asyncProperty(
      fc.array(request, { minLength: 20, maxLength: 40 }),
      async (requests) => {
        const { clock, behind, limiter } = scene(limits, { maxStaleMs: 10_000 }, storeOf)
        const elsewhere = createLimiter({ name: 'api', limits, store: behind, timeoutMs: 30_000 })
        for (const { isElsewhere, cost, passMs } of requests) {
          clock.advance(passMs)
          const decision = await (isElsewhere ? elsewhere : limiter).consume('k', { cost })
          if (decision.source !== 'denyCache') continue
          const now = await elsewhere.peek('k', { cost })
          expect(now.allowed).toBe(false)
          expect(now.retryAfterMs).toBeGreaterThanOrEqual(decision.retryAfterMs)
          expect(now.resetAfterMs).toBeGreaterThanOrEqual(decision.resetAfterMs)
          expect(isWithin(decision.deniedBy, now.deniedBy)).toBe(true)
          seen.held++
          if (now.retryAfterMs > decision.retryAfterMs) seen.later++
          if (!isWithin(now.deniedBy, decision.deniedBy)) seen.moreDeny++
        }
      },
    )
    await fc.assert(property, { numRuns: 60 })
    for (const times of Object.values(seen)) expect(times).toBeGreaterThan(0)
  })

  it('denies a cost above the limit forever, and calls the store again after maxStaleMs', async () => {
    const { clock, behind, limiter } = scene(undefined, {}, storeOf)
    for (let second = 0; second < 3; second++) {
      expect(await limiter.consume('k', { cost: 6 })).toMatchObject({ source: 'store' })
      clock.advance(999)
      const again = await limiter.consume('k', { cost: 6 })
      expect(again).toMatchObject({ allowed: false, source: 'denyCache', retryAfterMs: Infinity })
      clock.advance(1)
    }
    expect(behind.ops.length).toBe(3)
  })

  it('denies one cost while another still fits', async () => {
    const { limiter } = scene(undefined, {}, storeOf)
    await useUp(limiter, 'k', 1)
    expect((await limiter.consume('k', { cost: 5 })).allowed).toBe(false)
    expect((await limiter.consume('k', { cost: 5 })).source).toBe('denyCache')
    for (let left = 3; left >= 0; left--) {
      expect(await limiter.consume('k', { cost: 1 })).toMatchObject({ allowed: true, remaining: left })
    }
  })
})

it('a limit that frees up before the others has room, and is no longer listed in deniedBy', async () => {
  const limits = [
    slidingWindow({ limit: 3, window: 100, name: 'short' }),
    slidingWindow({ limit: 3, window: 500, name: 'long' }),
    slidingWindow({ limit: 3, window: 200, name: 'shadow', shadow: true }),
    fixedWindow({ limit: 3, window: 100, name: 'fixed' }),
  ]
  const { clock, limiter } = scene(limits)
  await useUp(limiter, 'k', 3)
  const deniedBy = async () => {
    const { limits: verdicts, deniedBy: names, allowed, source, retryAfterMs } = await limiter.consume('k')
    const full = verdicts.filter((verdict) => !verdict.allowed).map(({ name }) => name)
    return { names, full, allowed, source, retryAfterMs }
  }
  const all = ['short', 'long', 'shadow', 'fixed']
  const enforced = ['short', 'long', 'fixed']
  expect(await deniedBy()).toMatchObject({ names: enforced, full: all, source: 'store' })
  clock.advance(99)
  expect(await deniedBy()).toMatchObject({ names: enforced, full: all, source: 'denyCache' })
  clock.advance(1)
  const afterShort = { names: ['long'], full: ['long', 'shadow'], allowed: false, retryAfterMs: 400 }
  expect(await deniedBy()).toMatchObject({ ...afterShort, source: 'denyCache' })
  clock.advance(100)
  expect(await deniedBy()).toMatchObject({ names: ['long'], full: ['long'], source: 'denyCache' })
  clock.advance(300)
  expect(await deniedBy()).toMatchObject({ names: [], full: [], allowed: true, source: 'store' })
})

it('a refund, charge, admission or reset drops cached denials of its key', async () => {
  const { behind, limiter, limiterOf } = scene()
  // Acts like a deploy that changes the limits: both limiters share the log.
  const other = limiterOf('api', [slidingWindow({ limit: 10, window: 1000 })])
  const mayChange: Record<string, () => Promise<unknown>> = {
    refund: async () => limiter.refund('k', admitted, 1),
    'refund by the other limiter': async () => other.refund('k', admittedByOther, 1),
    charge: async () => other.charge('k', 1),
    'admission by the other limiter': async () => other.consume('k'),
    reset: async () => other.reset('k'),
  }
  const admitted = await limiter.consume('k', { cost: 4 })
  const admittedByOther = await other.consume('k', { cost: 4 })
  for (const [what, change] of Object.entries(mayChange)) {
    expect((await limiter.consume('k')).allowed).toBe(false)
    expect((await limiter.consume('k')).source).toBe('denyCache')
    await change()
    const calls = behind.ops.length
    const { source } = await limiter.consume('k')
    expect({ what, source, calls: behind.ops.length - calls }).toEqual({ what, source: 'store', calls: 1 })
  }
  expect((await limiter.peek('k')).remaining).toBe(4)
})

it('changes to another key or limiter keep a cached denial', async () => {
  const { limiter, limiterOf } = scene()
  await useUp(limiter, 'k', 5)
  await limiter.consume('k')
  expect((await limiterOf('web').consume('k')).allowed).toBe(true)
  expect((await limiter.consume('l')).allowed).toBe(true)
  await limiterOf('web').reset('k')
  await limiter.reset('l')
  expect((await limiter.consume('k')).source).toBe('denyCache')
})

it("a denial under some limits doesn't apply to other limits of the same key", async () => {
  const { limiter, limiterOf } = scene()
  await useUp(limiter, 'k', 5)
  expect((await limiter.consume('k')).allowed).toBe(false)
  const wider = limiterOf('api', [slidingWindow({ limit: 6, window: 1000 })])
  expect((await wider.consume('k')).allowed).toBe(true)
})

it('a peek goes to the store, and changes nothing', async () => {
  const { behind, limiter } = scene()
  await useUp(limiter, 'k', 5)
  await limiter.consume('k')
  const calls = behind.ops.length
  expect(await limiter.peek('k')).toMatchObject({ allowed: false, source: 'store' })
  expect(behind.ops.length).toBe(calls + 1)
  expect((await limiter.consume('k')).source).toBe('denyCache')
})

it('the deny cache calls the store if the local clock goes backwards', async () => {
  const { clock, behind, limiter } = scene()
  const own = new ManualClock()
  const cached = createLimiter({
    name: 'api',
    limits: [slidingWindow({ limit: 5, window: 1000 })],
    store: withDenyCache(behind, { clock: own.now }),
  })
  await useUp(limiter, 'k', 5)
  await cached.consume('k')
  own.advance(-1)
  clock.advance(1000)
  expect(await cached.consume('k')).toMatchObject({ allowed: true, source: 'store' })
})

it("a cached denial ends early rather than late between the store's milliseconds", async () => {
  const clock = new ManualClock(1_700_000_000_000.9)
  const store = withDenyCache(memoryStore({ clock: clock.now }), { clock: clock.now })
  const limiter = createLimiter({ limits: [slidingWindow({ limit: 1, window: 10 })], store })
  await limiter.consume('k')
  expect((await limiter.consume('k')).retryAfterMs).toBe(10)
  clock.set(1_700_000_000_009.8)
  expect(await limiter.consume('k')).toMatchObject({ source: 'denyCache', retryAfterMs: 2 })
  clock.set(1_700_000_000_010.1)
  expect(await limiter.consume('k')).toMatchObject({ source: 'store', allowed: true })
})

describe('while an answer is in flight', () => {
  /** Creates a cached store whose answers can be held back. */
  function heldScene() {
    const clock = new ManualClock()
    const behind = held(memoryStore({ clock: clock.now }))
    const store = withDenyCache(behind, { clock: clock.now })
    const limits = [slidingWindow({ limit: 5, window: 1000 })]
    return { clock, behind, limiter: createLimiter({ limits, store, timeoutMs: 30_000 }) }
  }

  it("its latency is subtracted from the denial's waits", async () => {
    const { clock, behind, limiter } = heldScene()
    behind.isHolding = false
    await useUp(limiter, 'k', 5)
    behind.isHolding = true
    const denied = limiter.consume('k')
    clock.advance(300)
    behind.release()
    expect((await denied).retryAfterMs).toBe(1000)
    expect(await limiter.consume('k')).toMatchObject({ source: 'denyCache', retryAfterMs: 700 })
  })

  it.each(['charge', 'refund', 'reset'] as const)(
    'a %s prevents its denial from being cached',
    async (change) => {
      const { behind, limiter } = heldScene()
      behind.isHolding = false
      const admitted = await limiter.consume('k', { cost: 5 })
      const changes = {
        charge: () => limiter.charge('k', 1),
        refund: () => limiter.refund('k', admitted, 1),
        reset: () => limiter.reset('k'),
      }
      // The change is sent while the denial is in flight, or answered at that time.
      for (const first of ['denial', 'change']) {
        await changes.charge()
        behind.isHolding = true
        const change1 = first === 'change' ? changes[change]() : undefined
        const denied = limiter.consume('k', { cost: 5 })
        const change2 = first === 'denial' ? changes[change]() : undefined
        behind.release()
        await Promise.all([change1, denied, change2])
        behind.isHolding = false
        expect((await limiter.consume('k', { cost: 5 })).source).toBe('store')
      }
    },
  )

  it('a request after a reset goes to the store, even before the reset is answered', async () => {
    const { behind, limiter } = heldScene()
    await useUp(limiter, 'k', 5)
    await limiter.consume('k')
    expect((await limiter.consume('k')).source).toBe('denyCache')
    behind.isHolding = true
    const reset = limiter.reset('k')
    behind.isHolding = false
    expect(await limiter.consume('k')).toMatchObject({ source: 'store', allowed: true })
    behind.release()
    await reset
  })

  it('an admission prevents a denial from being cached', async () => {
    const { behind, limiter } = heldScene()
    behind.isHolding = true
    const answers = [4, 5, 1].map((cost) => limiter.consume('k', { cost }))
    behind.release()
    expect((await Promise.all(answers)).map(({ allowed }) => allowed)).toEqual([true, false, true])
    behind.isHolding = false
    expect(await limiter.consume('k', { cost: 5 })).toMatchObject({ source: 'store' })
  })
})

it('a denial by a ban is repeated until the ban is over, even if a limit stays full', async () => {
  const clock = new ManualClock()
  const store = withDenyCache(memoryStore({ clock: clock.now }), { clock: clock.now })
  const limits = [slidingWindow({ limit: 1, window: '1h' })]
  const ban = { after: 2, within: '10m', for: 500 } as const
  const limiter = createLimiter({ limits, ban, store })
  const denial = async () => {
    const { source, deniedBy, blockedMs, retryAfterMs } = await limiter.consume('k')
    return { source, deniedBy, blockedMs, retryAfterMs }
  }
  for (let i = 0; i < 3; i++) await limiter.consume('k')
  const deniedBy = ['ban', '1-per-1h']
  expect(await denial()).toEqual({ source: 'store', deniedBy, blockedMs: 500, retryAfterMs: 3_600_000 })
  clock.advance(400)
  expect(await denial()).toEqual({ source: 'denyCache', deniedBy, blockedMs: 100, retryAfterMs: 3_599_600 })
  clock.advance(100)
  // From now on, denials count toward the next ban.
  expect(await denial()).toMatchObject({ source: 'store', deniedBy: ['1-per-1h'], blockedMs: undefined })
  expect((await limiter.explain('k')).bans).toMatchObject([{ denials: 1 }])
})

it('on Redis, denials that were decided in one batch are cached as one', async () => {
  const behind = recorded(redisStore(redis, { prefix: 'slidegate:together' }))
  const limits = [slidingWindow({ limit: 3, window: '1h' })]
  const { now } = new ManualClock()
  const limiter = createLimiter({ limits, store: withDenyCache(behind, { clock: now }), timeoutMs: 30_000 })
  const together = await Promise.all(Array.from({ length: 20 }, () => limiter.consume('k')))
  expect(together.map(({ allowed }) => allowed)).toEqual(Array.from({ length: 20 }, (_, i) => i < 3))
  const again = await Promise.all(Array.from({ length: 20 }, () => limiter.consume('k')))
  expect(again.every(({ allowed, source }) => !allowed && source === 'store')).toBe(true)
  const calls = behind.ops.length
  const { allowed, source, remaining, deniedBy } = await limiter.consume('k')
  expect({ allowed, source, remaining, deniedBy, calls: behind.ops.length - calls }).toEqual({
    ...{ allowed: false, source: 'denyCache', remaining: 0, deniedBy: ['3-per-1h'], calls: 0 },
  })
})

it("errors and denials without a decision of the store aren't cached", async () => {
  const clock = new ManualClock()
  const limits = [slidingWindow({ limit: 1, window: 1000 })]
  for (const onFull of ['throw', 'deny'] as const) {
    const behind = recorded(memoryStore({ maxKeys: 1, onFull, clock: clock.now }))
    const limiter = createLimiter({ limits, store: withDenyCache(behind, { clock: clock.now }) })
    await limiter.consume('first')
    for (let calls = 2; calls < 5; calls++) {
      const sourceOf = limiter.consume('second').then(
        ({ source }) => source,
        ({ reason }) => reason,
      )
      expect(await sourceOf).toBe(onFull === 'throw' ? 'full' : 'failClosed')
      expect(behind.ops.length).toBe(calls)
    }
    // They don't evict anything either.
    await limiter.consume('first')
    expect((await limiter.consume('first')).source).toBe('denyCache')
  }
})

it('only outcomes of the store itself are cached', async () => {
  const inner = memoryStore()
  const substitute: Store = {
    failurePolicy,
    apply(ops, call) {
      const outcomes = inner.applySync(ops).map((outcome) => ({ ...outcome, source: 'fallback' }))
      call.resolve(outcomes as never, 0)
    },
    close() {},
  }
  const behind = recorded(substitute)
  const limits = [slidingWindow({ limit: 1, window: 1000 })]
  const limiter = createLimiter({ limits, store: withDenyCache(behind) })
  for (let calls = 1; calls < 5; calls++) {
    expect((await limiter.consume('k', { cost: 2 })).source).toBe('fallback')
    expect(behind.ops.length).toBe(calls)
  }
})

it('a deny cache evicts the oldest key above maxKeys', async () => {
  const { limiter } = scene(undefined, { maxKeys: 3 })
  for (const key of ['a', 'b', 'c', 'd']) await limiter.consume(key, { cost: 6 })
  const sources = async (keys: string) => {
    const decisions = []
    for (const key of keys) decisions.push((await limiter.consume(key, { cost: 6 })).source)
    return decisions
  }
  expect(await sources('dcb')).toEqual(['denyCache', 'denyCache', 'denyCache'])
  expect(await sources('a')).toEqual(['store'])
  expect(await sources('dcab')).toEqual(['denyCache', 'denyCache', 'denyCache', 'store'])
})

it('a deny cache keeps a few different denials per key', async () => {
  const { limiter } = scene()
  for (const cost of [6, 7, 8, 9, 10]) await limiter.consume('k', { cost })
  const sources = await Promise.all([10, 9, 8, 7, 6].map((cost) => limiter.consume('k', { cost })))
  expect(sources.map(({ source }) => source)).toEqual([...Array(4).fill('denyCache'), 'store'])
})

it('ops with several keys go to the store, and drop cached denials of each key they charge', async () => {
  const { behind, store, limiter, clock } = scene()
  const recording = recorded(store)
  const spy = createLimiter({ name: 'api', limits: limiter.limits, store: recording })
  await spy.consume('a', { cost: 5 })
  await spy.consume('b', { cost: 5 })
  for (const key of ['a', 'b']) {
    await limiter.consume(key)
    expect((await limiter.consume(key)).source).toBe('denyCache')
  }
  const parts = recording.ops.flatMap((op) => op.parts)
  await new Promise((resolve, reject) => {
    const op = { type: 'consume', parts, cost: 1, count: 1, leaseMs: 0 } as const
    store.apply([op], { isSettled: false, resolve, reject })
  })
  const before = behind.ops.length
  for (const key of ['a', 'b']) expect((await limiter.consume(key)).source).toBe('store')
  expect(behind.ops.length).toBe(before + 2)
  expect(clock.now()).toBe((await limiter.consume('a')).atMs)
})

it.each([
  [{ maxStaleMs: 0 }],
  [{ maxStaleMs: 1.5 }],
  [{ maxStaleMs: Number.NaN }],
  [{ maxKeys: 0 }],
  [{ maxKeys: Infinity }],
  [{ clock: 5 }],
  [null],
])('withDenyCache rejects %j', (options) => {
  expect(() => withDenyCache(memoryStore(), options as never)).toThrow(
    expect.objectContaining({ code: 'invalid_option' }),
  )
})

it("withDenyCache rejects values that aren't a store", () => {
  for (const store of [undefined, null, {}, 'redis://']) {
    expect(() => withDenyCache(store as never)).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  }
})

it("a request that has timed out isn't answered", async () => {
  const behind = held(memoryStore())
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 5, window: 1000 })],
    store: withDenyCache(behind),
    timeoutMs: 5,
  })
  behind.isHolding = true
  await expect(limiter.consume('k', { cost: 6 })).rejects.toMatchObject({ reason: 'timeout' })
  expect(behind.waiting.map(({ isSettled }) => isSettled)).toEqual([true])
  behind.release()
  await nextTurn()
})
