import { createLimiter, failurePolicy, memoryStore, type Store, slidingWindow } from 'slidegate'
import { expect, it } from 'vitest'
import { OwnStores } from '../../src/service/stores.ts'

const consume = (store: Store, key: string) =>
  createLimiter({ name: 'own', store, limits: [slidingWindow({ limit: 9, window: '1h' })] }).consumeSync(key)

it('a limiter belongs to the longest pattern in memory, and all share one store in Redis', () => {
  const stores = new OwnStores(memoryStore(), undefined)
  const patterns = ['shop.checkout', 'shop.*', '*']
  const [checkout, shop, other] = ['shop.checkout', 'shop.cart', 'other'].map((name) =>
    stores.of(name, patterns),
  )
  expect(new Set([checkout, shop, other]).size).toBe(3)
  expect(stores.of('shop.list', patterns)).toBe(shop)
  const far: Store = { failurePolicy, apply: () => {}, close: () => {} }
  expect(new OwnStores(far, undefined).of('shop.cart', patterns)).toBe(far)
})

it('the store of a pattern lives as long as the pattern, and its evictions stay counted', () => {
  const stores = new OwnStores(memoryStore(), { maxKeys: 2 })
  const both = ['a.*', 'b.*']
  const before = stores.of('a.1', both)
  for (const key of ['x', 'y', 'z']) consume(before, key)
  consume(stores.of('b.1', both), 'x')
  expect(stores.stats()).toEqual({ keys: 3, evicted: 1 })
  // A reload passes a new array, even if its patterns are equal.
  for (const patterns of [['a.*'], ['a.*']]) {
    expect(stores.of('a.2', patterns)).toBe(before)
    expect(stores.stats()).toEqual({ keys: 2, evicted: 1 })
  }
  stores.of('c', ['c'])
  expect(stores.stats()).toEqual({ keys: 0, evicted: 1 })
})
