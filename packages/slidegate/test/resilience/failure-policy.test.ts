import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  createLimiter,
  type Decision,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type OnStoreError,
  SlidegateError,
  StoreUnavailableError,
  slidingWindow,
  withDenyCache,
  withLeases,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { errorOf } from '../input/refusal.ts'
import { FAILURES, type FailingStore, type Failure, failing } from './failing-store.ts'

const POLICIES: readonly OnStoreError[] = ['throw', 'deny', 'allow', 'local']
const TIMEOUT_MS = 50
/** A breaker that never opens, so that every request reaches the store. */
const UNBREAKABLE = { minRequests: 2 ** 20 }

const limits = [
  slidingWindow({ limit: 10, window: '1m', name: 'burst' }),
  slidingWindow({ limit: 4, window: '1m', name: 'tried', shadow: true }),
  slidingWindow({ limit: 30, window: '1h', name: 'hourly' }),
]

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const clock = new ManualClock()

function limiterOn(store: FailingStore, options: Partial<LimiterOptions>): Limiter {
  return createLimiter({ limits, store, breaker: UNBREAKABLE, logger: false, instances: 2, ...options })
}

function storeThat(failure?: Failure): FailingStore {
  return failing(memoryStore({ clock: clock.now }), failure)
}

/** Waits for a request while its deadline passes. */
async function settled<T>(request: Promise<T>): Promise<T> {
  const outcome = request.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  await vi.advanceTimersByTimeAsync(TIMEOUT_MS + 5)
  const result = await outcome
  if ('error' in result) throw result.error
  return result.value
}

const ways = Object.entries(FAILURES).flatMap(([name, failure]) =>
  POLICIES.map((policy) => [name, policy, failure as Failure] as const),
)

describe.each(ways)('with a store that %s, onStoreError: %s,', (_, onStoreError, failure) => {
  const source = { throw: undefined, deny: 'failClosed', allow: 'failOpen', local: 'fallback' }[onStoreError]
  const expected = {
    throw: undefined,
    deny: { allowed: false, remaining: 0, retryAfterMs: 100, resetAfterMs: 0, deniedBy: [] },
    allow: { allowed: true, remaining: 10, retryAfterMs: 0, resetAfterMs: 0, deniedBy: [] },
    // This process's share is half of each limit.
    local: { allowed: true, remaining: 4, retryAfterMs: 0, resetAfterMs: 3_600_000, deniedBy: [] },
  }[onStoreError]
  let store: FailingStore
  let limiter: Limiter
  beforeEach(() => {
    store = storeThat(failure)
    limiter = limiterOn(store, { onStoreError })
  })

  const isUnavailable = (error: unknown) => {
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ reason: failure.reason, code: 'store_unavailable' })
  }

  it('a request follows the policy', async () => {
    const request = settled(limiter.consume('k'))
    if (expected === undefined) return isUnavailable(await errorOf(() => request))
    expect(await request).toMatchObject({ source, cost: 1, ...expected })
    expect(store.asked).toMatchObject([{ type: 'consume' }])
  })

  it('a peek follows the policy', async () => {
    const request = settled(limiter.peek('k'))
    if (expected === undefined) return isUnavailable(await errorOf(() => request))
    const { remaining, resetAfterMs } =
      onStoreError === 'local' ? { remaining: 5, resetAfterMs: 0 } : expected
    expect(await request).toMatchObject({ source, ...expected, remaining, resetAfterMs })
  })

  it('a charge, refund or reset fails, whatever the policy', async () => {
    store.failure = undefined
    const decision = await limiter.consume('k')
    store.failure = failure
    isUnavailable(await errorOf(() => settled(limiter.charge('k', 2))))
    isUnavailable(await errorOf(() => settled(limiter.refund('k', decision))))
    isUnavailable(await errorOf(() => settled(limiter.reset('k'))))
    expect(store.asked.map(({ type }) => type)).toEqual(['consume', 'charge', 'refund', 'reset'])
  })

  it('requests use the store again once it recovers', async () => {
    await settled(limiter.consume('k')).catch(() => undefined)
    store.failure = undefined
    expect(await limiter.consume('k')).toMatchObject({ source: 'store', remaining: 9 })
  })
})

