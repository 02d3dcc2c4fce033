import { describe, expect, it } from 'vitest'
import { createLimiter, distinct, memoryStore, slidingWindow } from '../../src/index.ts'
import { mapKey } from '../../src/runtime/hash.ts'
import { Slab } from '../../src/runtime/slab.ts'
import { UseOrder } from '../../src/stores/memory/use-order.ts'
import { ManualClock } from '../../src/testing/index.ts'

// An attacker can make all keys reach their limit, open, expire or collide at once. No single request may pay for all of them.
// These tests check the amount of work; `npm run flood` measures the time.

const KEYS = 6400

function storeOf(maxKeys: number) {
  const clock = new ManualClock()
  const store = memoryStore({ maxKeys, onFull: 'deny', clock: clock.now })
  return { clock, store }
}

describe('the search for room in a store full of keys at their limit', () => {
  const full = () => {
    const { clock, store } = storeOf(KEYS)
    const limiter = createLimiter({ limits: [slidingWindow({ limit: 2, window: '1h' })], store })
    for (let i = 0; i < KEYS - 1; i++) limiter.consumeSync(`limited${i}`, { cost: 2 })
    return { clock, store, limiter }
  }

  it('stops before all keys are checked and continues with the next request', () => {
    const { store, limiter } = full()
    limiter.consumeSync('not at its limit')
    const { allowed, source, retryAfterMs } = limiter.consumeSync('foreign')
    expect({ allowed, source, retryAfterMs }).toEqual({
      allowed: false,
      source: 'failClosed',
      retryAfterMs: 1,
    })
    let requests = 1
    while (!limiter.consumeSync('foreign').allowed) requests++
    expect(requests).toBeLessThanOrEqual(KEYS / 1024)
    expect(store.stats()).toEqual({ keys: KEYS, evicted: 1 })
    for (let i = 0; i < KEYS - 1; i++) expect(limiter.consumeSync(`limited${i}`).allowed).toBe(false)
  })

  it('reports when the first key opens, once all keys are checked', () => {
    const { limiter } = full()
    limiter.consumeSync('the last', { cost: 2 })
    for (let i = 0; i < KEYS / 1024; i++) limiter.consumeSync(`foreign${i}`)
    expect(limiter.consumeSync('foreign')).toMatchObject({ source: 'failClosed', retryAfterMs: 3_600_000 })
  })

  it('checks fewer keys if each has more limits', () => {
    const { store } = storeOf(KEYS)
    // All limits share one log.
    const limits = Array.from({ length: 16 }, (_, i) =>
      slidingWindow({ limit: 2 + i, window: `${i + 1}h`, precision: '1s' }),
    )
    const limiter = createLimiter({ limits, store })
    for (let i = 0; i < 1000; i++) limiter.consumeSync(`limited${i}`, { cost: 2 })
    for (let i = 1000; i < KEYS; i++) limiter.consumeSync(`key${i}`)
    expect(limiter.consumeSync('foreign').allowed).toBe(false)
    for (let i = 0; i < 8; i++) limiter.consumeSync('foreign')
    expect(limiter.consumeSync('foreign').source).toBe('store')
  })
})

/** Returns the slots from 1 to `count`, used in order and parked. */
function parked(count: number, opensAtMs: (slot: number) => number) {
  const slab = new Slab(2)
  slab.create()
  const order = new UseOrder(slab)
  for (let i = 0; i < count; i++) order.use(slab.create())
  for (let slot = 1; slot <= count; slot++) {
    expect(order.oldest(0)).toBe(slot)
    order.park(slot, opensAtMs(slot))
  }
  return order
}

it('keys that all open at once are processed in batches', () => {
  // The least recently used slot is the last to open.
  const order = parked(1000, (slot) => 2000 - slot)
  expect(order.oldest(999)).toBe(0)
  expect(order.oldest(2000)).toBe(1000 - 255)
  expect(order.oldest(2000)).toBe(1000 - 511)
  for (let i = 0; i < 2; i++) order.oldest(2000)
  expect(order.oldest(2000)).toBe(1)
})

