import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  concurrency,
  createLimiter,
  distinct,
  memoryStore,
  slidingWindow,
  withDenyCache,
  withLeases,
} from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { type HeldStore, held, recorded } from './stores.ts'

// Tests requests with an id or value. No wrapper may answer one of them from the answer to another.

describe('an answer after the deadline', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** Makes a request whose answer is held back until after its deadline. */
  async function askTooLate(store: HeldStore, ask: () => Promise<unknown>): Promise<void> {
    store.isHolding = true
    const refused = expect(ask()).rejects.toMatchObject({ reason: 'timeout' })
    await vi.advanceTimersByTimeAsync(60)
    await refused
    store.isHolding = false
  }

  it('to a request with an id stays charged, and a retry returns the same decision', async () => {
    const store = held(memoryStore())
    const limits = [
      slidingWindow({ limit: 3, window: '1h', log: 'zset', name: 'once' }),
      slidingWindow({ limit: 3, window: '1h', name: 'other' }),
    ]
    const limiter = createLimiter({ limits, store })
    await askTooLate(store, () => limiter.consume('k', { requestId: 'payment-7' }))
    const again = await limiter.consume('k', { requestId: 'payment-7' })
    expect(again.limits.map(({ remaining }) => remaining)).toEqual([2, 2])
    store.release()
    await vi.advanceTimersByTimeAsync(1)
    expect((await limiter.peek('k')).limits.map(({ remaining }) => remaining)).toEqual([2, 2])
  })

  it('to a request without an id is refunded to all limits', async () => {
    const store = held(memoryStore())
    const limits = [
      slidingWindow({ limit: 3, window: '1h', log: 'zset', name: 'zset' }),
      slidingWindow({ limit: 3, window: '1h', log: 'stream', name: 'stream' }),
      slidingWindow({ limit: 3, window: '1h', name: 'packed' }),
      concurrency({ limit: 3, ttl: '1h', name: 'held' }),
    ]
    const limiter = createLimiter({ limits, store })
    await askTooLate(store, () => limiter.acquire('k'))
    expect((await limiter.peek('k')).remaining).toBe(2)
    store.release()
    await vi.advanceTimersByTimeAsync(1)
    expect((await limiter.peek('k')).limits.map(({ remaining }) => remaining)).toEqual([3, 3, 3, 3])
  })

  it.each(['allow', 'local'] as const)(
    'releases a slot if the request was allowed without the store, onStoreError: %s',
    async (onStoreError) => {
      const store = held(memoryStore())
      const limits = [
        concurrency({ limit: 3, ttl: '1h', name: 'held' }),
        slidingWindow({ limit: 3, window: '1h', name: 'hourly' }),
      ]
      const limiter = createLimiter({ limits, store, onStoreError, logger: false })
      store.isHolding = true
      const acquired = limiter.acquire('k')
      await vi.advanceTimersByTimeAsync(60)
      const permit = await acquired
      expect(permit.allowed).toBe(true)
      store.isHolding = false
      store.release()
      await vi.advanceTimersByTimeAsync(1)
      expect((await limiter.peek('k')).limits.map(({ remaining }) => remaining)).toEqual([3, 2])
      await permit.release()
      limiter.close()
    },
  )

  it('to a request with a value keeps the value', async () => {
    const store = held(memoryStore())
    const limiter = createLimiter({ limits: [distinct({ limit: 3, window: '1h' })], store })
    await askTooLate(store, () => limiter.consume('k', { value: 'a' }))
    store.release()
    await vi.advanceTimersByTimeAsync(1)
    expect((await limiter.peek('k', { value: 'b' })).remaining).toBe(2)
  })
})

it("a repeated request id with an old timestamp isn't a clock step", async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const clock = new ManualClock()
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 3, window: '1h', log: 'zset' })],
    store: held(memoryStore({ clock: clock.now })),
  })
  const steps: unknown[] = []
  limiter.on('clockStep', (step) => steps.push(step))
  for (let i = 0; i < 2; i++) await limiter.consume('k', { requestId: `${i}` })
  clock.advance(60_000)
  await limiter.consume('k')
  expect(steps).toHaveLength(1)
  expect((await limiter.consume('k', { requestId: '0' })).atMs).toBe(clock.now() - 60_000)
  await limiter.consume('k')
  expect(steps).toHaveLength(1)
})

describe('the deny cache', () => {
  it('calls the store for each value: a known one is admitted while a new one is denied', async () => {
    const store = withDenyCache(memoryStore())
    const limiter = createLimiter({ limits: [distinct({ limit: 1, window: '1h' })], store })
    await limiter.consume('k', { value: 'a' })
    for (let i = 0; i < 2; i++) {
      expect((await limiter.consume('k', { value: 'b' })).allowed).toBe(false)
      expect((await limiter.consume('k', { value: 'a' })).allowed).toBe(true)
    }
  })

  it('calls the store for each request id: an admitted one gets its first decision again', async () => {
    const store = withDenyCache(memoryStore())
    const limiter = createLimiter({ limits: [slidingWindow({ limit: 1, window: '1h', log: 'zset' })], store })
    await limiter.consume('k', { requestId: 'a' })
    for (let i = 0; i < 2; i++) {
      expect((await limiter.consume('k')).allowed).toBe(false)
      expect((await limiter.consume('k', { requestId: 'a' })).allowed).toBe(true)
    }
  })

  it('drops denials of a key when a slot is released, but not when it is renewed or listed', async () => {
    const store = withDenyCache(memoryStore(), { clock: new ManualClock().now })
    const held = createLimiter({ limits: [concurrency({ limit: 1, ttl: '1h' })], store })
    const window = createLimiter({ limits: [slidingWindow({ limit: 1, window: '1h' })], store })
    const permit = await held.acquire('k')
    await window.consume('k')
    const isCached = async () => {
      const { source } = await window.consume('k')
      return source === 'denyCache'
    }
    await isCached()
    expect(await isCached()).toBe(true)
    await permit.extend()
    await held.list('k')
    expect(await isCached()).toBe(true)
    await permit.release()
    expect(await isCached()).toBe(false)
  })
})

it('requests with ids, values or slots are never leased', async () => {
  const behind = recorded(memoryStore())
  const store = withLeases(behind)
  const make = (limits: Parameters<typeof createLimiter>[0]['limits'], name: string) =>
    createLimiter({ limits, store, name })
  const zset = make([slidingWindow({ limit: 500, window: '1h', log: 'zset' })], 'zset')
  const values = make([distinct({ limit: 500, window: '1h' })], 'values')
  const held = make([concurrency({ limit: 500, ttl: '1h' })], 'held')
  for (let i = 0; i < 50; i++) {
    const decisions = await Promise.all([
      zset.consume('k'),
      values.consume('k', { value: `${i}` }),
      held.consume('k', { requestId: `${i}` }),
    ])
    for (const { source, remaining } of decisions) expect([source, remaining]).toEqual(['store', 499 - i])
  }
  expect(behind.ops.every((op) => op.type === 'consume' && op.count === 1 && op.leaseMs === 0)).toBe(true)
  await store.close()
})