describe('the limits of a decision without the store', () => {
  const limitsOf = (decision: Decision) =>
    decision.limits.map(({ name, allowed, remaining, retryAfterMs, resetAfterMs }) => ({
      ...{ name, allowed, remaining, retryAfterMs, resetAfterMs },
    }))
  const untouched = [
    { name: 'burst', allowed: true, remaining: 10, retryAfterMs: 0, resetAfterMs: 0 },
    { name: 'tried', allowed: true, remaining: 4, retryAfterMs: 0, resetAfterMs: 0 },
    { name: 'hourly', allowed: true, remaining: 30, retryAfterMs: 0, resetAfterMs: 0 },
  ]

  it.each(['deny', 'allow'] as const)(
    "match the limiter's declaration, onStoreError: %s",
    async (onStoreError) => {
      const limiter = limiterOn(storeThat(FAILURES.rejects), { onStoreError })
      for (let i = 0; i < 20; i++) {
        const decision = await limiter.consume('k')
        expect(limitsOf(decision)).toEqual(untouched)
        expect(decision.atMs).toBe(Date.now())
      }
    },
  )

  it("reflect what is left of the local share, onStoreError: 'local'", async () => {
    const limiter = limiterOn(storeThat(FAILURES.rejects), { onStoreError: 'local' })
    expect(limitsOf(await limiter.consume('k', { cost: 2 }))).toEqual([
      { name: 'burst', allowed: true, remaining: 3, retryAfterMs: 0, resetAfterMs: 60_000 },
      { name: 'tried', allowed: true, remaining: 0, retryAfterMs: 0, resetAfterMs: 60_000 },
      { name: 'hourly', allowed: true, remaining: 13, retryAfterMs: 0, resetAfterMs: 3_600_000 },
    ])
  })

  it("a decision without the store can't be refunded, not even from the units of others", async () => {
    const store = failing(memoryStore({ clock: () => Date.now() }), FAILURES.rejects)
    const limiter = limiterOn(store, { onStoreError: 'allow' })
    const decision = await limiter.consume('k')
    store.failure = undefined
    await limiter.consume('k')
    expect(await limiter.refund('k', decision)).toBe(0)
    expect((await limiter.peek('k')).remaining).toBe(9)
  })
})

describe.each(["doesn't answer", 'is overloaded'] as const)('a crowded key on a store that %s', (how) => {
  /** Marks a key as crowded. */
  const crowdedBy = (store: FailingStore, key: string) => {
    store.isOverloaded = (op) => op.parts[0]!.key === key
    return store
  }
  const sourceOf = (request: Promise<Decision>) =>
    settled(request).then(
      ({ source }) => source,
      (error: StoreUnavailableError) => error.reason,
    )

  it.each(POLICIES)(
    'gets denied without affecting the breaker, and storeError is emitted, onStoreError: %s',
    async (onStoreError) => {
      const failure = FAILURES[how]
      const store = crowdedBy(storeThat(failure), 'hog')
      const limiter = limiterOn(store, { onStoreError, breaker: { minRequests: 1 } })
      let emitted = 0
      limiter.on('storeError', () => emitted++)
      for (let i = 0; i < 20; i++) {
        const expected = onStoreError === 'throw' ? failure.reason : 'failClosed'
        expect(await sourceOf(limiter.consume('hog'))).toBe(expected)
      }
      const { storeErrors, withoutStore, breakerOpened } = limiter.stats()
      expect([storeErrors[failure.reason], emitted, breakerOpened]).toEqual([20, 20, 0])
      expect(withoutStore.failClosed).toBe(onStoreError === 'throw' ? 0 : 20)
      expect(store.asked.length).toBe(20)
      store.failure = undefined
      expect(await sourceOf(limiter.consume('other'))).toBe('store')
    },
  )

  it('leaves other keys to the policy', async () => {
    const store = crowdedBy(storeThat(FAILURES[how]), 'hog')
    const limiter = limiterOn(store, { onStoreError: 'allow' })
    expect(await sourceOf(limiter.consume('other'))).toBe('failOpen')
  })

  it("doesn't use up the breaker's attempt", async () => {
    const store = crowdedBy(storeThat(FAILURES.rejects), 'hog')
    const limiter = limiterOn(store, {
      onStoreError: 'allow',
      breaker: { minRequests: 1, maxBackoffMs: 1000 },
    })
    await sourceOf(limiter.consume('other'))
    await vi.advanceTimersByTimeAsync(1000)
    store.failure = FAILURES[how]
    expect(await sourceOf(limiter.consume('hog'))).toBe('failClosed')
    store.failure = undefined
    expect(await sourceOf(limiter.consume('other'))).toBe('store')
    expect(limiter.stats().breakerOpened).toBe(1)
  })
})

