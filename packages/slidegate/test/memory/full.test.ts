import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  fixedWindow,
  type Limit,
  type Limiter,
  type MemoryStore,
  type MemoryStoreOptions,
  memoryStore,
  StoreUnavailableError,
  slidingWindow,
} from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'

interface Table {
  readonly clock: ManualClock
  readonly store: MemoryStore
  readonly limiter: Limiter
}

const oncePerMinute = [slidingWindow({ limit: 1, window: '1m' })]

function table(options: MemoryStoreOptions, limits: readonly Limit[] = oncePerMinute): Table {
  const clock = new ManualClock()
  const store = memoryStore({ clock: clock.now, ...options })
  return { clock, store, limiter: createLimiter({ limits, store }) }
}

function use(limiter: Limiter, ...keys: string[]): boolean[] {
  return keys.map((key) => limiter.consumeSync(key).allowed)
}

describe('a full table makes room', () => {
  it('by deleting expired keys', () => {
    const { clock, store, limiter } = table({ maxKeys: 3 })
    use(limiter, 'a', 'b', 'c')
    clock.advance(60_000)
    expect(use(limiter, 'd')).toEqual([true])
    expect(store.stats()).toEqual({ keys: 1, evicted: 0 })
  })

  it("then by evicting the least recently used key that isn't at its limit, and counts this", () => {
    const { store, limiter } = table({ maxKeys: 4 }, [slidingWindow({ limit: 2, window: '1m' })])
    use(limiter, 'limited', 'limited', 'old', 'older', 'new')
    use(limiter, 'old')
    // The least recently used key is at its limit. The next one is `older`.
    expect(use(limiter, 'foreign')).toEqual([true])
    expect(store.stats()).toEqual({ keys: 4, evicted: 1 })
    expect(use(limiter, 'limited', 'old')).toEqual([false, false])
    expect(limiter.consumeSync('new').remaining).toBe(0)
  })

  it('but never by evicting a key that is at one of its limits', () => {
    const { store, limiter } = table({ maxKeys: 10, onFull: 'deny' }, [
      slidingWindow({ limit: 3, window: '1h', name: 'sliding' }),
      fixedWindow({ limit: 2, window: '1d', name: 'fixed' }),
    ])
    use(limiter, 'limited', 'limited')
    for (let i = 0; i < 5000; i++) use(limiter, `foreign${i}`)
    expect(use(limiter, 'limited')).toEqual([false])
    expect(store.stats().keys).toBe(10)
  })

  it('even if a key is at a shadow limit', () => {
    const { limiter } = table({ maxKeys: 1 }, [
      slidingWindow({ limit: 5, window: '1h', name: 'enforced' }),
      slidingWindow({ limit: 1, window: '1h', name: 'shadow', shadow: true }),
    ])
    expect(use(limiter, 'a', 'a', 'b')).toEqual([true, true, true])
  })
})

