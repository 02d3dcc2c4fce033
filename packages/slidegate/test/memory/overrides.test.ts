import { describe, expect, it } from 'vitest'
import {
  createLimiter,
  type MemoryStoreOptions,
  memoryStore,
  type Override,
  SlidegateError,
  slidingWindow,
} from '../../src/index.ts'
import { limitSet, withOverrides } from '../../src/limits/limit-set.ts'
import { FOREVER } from '../../src/limits/override.ts'
import { KeyTable } from '../../src/stores/memory/key-table.ts'
import { MemoryOps } from '../../src/stores/memory/memory-ops.ts'
import type { Op, OverrideOp, OverridesOutcome } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'

const HOUR_MS = 3_600_000
const FULL = { name: 'StoreUnavailableError', reason: 'full' }

function table(options: MemoryStoreOptions, units = 1) {
  const clock = new ManualClock()
  const store = memoryStore({ clock: clock.now, ...options })
  const limits = [slidingWindow({ limit: units, window: '1m', name: 'minute' })]
  const limiter = createLimiter({ limits, store, overrides: true })
  return { clock, store, limiter }
}

async function all(listed: AsyncIterable<Override>): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of listed) keys.push(key)
  return keys
}

describe('a memory store, in which overrides and keys share the places,', () => {
  it('evicts a key that has room for an override, but never an override for a key', async () => {
    const { store, limiter } = table({ maxKeys: 3 }, 2)
    for (const key of ['a', 'b', 'c']) limiter.consumeSync(key)
    await limiter.overrides.set('vip', { limit: 9 })
    expect(store.stats()).toEqual({ keys: 2, evicted: 1 })
    for (let i = 0; i < 100; i++) limiter.consumeSync(`k${i}`)
    expect(store.stats().keys).toBe(2)
    expect((await limiter.overrides.get('vip'))?.limits).toEqual({ minute: { limit: 9 } })
  })

  it('rejects an override if all places are taken by overrides and keys at their limits', async () => {
    const { limiter } = table({ maxKeys: 2, onFull: 'allow' })
    limiter.consumeSync('limited')
    await limiter.overrides.set('a', 'exempt')
    await expect(limiter.overrides.set('b', { limit: 9 })).rejects.toMatchObject(FULL)
    await expect(limiter.block('b', '1m')).rejects.toMatchObject(FULL)
    expect(await all(limiter.overrides.list())).toEqual(['a'])
    expect(limiter.consumeSync('limited').allowed).toBe(false)
  })

  it('changes and deletes an existing override even if it is full', async () => {
    const { limiter } = table({ maxKeys: 2 })
    limiter.consumeSync('limited')
    await limiter.overrides.set('a', 'exempt')
    await limiter.overrides.set('a', { limit: 9 })
    await limiter.block('a', '1m')
    await limiter.unblock('a')
    expect(await limiter.overrides.delete('a')).toBe(true)
    await limiter.overrides.set('b', 'block')
    expect(await limiter.isBlocked('b')).toBe(true)
  })

  it('uses no place to delete a missing override or unblock a key', async () => {
    const { store, limiter } = table({ maxKeys: 1 })
    limiter.consumeSync('limited')
    expect(await limiter.overrides.delete('a')).toBe(false)
    await limiter.unblock('a')
    expect(store.stats().keys).toBe(1)
  })

  it('applies onFull to new keys if overrides take all places', async () => {
    const { limiter } = table({ maxKeys: 2, onFull: 'deny' })
    await limiter.overrides.set('a', 'block')
    await limiter.overrides.set('b', 'block')
    expect(limiter.consumeSync('new')).toMatchObject({ allowed: false, source: 'failClosed' })
    await limiter.overrides.delete('a')
    expect(limiter.consumeSync('new')).toMatchObject({ allowed: true, source: 'store' })
  })
})

describe('expired overrides', () => {
  it('free their place for a new key or another override', async () => {
    const { clock, limiter } = table({ maxKeys: 2 })
    await limiter.overrides.set('a', { limit: 9 }, { ttl: '1m' })
    await limiter.block('b', '1m')
    expect(() => limiter.consumeSync('c')).toThrow(/full/)
    await expect(limiter.overrides.set('c', 'exempt')).rejects.toMatchObject(FULL)
    clock.advance(60_000)
    expect(limiter.consumeSync('c').allowed).toBe(true)
    await limiter.overrides.set('d', 'exempt')
    expect(await all(limiter.overrides.list())).toEqual(['d'])
  })

  it('free their place for a new one of the same key', async () => {
    const { clock, limiter } = table({ maxKeys: 1 })
    await limiter.block('a', '1m')
    clock.advance(60_000)
    await limiter.overrides.set('a', { limit: 9 })
    expect(await limiter.overrides.get('a')).toEqual({ key: 'a', limits: { minute: { limit: 9 } } })
  })

  it('apply again if the clock is set back, unless their place was needed', async () => {
    const { clock, limiter } = table({ maxKeys: 10 })
    await limiter.block('a', '1m')
    clock.advance(60_000)
    expect(await all(limiter.overrides.list())).toEqual([])
    for (let i = 0; i < 100; i++) limiter.consumeSync('a', { cost: 2 })
    clock.advance(-1)
    expect(await all(limiter.overrides.list())).toEqual(['a'])
  })
})