describe('a denial without the store', () => {
  it('reports a finite wait of at least 100 ms, until the next attempt', async () => {
    const store = storeThat(FAILURES.rejects)
    const limiter = limiterOn(store, { onStoreError: 'deny', breaker: { maxBackoffMs: 3000 } })
    const waits = new Set<number>()
    for (let i = 0; i < 200; i++) {
      const { allowed, source, retryAfterMs } = await limiter.consume('k', { cost: 1 + (i % 3) })
      expect({ allowed, source }).toEqual({ allowed: false, source: 'failClosed' })
      expect(Number.isInteger(retryAfterMs)).toBe(true)
      expect(retryAfterMs).toBeGreaterThanOrEqual(100)
      expect(retryAfterMs).toBeLessThanOrEqual(3000)
      waits.add(retryAfterMs)
      await vi.advanceTimersByTimeAsync(50)
    }
    // Callers should wait for as long as the breaker is open.
    expect(Math.max(...waits)).toBeGreaterThan(1000)
    expect(store.asked.length).toBeLessThan(30)
  })
})

it.each(POLICIES)("a caller's mistake isn't an outage, onStoreError: %s", async (onStoreError) => {
  let timeMs = Number.NaN
  const client = { command: async () => [timeMs, 0, 1, 0, 0, 0] }
  const store = redisStore(client, { clock: () => timeMs })
  const limiter = createLimiter({ limits, store, onStoreError, logger: false, breaker: { minRequests: 1 } })
  const events: string[] = []
  limiter.on('storeError', () => events.push('storeError')).on('storeDown', () => events.push('storeDown'))
  for (const ask of [() => limiter.consume('k'), () => limiter.peek('k'), () => limiter.charge('k', 1)]) {
    expect(await errorOf(ask)).toMatchObject({ code: 'invalid_option' })
  }
  for (const [key, cost] of [['', 1] as const, ['k', 0] as const]) {
    expect(await errorOf(() => limiter.consume(key, { cost }))).toBeInstanceOf(SlidegateError)
  }
  expect(events).toEqual([])
  timeMs = 1
})

it("one unanswered request doesn't delay the deadline of another", async () => {
  const limiter = limiterOn(storeThat(FAILURES["doesn't answer"]), { onStoreError: 'deny' })
  const sources: string[] = []
  const ask = () => void limiter.consume('k').then(({ source }) => sources.push(source))
  ask()
  await vi.advanceTimersByTimeAsync(30)
  ask()
  await vi.advanceTimersByTimeAsync(15)
  expect(sources).toEqual([])
  await vi.advanceTimersByTimeAsync(10)
  expect(sources).toEqual(['failClosed'])
  await vi.advanceTimersByTimeAsync(20)
  expect(sources).toEqual(['failClosed'])
  await vi.advanceTimersByTimeAsync(10)
  expect(sources).toEqual(['failClosed', 'failClosed'])
})