it('parked keys can be used or deleted in any order', () => {
  const opensAtMs = (slot: number) => 1 + ((slot * 7919) % 1009)
  const order = parked(500, opensAtMs)
  for (let slot = 1; slot <= 500; slot += 3) order.use(slot)
  const left = Array.from({ length: 500 }, (_, i) => i + 1).filter((slot) => slot % 3 !== 1)
  for (const slot of left.toSorted((a, b) => opensAtMs(a) - opensAtMs(b))) {
    expect(order.opensAtMs).toBe(opensAtMs(slot))
    order.forget(slot)
  }
  expect([order.opensAtMs, order.oldest(0)]).toEqual([0, 1])
})

it('keys that may all have expired are checked in batches', () => {
  const { clock, store } = storeOf(KEYS)
  const limiter = createLimiter({ limits: [slidingWindow({ limit: 10, window: '1m' })], store })
  for (let i = 0; i < KEYS; i++) limiter.consumeSync(`key${i}`)
  clock.advance(50_000)
  // All keys except the last are charged, so they stay. The last is used but not charged.
  for (let i = 0; i < KEYS; i++) limiter.consumeSync(`key${i}`, { cost: i < KEYS - 1 ? 1 : 11 })
  clock.advance(11_000)
  // Each of 100 blocks of 64 keys could have an expired key, and only the last one does.
  limiter.consumeSync('foreign')
  expect(store.stats()).toEqual({ keys: KEYS, evicted: 1 })
  limiter.consumeSync('another')
  expect(store.stats()).toEqual({ keys: KEYS, evicted: 1 })
})

describe('numeric keys, whose hash is predictable in an unpatched V8,', () => {
  const INDEX = /^(0|[1-9][0-9]{0,9})$/
  const texts = [
    '0',
    '7',
    '42',
    '007',
    '4294967294',
    '4294967295',
    '9999999999',
    '12345678901',
    '#',
    '#7',
    '##7',
    '1.2',
    'a1',
  ]

  it("don't become integer keys in a map", () => {
    expect(texts.map(mapKey).filter((text) => INDEX.test(text))).toEqual([])
    // Only numbers are changed.
    expect(['a1', '1.2', '203.0.113.7', 'user:42'].map(mapKey)).toEqual([
      'a1',
      '1.2',
      '203.0.113.7',
      'user:42',
    ])
  })

  it('stay separate keys', () => {
    expect(new Set(texts.map(mapKey)).size).toBe(texts.length)
    const limiter = createLimiter({
      limits: [slidingWindow({ limit: 1, window: '1m' })],
      store: memoryStore(),
    })
    expect(texts.map((text) => limiter.consumeSync(text).allowed)).toEqual(texts.map(() => true))
    expect(texts.map((text) => limiter.consumeSync(text).allowed)).toEqual(texts.map(() => false))
  })

  it('also stay separate as values and ids, which are listed unchanged', async () => {
    const store = memoryStore()
    const values = createLimiter({ name: 'v', limits: [distinct({ limit: 100, window: '1m' })], store })
    const ids = createLimiter({
      name: 'i',
      limits: [slidingWindow({ limit: 100, window: '1m', log: 'zset' })],
      store,
    })
    for (const text of [...texts, ...texts]) {
      values.consumeSync('k', { value: text })
      ids.consumeSync('k', { requestId: text })
    }
    for (const limiter of [values, ids]) {
      const [{ entries } = { entries: [] }] = await limiter.list('k')
      expect(entries.map(({ name }) => name).toSorted()).toEqual(texts.toSorted())
    }
    const decision = ids.consumeSync('k', { requestId: '43' })
    expect(await ids.refund('k', decision)).toBe(1)
    expect((await ids.list('k'))[0]!.entries).toHaveLength(texts.length)
  })
})
