// tier: integration
import { AsyncLocalStorage, createHook } from 'node:async_hooks'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  createLimiter,
  type Decision,
  failurePolicy,
  fixedWindow,
  type LeaseOptions,
  type Limit,
  type Limiter,
  memoryStore,
  slidingCounter,
  slidingWindow,
  tokenBucket,
  withDenyCache,
  withLeases,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { ConsumeOp, Op, Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { held, recorded } from './stores.ts'

const { redis } = await useRedis()

let scenes = 0

/** The start of a second, for fixed windows. */
const START_MS = 1_700_000_000_000

const MINUTE = slidingWindow({ limit: 1000, window: '1m' })

/** Creates a limiter on a leasing store, and one that doesn't lease. `behind` records the ops that reach the store. */
function scene(
  limits: readonly Limit[] = [MINUTE],
  options: LeaseOptions = {},
  storeOf: (clock: ManualClock) => Store = (clock) => memoryStore({ clock: clock.now }),
) {
  const clock = new ManualClock(START_MS)
  const inner = storeOf(clock)
  const far = held(inner)
  const behind = recorded(far)
  const store = withLeases(behind, { clock: clock.now, ...options })
  const limiterOn = (on: Store, own = limits) =>
    createLimiter({ name: 'api', limits: own, store: on, timeoutMs: 30_000 })
  return { clock, far, behind, store, limiterOn, limiter: limiterOn(store), plain: limiterOn(inner) }
}

async function times(count: number, limiter: Limiter, key = 'k', cost = 1): Promise<Decision[]> {
  const decisions: Decision[] = []
  for (let i = 0; i < count; i++) decisions.push(await limiter.consume(key, { cost }))
  return decisions
}

const sourcesOf = (decisions: readonly Decision[]) => decisions.map(({ source }) => source)
const consumed = (ops: readonly Op[]) => ops.filter((op): op is ConsumeOp => op.type === 'consume')
const leased = (ops: readonly Op[]) => consumed(ops).filter(({ leaseMs }) => leaseMs > 0)
const usedOf = async (limiter: Limiter, key = 'k') => {
  const { limit, remaining } = (await limiter.peek(key)).limits[0]!
  return limit - remaining
}
/** Calls a store. The call can time out. */
function asking(store: Store, op: Op) {
  const call = {
    isSettled: false,
    answers: 0,
    resolve() {
      call.answers++
      call.isSettled = true
    },
    reject() {
      call.resolve()
    },
    timeOut() {
      call.isSettled = true
    },
  }
  store.apply([op], call)
  return call
}
/** Lets all pending microtasks run. */
const settled = async () => {
  for (let turn = 0; turn < 12; turn++) await undefined
}

const stores: Record<string, (clock: ManualClock) => Store> = {
  memory: (clock) => memoryStore({ clock: clock.now }),
  Redis: (clock) => redisStore(redis, { clock: clock.now, prefix: `slidegate:leases${scenes++}` }),
}

describe.each(Object.entries(stores))('leases on %s', (_, storeOf) => {
  it('cover a key that is requested repeatedly', async () => {
    const { clock, behind, limiter } = scene(undefined, {}, storeOf)
    const first = await times(7, limiter)
    expect(sourcesOf(first)).toEqual(Array(7).fill('store'))
    clock.advance(3)
    const callsBefore = behind.ops.length
    const decisions = await times(9, limiter)
    expect(behind.ops.length).toBe(callsBefore)
    for (const [i, decision] of decisions.entries()) {
      expect(decision).toMatchObject({
        allowed: true,
        source: 'lease',
        // The time and the units of the whole lease.
        atMs: START_MS,
        remaining: 1000 - 8 - i,
        limits: [{ allowed: true, remaining: 1000 - 8 - i, retryAfterMs: 0 }],
      })
    }
    expect((await limiter.consume('k')).source).toBe('store')
  })

  it('return unspent units of the longest lease even if something else is charged every millisecond', async () => {
    const limits = [slidingWindow({ limit: 100_000, window: '1m' })]
    const { clock, limiter, plain, store } = scene(limits, { leaseMs: 3000 }, storeOf)
    await times(7, limiter)
    const { source } = await limiter.consume('k')
    for (let ms = 0; ms < 4000; ms++) {
      clock.advance(1)
      await plain.charge('k', 1)
    }
    await store.close()
    expect([source, await usedOf(plain)]).toEqual(['lease', 4008])
  })

  it('allow refunds per request, once and to the unit', async () => {
    const { limiter, plain, store } = scene(undefined, {}, storeOf)
    await times(7, limiter, 'k', 3)
    const decision = await limiter.consume('k', { cost: 3 })
    expect(decision.source).toBe('lease')
    await store.close()
    expect(await usedOf(plain)).toBe(24)
    expect(await limiter.refund('k', decision, 2)).toBe(2)
    expect(await limiter.refund('k', decision, 3)).toBe(1)
    expect(await limiter.refund('k', decision)).toBe(0)
    expect(await usedOf(plain)).toBe(21)
  })

  it('return unspent units when they expire', async () => {
    const { clock, limiter, plain } = scene(undefined, {}, storeOf)
    await times(9, limiter)
    expect(await usedOf(plain)).toBe(6 + 10)
    clock.advance(99)
    expect((await limiter.consume('k')).source).toBe('lease')
    clock.advance(1)
    expect(await limiter.consume('k')).toMatchObject({ source: 'store', atMs: clock.now() })
    expect(await usedOf(plain)).toBe(10 + 1 + 9)
  })

  it.each([
    ['a window of coarse precision', slidingWindow({ limit: 100, window: '1m', precision: '1s' })],
    ['a fixed window', fixedWindow({ limit: 100, window: '1m' })],
    ['a sliding counter', slidingCounter({ limit: 100, window: '1m' })],
    ['a token bucket', tokenBucket({ capacity: 100, refill: 1, interval: '1m' })],
  ])("held across a reset elsewhere don't reduce later charges: %s", async (_, limit) => {
    const { clock, limiter, plain, store } = scene([limit], {}, storeOf)
    await times(8, limiter)
    expect(await usedOf(plain)).toBeGreaterThan(8)
    await plain.reset('k')
    clock.advance(1)
    await plain.consume('k', { cost: 50 })
    await store.close()
    expect(await usedOf(plain)).toBe(50)
  })

  it('return their units when the store closes, after which no lease is made', async () => {
    const { behind, limiter, plain, store } = scene(undefined, {}, storeOf)
    await times(8, limiter)
    await times(7, limiter, 'other')
    await store.close()
    expect([await usedOf(plain), await usedOf(plain, 'other')]).toEqual([8, 7])
    const before = leased(behind.ops).length
    expect(sourcesOf(await times(20, limiter))).toEqual(Array(20).fill('store'))
    expect(leased(behind.ops).length).toBe(before)
  })

  it('use up a limit to the last unit', async () => {
    const { limiter, plain } = scene([slidingWindow({ limit: 50, window: '1m' })], {}, storeOf)
    const allowed = (await times(60, limiter)).filter((decision) => decision.allowed)
    expect(allowed.length).toBe(50)
    expect(allowed.some(({ source }) => source === 'lease')).toBe(true)
    expect(await usedOf(plain)).toBe(50)
  })

  it('grow with demand until calls are few, and shrink again', async () => {
    const roomy = slidingWindow({ limit: 100_000, window: '1m' })
    const { behind, clock, limiter } = scene([roomy], {}, storeOf)
    for (let ms = 0; ms < 600; ms++) {
      await times(20, limiter)
      clock.advance(1)
    }
    const atFirst = behind.ops.length
    for (let ms = 0; ms < 600; ms++) {
      await times(20, limiter)
      clock.advance(1)
    }
    expect(behind.ops.length - atFirst).toBeLessThan((20 * 12_000) / 1000)
    for (let i = 0; i < 40; i++) {
      await times(1, limiter)
      clock.advance(10)
    }
    const { count } = leased(behind.ops).at(-1)!
    expect(count).toBeLessThan(30)
  })
})

it("keys that are requested a few times aren't leased", async () => {
  const { clock, behind, limiter } = scene()
  for (let round = 0; round < 5; round++) {
    for (let key = 0; key < 20; key++) await times(5, limiter, `k${key}`)
    clock.advance(100)
  }
  expect(behind.ops.length).toBe(500)
  expect(leased(behind.ops)).toEqual([])
})

describe('a lease', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('ends without another request, and returns unspent units', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { limiter, plain } = scene(undefined, { clock: () => performance.now() })
    await times(8, limiter)
    expect(await usedOf(plain)).toBe(6 + 10)
    vi.advanceTimersByTime(99)
    expect(await usedOf(plain)).toBe(6 + 10)
    vi.advanceTimersByTime(1)
    expect(await usedOf(plain)).toBe(8)
    vi.advanceTimersByTime(200)
    // No key is hot any more, so there is no timer.
    expect(vi.getTimerCount()).toBe(0)
  })

  it("isn't extended once a key has cooled down: requests go to the store again", async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { behind, limiter } = scene(undefined, { clock: () => performance.now() })
    await times(8, limiter)
    vi.advanceTimersByTime(250)
    behind.ops.length = 0
    expect(sourcesOf(await times(5, limiter))).toEqual(Array(5).fill('store'))
    expect(leased(behind.ops)).toEqual([])
  })

  it('lasts for at most a tenth of the shortest window', async () => {
    const limits = [MINUTE, slidingWindow({ limit: 500, window: 300 })]
    const { clock, behind, limiter } = scene(limits)
    await times(8, limiter)
    expect(leased(behind.ops).map(({ leaseMs }) => leaseMs)).toEqual([30])
    clock.advance(29)
    expect((await limiter.consume('k')).source).toBe('lease')
    clock.advance(1)
    expect((await limiter.consume('k')).source).toBe('store')
  })

  it("isn't made for windows that are too short", async () => {
    const { behind, limiter } = scene([slidingWindow({ limit: 500, window: 19 })])
    await times(30, limiter)
    expect(leased(behind.ops)).toEqual([])
  })

  it('ends with the fixed window that was charged', async () => {
    const { clock, limiter, plain } = scene([fixedWindow({ limit: 100, window: 1000 })])
    clock.advance(970)
    await times(9, limiter)
    clock.advance(29)
    expect(await limiter.consume('k')).toMatchObject({ source: 'lease', resetAfterMs: 30 })
    clock.advance(1)
    expect(await limiter.consume('k')).toMatchObject({ source: 'store', atMs: START_MS + 1000 })
    expect(await usedOf(plain)).toBeLessThanOrEqual(11)
  })

  it('ends if the clock goes backwards', async () => {
    const own = new ManualClock()
    const { limiter, plain } = scene(undefined, { clock: own.now })
    await times(8, limiter)
    own.advance(-1)
    expect((await limiter.consume('k')).source).toBe('store')
    expect(await usedOf(plain)).toBe(8 + 10)
  })

  it("counts the latency of the store's answer as part of its lifetime", async () => {
    const { clock, far, limiter, plain } = scene()
    await times(6, limiter)
    far.isHolding = true
    const pending = [limiter.consume('k'), limiter.consume('k')]
    clock.advance(100)
    far.isHolding = false
    far.release()
    expect(sourcesOf(await Promise.all(pending))).toEqual(['store', 'store'])
    await settled()
    expect((await pending[1]!).atMs).toBe(START_MS + 100)
    expect(await usedOf(plain)).toBe(6 + 1 + 10)
  })
})

