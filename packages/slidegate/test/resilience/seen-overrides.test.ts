// tier: integration
import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  type Limiter,
  memoryStore,
  type OnStoreError,
  slidingWindow,
  withDenyCache,
} from '../../src/index.ts'
import { FAILURES, type FailingStore, failing } from './failing-store.ts'

interface Scene {
  readonly limiter: Limiter
  /** A limiter of another process on the same store, which doesn't fail. */
  readonly other: Limiter
  readonly store: FailingStore
}

function scene(onStoreError: OnStoreError): Scene {
  const memory = memoryStore()
  const store = failing(memory)
  const options = {
    ...{ limits: [slidingWindow({ limit: 4, window: '1h', name: 'hourly' })], overrides: true },
    ...{ breaker: { minRequests: 2 ** 20 }, logger: false as const },
  }
  return {
    limiter: createLimiter({ ...options, store, onStoreError, instances: 2 }),
    other: createLimiter({ ...options, store: memory }),
    store,
  }
}

describe('while the store is down', () => {
  it('an override that was seen recently is divided between instances', async () => {
    const { limiter, other, store } = scene('local')
    await other.overrides.set('k', { limit: 8 })
    await limiter.peek('k')
    store.failure = FAILURES.rejects
    const decisions = []
    for (let i = 0; i < 5; i++) decisions.push(await limiter.consume('k'))
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, true, false])
    expect(decisions[0]).toMatchObject({ source: 'fallback', remaining: 3, limits: [{ limit: 8 }] })
    expect(await limiter.consume('unseen')).toMatchObject({ remaining: 1, limits: [{ limit: 4 }] })
  })

  it.each<OnStoreError>(['local', 'allow', 'deny'])(
    'a key that was seen blocked stays blocked, onStoreError: %s',
    async (onStoreError) => {
      const { limiter, other, store } = scene(onStoreError)
      await other.block('k', '1h')
      await limiter.consume('k')
      await other.block('unseen', '1h')
      store.failure = FAILURES.rejects
      const blocked = await limiter.consume('k')
      expect(blocked).toMatchObject({ allowed: false, source: 'failClosed', deniedBy: ['block'] })
      expect(blocked.retryAfterMs).toBeGreaterThan(3_500_000)
      expect((await limiter.consume('unseen')).allowed).toBe(onStoreError !== 'deny')
    },
  )

  it('an exempt key is allowed, and a deleted override is forgotten', async () => {
    const { limiter, other, store } = scene('local')
    await other.overrides.set('k', 'exempt')
    await limiter.peek('k')
    store.failure = FAILURES.rejects
    for (let i = 0; i < 5; i++) expect((await limiter.consume('k')).allowed).toBe(true)
    store.failure = undefined
    await other.overrides.delete('k')
    await limiter.peek('k')
    store.failure = FAILURES.rejects
    expect((await limiter.consume('k')).limits[0]).toMatchObject({ shadow: false, limit: 4 })
  })

  it('units used while exempt count after the exemption ends, and can be refunded', async () => {
    const { limiter, other, store } = scene('local')
    await other.overrides.set('k', 'exempt', { ttl: 100 })
    await limiter.peek('k')
    store.failure = FAILURES.rejects
    const decision = await limiter.consume('k', { cost: 2 })
    expect(decision).toMatchObject({ source: 'fallback', limits: [{ shadow: true, remaining: 0 }] })
    expect((await limiter.consume('k')).allowed).toBe(true)
    await expect.poll(async () => (await limiter.peek('k')).allowed).toBe(false)
    expect(await limiter.refund('k', decision)).toBe(2)
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  it('a block ends on time', async () => {
    const { limiter, other, store } = scene('allow')
    await other.block('k', 10)
    await limiter.consume('k')
    store.failure = FAILURES.rejects
    await expect.poll(async () => (await limiter.consume('k')).allowed).toBe(true)
  })
})

it('the deny cache honors an override or block that this process sets, immediately', async () => {
  const limits = [slidingWindow({ limit: 1, window: '1h', name: 'hourly' })]
  const store = withDenyCache(failing(memoryStore()))
  const limiter = createLimiter({ limits, store, overrides: true })
  await limiter.consume('k')
  await limiter.consume('k')
  expect((await limiter.consume('k')).source).toBe('denyCache')
  await limiter.overrides.set('k', { limit: 2 })
  expect((await limiter.consume('k')).allowed).toBe(true)
  expect((await limiter.consume('k')).limits[0]!.limit).toBe(2)
  expect(await limiter.consume('k')).toMatchObject({ source: 'denyCache', limits: [{ limit: 2 }] })
  await limiter.block('k', '1h')
  expect((await limiter.consume('k')).deniedBy).toEqual(['block', 'hourly'])
  const held = await limiter.consume('k')
  expect(held).toMatchObject({ source: 'denyCache', deniedBy: ['block', 'hourly'] })
  await limiter.unblock('k')
  expect((await limiter.consume('k')).deniedBy).toEqual(['hourly'])
})
