import { createLimiter, memoryStore, type Store, slidingWindow } from 'slidegate'
import { expect, it } from 'vitest'
import { OwnStores } from '../../src/service/own-stores.ts'

const consume = (store: Store, key: string) =>
  createLimiter({ name: 'own', store, limits: [slidingWindow({ limit: 1, window: '1h' })] }).consumeSync(key)

it('a limiter belongs to the longest pattern, and one store of Redis to all', () => {
  const stores = new OwnStores(memoryStore(), undefined)
  const patterns = ['shop.checkout', 'shop.*', '*']
  const [checkout, shop, other] = ['shop.checkout', 'shop.cart', 'other'].map((name) =>
    stores.of(name, patterns),
  )
  expect(new Set([checkout, shop, other]).size).toBe(3)
  expect(stores.of('shop.list', patterns)).toBe(shop)
  const far: Store = { apply: () => {}, close: () => {} }
  expect(new OwnStores(far, undefined).of('shop.cart', patterns)).toBe(far)
})

it('the store of a pattern stays while the pattern is there, and its evictions are counted longer', () => {
  const stores = new OwnStores(memoryStore(), { maxKeys: 2, onFull: 'allow' })
  const before = stores.of('a.1', ['a.*', 'b.*'])
  for (const key of ['x', 'y']) consume(before, key)
  consume(stores.of('b.1', ['a.*', 'b.*']), 'x')
  expect(stores.stats()).toEqual({ keys: 3, evicted: 0 })
  const after = ['a.*']
  expect(stores.of('a.2', after)).toBe(before)
  expect(stores.stats()).toEqual({ keys: 2, evicted: 0 })
  // A reload with the same patterns.
  expect(stores.of('a.2', ['a.*'])).toBe(before)
  const roomy = createLimiter({
    name: 'roomy',
    store: before,
    limits: [slidingWindow({ limit: 9, window: '1h' })],
  })
  for (const key of ['p', 'q', 'r']) roomy.consumeSync(key)
  const { evicted } = stores.stats()
  stores.of('c', ['c'])
  expect(stores.stats()).toEqual({ keys: 0, evicted })
})