describe('while a lease is in flight', () => {
  it('requests wait for it, and are answered in order', async () => {
    const { far, behind, limiter } = scene([slidingWindow({ limit: 30, window: '1m' })])
    await times(6, limiter)
    far.isHolding = true
    const order: number[] = []
    const pending = Array.from({ length: 40 }, (_, i) =>
      limiter.consume('k').then((decision) => {
        order.push(i)
        return decision
      }),
    )
    expect(leased(behind.ops).map(({ count }) => count)).toEqual([1 + 6])
    far.isHolding = false
    far.release()
    const decisions = await Promise.all(pending)
    expect(order).toEqual(Array.from({ length: 40 }, (_, i) => i))
    expect(decisions.map(({ allowed }) => allowed)).toEqual(decisions.map((_, i) => i < 24))
    expect(sourcesOf(decisions.slice(0, 8))).toEqual(['store', ...Array(6).fill('lease'), 'store'])
  })

  it("requests that timed out are skipped, and aren't charged", async () => {
    const { far, behind, store, limiter, plain } = scene()
    await times(6, limiter)
    far.isHolding = true
    const first = limiter.consume('k')
    const given = [asking(store, behind.ops[0]!), asking(store, behind.ops[0]!)]
    const last = limiter.consume('k')
    for (const call of given) call.timeOut()
    far.isHolding = false
    far.release()
    expect([(await first).remaining, (await last).remaining]).toEqual([993, 992])
    await store.close()
    expect(await usedOf(plain)).toBe(8)
    expect(given.map(({ answers }) => answers)).toEqual([0, 0])
  })

  it('a lease is returned if all its waiters have timed out', async () => {
    const { far, behind, store, limiter, plain } = scene()
    await times(6, limiter)
    far.isHolding = true
    const given = asking(store, behind.ops[0]!)
    given.timeOut()
    // New requests don't wait for a lease whose waiters have all timed out.
    const next = limiter.consume('k')
    expect(leased(behind.ops).length).toBe(2)
    far.isHolding = false
    far.release()
    expect((await next).source).toBe('store')
    await store.close()
    expect(await usedOf(plain)).toBe(7)
    expect(given.answers).toBe(0)
  })

  it("requests don't wait forever for a lost answer", async () => {
    const { clock, behind, far, store, limiter } = scene()
    await times(6, limiter)
    far.isHolding = true
    asking(store, behind.ops[0]!).timeOut()
    far.isHolding = false
    expect((await limiter.consume('k')).allowed).toBe(true)
    // After a while, the store stops waiting for the answer and settles the call.
    const [lost] = far.waiting
    clock.advance(500)
    expect(lost!.isSettled).toBe(false)
    clock.advance(1)
    expect(lost!.isSettled).toBe(true)
  })

  it('an error goes to the request that caused the call, and requests behind it retry', async () => {
    const broken = { error: undefined as Error | undefined }
    const inner = memoryStore()
    const far = held({
      failurePolicy,
      apply(ops, call) {
        if (broken.error === undefined) inner.apply(ops, call)
        else call.reject(broken.error)
      },
      close() {},
    })
    const store = withLeases(far, { clock: new ManualClock().now })
    const limiter = createLimiter({ limits: [MINUTE], store, timeoutMs: 30_000 })
    await times(6, limiter)
    broken.error = new Error('down')
    far.isHolding = true
    const [first, second] = [limiter.consume('k'), limiter.consume('k')]
    broken.error = undefined
    far.isHolding = false
    far.release()
    await expect(first).rejects.toThrow('down')
    expect((await second).allowed).toBe(true)
  })
})