describe('a table whose keys are all at their limit', () => {
  const full = (options: MemoryStoreOptions) => {
    const made = table({ maxKeys: 2, ...options })
    use(made.limiter, 'a')
    made.clock.advance(20_000)
    use(made.limiter, 'b')
    return made
  }

  it('throws for a new key by default', async () => {
    const { limiter, store } = full({})
    expect(() => limiter.consumeSync('new')).toThrow(StoreUnavailableError)
    await expect(limiter.consume('new')).rejects.toMatchObject({ reason: 'full' })
    await expect(limiter.charge('new', 1)).rejects.toMatchObject({ reason: 'full' })
    expect(use(limiter, 'a', 'b')).toEqual([false, false])
    expect(store.stats()).toEqual({ keys: 2, evicted: 0 })
  })

  it('denies a new key with `deny` until the first key opens, with source failClosed', () => {
    const { clock, limiter } = full({ onFull: 'deny' })
    const { allowed, source, retryAfterMs } = limiter.consumeSync('new')
    expect({ allowed, source, retryAfterMs }).toEqual({
      allowed: false,
      source: 'failClosed',
      retryAfterMs: 40_000,
    })
    clock.advance(39_999)
    expect(limiter.consumeSync('new').retryAfterMs).toBe(1)
    clock.advance(1)
    expect(limiter.consumeSync('new')).toMatchObject({ allowed: true, source: 'store' })
    expect(use(limiter, 'b')).toEqual([false])
  })

  it('admits a new key with `allow`, without counting it, with source failOpen', async () => {
    const { limiter, store } = full({ onFull: 'allow' })
    for (let i = 0; i < 3; i++) {
      expect(limiter.consumeSync('new')).toMatchObject({ allowed: true, source: 'failOpen', remaining: 1 })
    }
    const decision = limiter.consumeSync('new')
    expect(await limiter.refund('new', decision)).toBe(0)
    await limiter.charge('new', 1)
    expect(use(limiter, 'a', 'b')).toEqual([false, false])
    expect(store.stats()).toEqual({ keys: 2, evicted: 0 })
  })

  it('accepts a new key after a refund or a reset', async () => {
    const { limiter } = table({ maxKeys: 1 })
    const decision = limiter.consumeSync('a')
    expect(() => limiter.consumeSync('b')).toThrow(StoreUnavailableError)
    await limiter.refund('a', decision)
    expect(use(limiter, 'b')).toEqual([true])
    await limiter.reset('b')
    expect(use(limiter, 'c')).toEqual([true])
  })
})

it('only charged keys take room', async () => {
  const { limiter, store } = table({})
  const decision = limiter.consumeSync('a')
  await limiter.reset('a')
  for (let i = 0; i < 100; i++) {
    limiter.consumeSync(`${i}`, { cost: 2 })
    await limiter.peek(`${i}`)
    await limiter.reset(`unused${i}`)
  }
  await limiter.refund('a', decision)
  expect(store.stats().keys).toBe(0)
})

describe('a full table of a limiter with bans', () => {
  const hour = 3_600_000
  const banning = () => {
    const { clock, store } = table({ maxKeys: 50, onFull: 'deny' })
    const limits = [slidingWindow({ limit: 1, window: '1s' })]
    const ban = { after: 3, within: '1h', for: ['1m', '10m'], forgetAfter: '1h' } as const
    const limiter = createLimiter({ limits, ban, store })
    const flood = () => {
      for (let i = 0; i < 500; i++) limiter.consumeSync(`foreign${i}`)
    }
    /** Causes a denial, then a flood once the window is empty. Returns `blockedMs` of the denial. */
    const round = () => {
      use(limiter, 'attacker')
      const { blockedMs } = limiter.consumeSync('attacker')
      clock.advance(1000)
      flood()
      clock.advance(1000)
      return blockedMs
    }
    return { clock, limiter, flood, round }
  }

  it('keeps a key whose denials count toward a ban', () => {
    const { round } = banning()
    expect([round(), round(), round()]).toEqual([undefined, undefined, 60_000])
  })

  it('keeps a blocked key, and afterwards the length of its next ban', async () => {
    const { clock, limiter, flood } = banning()
    for (let i = 0; i < 4; i++) use(limiter, 'attacker')
    flood()
    expect(await limiter.isBlocked('attacker')).toBe(true)
    clock.advance(60_000)
    flood()
    for (let i = 0; i < 3; i++) use(limiter, 'attacker')
    expect(limiter.consumeSync('attacker').blockedMs).toBe(600_000)
  })

  it('denies new keys while it is full of keys with recent denials', () => {
    const { clock, limiter } = banning()
    for (let i = 0; i < 50; i++) use(limiter, `denied${i}`, `denied${i}`)
    clock.advance(1000)
    expect(limiter.consumeSync('newcomer')).toMatchObject({
      ...{ allowed: false, source: 'failClosed', retryAfterMs: hour - 1000 },
    })
    clock.advance(hour - 1000)
    expect(use(limiter, 'newcomer')).toEqual([true])
  })
})