describe('maxOverrides', () => {
  it('bounds overrides and leaves room for keys', async () => {
    const { clock, limiter } = table({ maxOverrides: 3 })
    for (const key of ['a', 'b', 'c']) await limiter.overrides.set(key, 'exempt', { ttl: '1h' })
    await expect(limiter.overrides.set('d', 'exempt')).rejects.toMatchObject({
      ...FULL,
      message: expect.stringContaining('full of overrides (maximum: 3)'),
    })
    await limiter.overrides.set('a', 'block')
    expect(limiter.consumeSync('d').allowed).toBe(true)
    await limiter.overrides.delete('b')
    await limiter.overrides.set('d', 'exempt')
    clock.advance(HOUR_MS)
    await limiter.overrides.set('e', 'exempt')
  })

  it.each([0, -1, 1.5, '3', Number.NaN])('rejects %j', (maxOverrides) => {
    expect(() => memoryStore({ maxOverrides } as object)).toThrow(SlidegateError)
  })
})

describe('a page of overrides', () => {
  const set = withOverrides(limitSet('api', [slidingWindow({ limit: 1, window: '1m' })]))
  const fill = (count: number, more: (i: number) => Partial<OverrideOp>) => {
    const keys = new KeyTable(1_000_000, 0)
    const ops = new MemoryOps(keys, 'throw')
    for (let i = 0; i < count; i++) {
      const part = { key: `k${i}`, set }
      ops.apply({ type: 'override', parts: [part], blockMs: FOREVER, ...more(i) } as Op, 1)
    }
    const page = (after: string, nowMs: number) =>
      ops.apply({ type: 'overrides', parts: [{ key: '', set }], bucket: 0, after }, nowMs) as OverridesOutcome
    return { keys, ops, page }
  }

  it('reads at most 250 overrides, including expired ones', () => {
    const { keys, page } = fill(1000, (i) => ({ blockMs: i < 600 ? 10 : FOREVER }))
    const sizes: number[] = []
    for (let after: string | undefined = ''; after !== undefined; ) {
      const { overrides, next }: OverridesOutcome = page(after, 100)
      sizes.push(overrides.length)
      after = next
    }
    expect(sizes).toEqual([0, 0, 150, 250, 0])
    expect(keys.overrides.size).toBe(1000)
  })

  it('reads at most 64 KiB plus one override', () => {
    const { page } = fill(5, () => ({ given: ['x'.repeat(40_000)] }))
    const first = page('', 2)
    expect(first.overrides.map(({ key }) => key)).toEqual(['k0', 'k1'])
    expect(page(first.next!, 2).overrides.map(({ key }) => key)).toEqual(['k2', 'k3'])
  })

  it('continues after the last one, whatever is read in between', () => {
    const { page } = fill(600, () => ({}))
    const first = page('', 2)
    page('', 2)
    const second = page(first.next!, 2)
    expect(second.overrides.map(({ key }) => key)).toEqual(
      Array.from({ length: 250 }, (_, i) => `k${250 + i}`),
    )
    expect(page('nowhere', 2)).toEqual({ overrides: [], buckets: 1 })
  })
})

it('expired overrides are deleted during requests, and their bytes are no longer counted', () => {
  const set = withOverrides(limitSet('api', [slidingWindow({ limit: 1, window: '1m' })]))
  const keys = new KeyTable(1_000_000, 0)
  const ops = new MemoryOps(keys, 'throw')
  const write = (i: number, more: Partial<OverrideOp>, nowMs: number) =>
    ops.apply({ type: 'override', parts: [{ key: `k${i}`, set }], ...more } as Op, nowMs)
  for (let i = 0; i < 1000; i++) write(i, { blockMs: i % 10 === 0 ? FOREVER : 10 }, 1)
  for (let i = 0; i < 1000; i++) write(i, { rule: 'exempt', ruleMs: 5, given: ['x'.repeat(i)] }, 2)
  expect([keys.overrides.size, keys.overrides.bytes > 700_000]).toEqual([1000, true])
  for (let i = 0; i < 2000; i++) keys.sweep(100)
  expect(keys.overrides.size).toBe(100)
  for (let i = 0; i < 1000; i += 10) write(i, { rule: '', ruleMs: 0, blockMs: 0 }, 100)
  expect([keys.overrides.size, keys.overrides.bytes]).toEqual([0, 0])
})

it('an override needs a place, however it is written', () => {
  const set = withOverrides(limitSet('api', []))
  const ops = new MemoryOps(new KeyTable(2, 0), 'throw')
  const write = (key: string, more: Partial<OverrideOp>) =>
    ops.apply({ type: 'override', parts: [{ key, set }], ...more } as Op, 1)
  write('a', { rule: 'exempt', ruleMs: FOREVER, blockMs: 0 })
  write('b', { blockMs: 10 })
  for (const more of [
    { rule: 'exempt', ruleMs: 5, blockMs: 0 },
    { rule: '', ruleMs: 0, blockMs: 5 },
  ]) {
    expect(() => write('c', more)).toThrow(expect.objectContaining(FULL))
  }
  expect(() => write('c', { rule: '', ruleMs: 0 })).not.toThrow()
})