describe('a leased key', () => {
  it('drops its lease on a reset: its units are neither spent nor returned', async () => {
    const { behind, limiter, plain, store } = scene()
    await times(8, limiter)
    await limiter.reset('k')
    expect(await usedOf(plain)).toBe(0)
    await plain.consume('k', { cost: 20 })
    expect((await limiter.consume('k')).source).toBe('store')
    await store.close()
    expect(await usedOf(plain)).toBe(21)
    expect(behind.ops.filter(({ type }) => type === 'refund')).toEqual([])
  })

  it('drops a lease in flight on a reset, and requests that wait for it retry', async () => {
    const { far, limiter, plain, store } = scene()
    await times(6, limiter)
    far.isHolding = true
    const pending = [limiter.consume('k'), limiter.consume('k')]
    const reset = limiter.reset('k')
    far.isHolding = false
    far.release()
    await reset
    expect(sourcesOf(await Promise.all(pending))).toEqual(['store', 'store'])
    await store.close()
    expect(await usedOf(plain)).toBe(1)
  })

  it('answers a peek like the next request, and a peek spends nothing', async () => {
    const { limiter } = scene([slidingWindow({ limit: 16, window: '1m' })])
    await times(7, limiter)
    const [peeked, again] = [await limiter.peek('k'), await limiter.peek('k')]
    expect(peeked).toEqual(again)
    expect(peeked).toMatchObject({ allowed: true, source: 'lease', remaining: 9 })
    expect(await limiter.consume('k')).toMatchObject({ source: 'lease', remaining: 8 })
  })

  it('keeps its lease on a charge or a refund', async () => {
    const { limiter, plain, store } = scene()
    const [first] = await times(8, limiter)
    await limiter.charge('k', 5)
    await limiter.refund('k', first!)
    expect((await limiter.consume('k')).source).toBe('lease')
    await store.close()
    expect(await usedOf(plain)).toBe(9 + 5 - 1)
  })

  it('returns its leased units before a higher cost is denied', async () => {
    for (const isHot of [false, true]) {
      const { behind, limiter, plain } = scene([slidingWindow({ limit: 40, window: '1m' })])
      if (isHot) await times(6, limiter, 'k', 2)
      await times(isHot ? 8 : 20, limiter)
      const isHeld = await usedOf(plain)
      expect(isHeld).toBeGreaterThan(20)
      await plain.charge('k', 40 - isHeld)
      // The lease has enough units for this cost.
      const cost = isHot ? 2 : isHeld - 20
      expect((await plain.consume('k', { cost })).allowed).toBe(false)
      expect(await limiter.consume('k', { cost })).toMatchObject({ allowed: true, source: 'store' })
      expect(await limiter.consume('k', { cost: 30 })).toMatchObject({ allowed: false })
      expect(behind.ops.filter(({ type }) => type === 'refund').length).toBeGreaterThan(0)
    }
  })

  it('rejects a request if the store throws when the request is retried after a denial', async () => {
    const { now } = new ManualClock(START_MS)
    const inner = memoryStore({ clock: now })
    let throws = false
    const far: Store = {
      failurePolicy,
      apply(ops, call) {
        if (throws) throw new Error('down')
        throws = ops[0]!.type === 'refund'
        inner.apply(ops, call)
      },
      close() {},
    }
    const limits = [slidingWindow({ limit: 40, window: '1m' })]
    const limiter = createLimiter({ limits, store: withLeases(far, { clock: now }), timeoutMs: 30_000 })
    await times(20, limiter)
    await expect(limiter.consume('k', { cost: 30 })).rejects.toThrow('down')
    expect(throws).toBe(true)
  })

  it('sends ops with several keys or a count to the store', async () => {
    const { behind, limiter, store } = scene()
    await times(8, limiter)
    const [{ parts }] = consumed(behind.ops) as [ConsumeOp]
    const ops: ConsumeOp[] = [
      { type: 'consume', parts: [...parts, { ...parts[0]!, key: 'l' }], cost: 1, count: 1, leaseMs: 0 },
      { type: 'consume', parts, cost: 1, count: 3, leaseMs: 0 },
      { type: 'consume', parts, cost: 1, count: 1, leaseMs: 7 },
    ]
    for (const op of ops) {
      const outcomes = await new Promise((resolve, reject) => {
        store.apply([op], { isSettled: false, resolve, reject })
      })
      expect(outcomes).toMatchObject([{ source: 'store', admitted: op.count }])
      expect(behind.ops.at(-1)).toBe(op)
    }
  })
})