describe('a full memory store', () => {
  const one = [slidingWindow({ limit: 1, window: '1m', name: 'one' })]
  const create = (onStoreError: OnStoreError) =>
    createLimiter({ limits: one, store: memoryStore({ maxKeys: 1, clock: clock.now }), onStoreError })
  const asking = {
    consume: (limiter: Limiter, key: string) => limiter.consume(key),
    consumeSync: async (limiter: Limiter, key: string) => limiter.consumeSync(key),
  }
  const cases = Object.entries(asking).flatMap(([name, ask]) =>
    POLICIES.map((policy) => [name, policy, ask] as const),
  )

  it.each(cases)('follows the policy for new keys: %s, %s', async (_, onStoreError, ask) => {
    const limiter = create(onStoreError)
    expect(await ask(limiter, 'a')).toMatchObject({ allowed: true, source: 'store' })
    const answer = await ask(limiter, 'b').catch((error: unknown) => error)
    expect(answer).toMatchObject(
      {
        throw: { reason: 'full' },
        deny: { allowed: false, source: 'failClosed', retryAfterMs: 100, remaining: 0, deniedBy: [] },
        allow: { allowed: true, source: 'failOpen', remaining: 1 },
        local: { allowed: true, source: 'fallback', remaining: 0 },
      }[onStoreError],
    )
    if (onStoreError === 'local') expect(await ask(limiter, 'b')).toMatchObject({ allowed: false })
    // Known keys are still decided by the store.
    expect(await ask(limiter, 'a')).toMatchObject({ allowed: false, source: 'store', deniedBy: ['one'] })
  })

  it.each(cases)('computes each denial for its own key and time: %s, %s', async (_, onStoreError, ask) => {
    const limiter = createLimiter({
      ...{ limits: one, store: memoryStore({ clock: clock.now }), onStoreError },
    })
    await ask(limiter, 'a')
    clock.advance(1000)
    await ask(limiter, 'b')
    expect((await ask(limiter, 'a')).retryAfterMs).toBe(59_000)
    expect((await ask(limiter, 'b')).retryAfterMs).toBe(60_000)
    clock.advance(500)
    expect(await ask(limiter, 'b')).toMatchObject({ retryAfterMs: 59_500, atMs: clock.now() })
  })

  it.each(POLICIES)(
    'rejects a charge to a new key, but refunds and resets known ones, onStoreError: %s',
    async (onStoreError) => {
      const limiter = create(onStoreError)
      const decision = await limiter.consume('a')
      expect(await errorOf(() => limiter.charge('b', 1))).toMatchObject({ reason: 'full' })
      expect(await limiter.refund('a', decision)).toBe(1)
      await limiter.reset('a')
      expect(await limiter.peek('a')).toMatchObject({ allowed: true, source: 'store' })
    },
  )
})

describe('the deadline of a new store', () => {
  function startingStore() {
    let begin = () => {}
    const whenOver = new Promise<void>((resolve) => {
      begin = resolve
    })
    const store = storeThat(FAILURES["doesn't answer"])
    let isOver = false
    const connection = {
      whenStarted: () => (isOver ? undefined : whenOver),
      diagnose: () => ({ message: 'no connection to Redis at redis:6379', cause: new Error('refused') }),
    }
    const start = () => {
      isOver = true
      begin()
    }
    return { store: Object.assign(store, { connection }), start }
  }

  it('starts with its first connection', async () => {
    const { store, start } = startingStore()
    const limiter = limiterOn(store, { name: 'api' })
    let error: unknown
    limiter.consume('k').catch((reason: unknown) => {
      error = reason
    })
    await vi.advanceTimersByTimeAsync(1900)
    expect(error).toBeUndefined()
    start()
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS - 5)
    expect(error).toBeUndefined()
    await vi.advanceTimersByTimeAsync(10)
    expect(error).toMatchObject({
      reason: 'timeout',
      message: 'limiter "api": no connection to Redis at redis:6379 (refused)',
      cause: { message: 'refused' },
    })
  })

  it('starts with its first connection through wrappers too', async () => {
    const { store, start } = startingStore()
    const requests = [withDenyCache(store), withLeases(store)].map((wrapped) =>
      createLimiter({ limits, store: wrapped, logger: false })
        .consume('k')
        .catch((error: unknown) => error),
    )
    await vi.advanceTimersByTimeAsync(1000)
    start()
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS + 5)
    for (const request of requests) expect(await request).toMatchObject({ cause: { message: 'refused' } })
  })
})