describe('leases and limits', () => {
  it('take at most a quarter of what remains per process', async () => {
    const limits = [slidingWindow({ limit: 100, window: '1m' }), slidingWindow({ limit: 60, window: '1h' })]
    const { behind, limiter } = scene(limits)
    expect((await times(60, limiter)).every(({ allowed }) => allowed)).toBe(true)
    let remaining = 60
    for (const { count } of consumed(behind.ops)) {
      expect(count - 1).toBeLessThanOrEqual(remaining / 4)
      remaining -= count
    }
    expect(leased(behind.ops).length).toBeGreaterThan(3)
  })

  it('evaluate a shadow limit at the time of the lease, and return its unspent units', async () => {
    const limits = [MINUTE, slidingWindow({ limit: 10, window: '1m', name: 'shadow', shadow: true })]
    const { limiter, plain, store } = scene(limits)
    const verdicts = (await times(14, limiter)).map(({ allowed, limits: [, shadow] }) => [
      allowed,
      shadow!.allowed,
    ])
    expect(verdicts).toEqual(Array.from({ length: 14 }, (_, i) => [true, i < 10]))
    await limiter.reset('k')
    const again = await times(8, limiter)
    expect(again.some(({ source }) => source === 'lease')).toBe(true)
    await store.close()
    const [enforced, shadow] = (await plain.peek('k')).limits
    expect([enforced!.remaining, shadow!.remaining]).toEqual([1000 - 8, 2])
  })

  it('cover at most maxKeys keys', async () => {
    const { behind, limiter } = scene(undefined, { maxKeys: 2 })
    for (const key of ['a', 'b', 'c']) await times(20, limiter, key)
    expect(new Set(leased(behind.ops).map(({ parts }) => parts[0]!.key))).toEqual(new Set(['a', 'b']))
  })

  it('reject requests of a key when too many wait for its lease', async () => {
    const { far, behind, limiter, store } = scene()
    await times(6, limiter)
    far.isHolding = true
    const [op] = behind.ops as [Op]
    // A key can take a quarter of the room that is left of 65,536 places. One more request was already sent.
    const waiting = Array.from({ length: 13_108 + 1 }, () => asking(store, op))
    await expect(limiter.consume('k')).rejects.toMatchObject({ reason: 'overload' })
    expect(waiting.every(({ answers }) => answers === 0)).toBe(true)
    far.isHolding = false
    far.release()
    expect(waiting.every(({ answers }) => answers === 1)).toBe(true)
    expect((await limiter.consume('k')).allowed).toBe(false)
  })

  it.each([
    [{ leaseMs: 1 }],
    [{ leaseMs: 3001 }],
    [{ leaseMs: '1s' }],
    [{ maxKeys: 0 }],
    [{ clock: 5 }],
    [null],
  ])('reject the options %j', (options) => {
    expect(() => withLeases(memoryStore(), options as never)).toThrow(
      expect.objectContaining({ code: 'invalid_option' }),
    )
  })

  it("reject values that aren't a store", () => {
    expect(() => withLeases({} as never)).toThrow(expect.objectContaining({ code: 'invalid_option' }))
  })
})

it('leases work behind a deny cache', async () => {
  const clock = new ManualClock(START_MS)
  const behind = recorded(memoryStore({ clock: clock.now }))
  const store = withDenyCache(withLeases(behind, { clock: clock.now }), { clock: clock.now })
  const limiter = createLimiter({ limits: [slidingWindow({ limit: 100, window: '1m' })], store })
  const sources = sourcesOf(await times(2000, limiter))
  expect(sources.filter((source) => source === 'lease').length).toBeGreaterThan(50)
  expect(sources.slice(101)).toEqual(Array(1899).fill('denyCache'))
  clock.advance(60_100)
  expect((await limiter.consume('k')).allowed).toBe(true)
  await store.close()
  expect(await usedOf(limiter)).toBe(1)
})

it("leases create no timer in a request's async context, which the timer would keep alive", async () => {
  const store = withLeases(redisStore(redis, { prefix: 'slidegate:timers' }))
  const limiter = createLimiter({ limits: [MINUTE], store, timeoutMs: 30_000 })
  const context = new AsyncLocalStorage<object>()
  let timers = 0
  const hook = createHook({
    init(_id, type) {
      if (type === 'Timeout' && context.getStore() !== undefined) timers++
    },
  })
  hook.enable()
  await context.run({}, () => times(200, limiter))
  hook.disable()
  expect(timers).toBe(0)
  await store.close()
})
