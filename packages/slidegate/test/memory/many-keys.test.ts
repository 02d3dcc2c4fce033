// tier: system
import { expect, it } from 'vitest'
import { createLimiter, fixedWindow, memoryStore, slidingWindow } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'

// More keys than fit in one chunk of rows or one map.
const KEYS = 40_000

function table(limits = [slidingWindow({ limit: 3, window: '1m' })]) {
  const clock = new ManualClock()
  const store = memoryStore({ clock: clock.now })
  const limiter = createLimiter({ limits, store })
  /** Returns the distinct remaining units of the keys after one request each. */
  const left = (from: number, to: number, step = 1) => {
    const answers = new Set<number>()
    for (let i = from; i < to; i += step) answers.add(limiter.consumeSync(`key${i}`).remaining)
    return [...answers]
  }
  return { clock, store, limiter, left }
}

it('each of many keys has its own count', () => {
  const { store, left } = table()
  expect(left(0, KEYS)).toEqual([2])
  expect(left(0, KEYS)).toEqual([1])
  expect(left(0, KEYS)).toEqual([0])
  expect(store.stats().keys).toBe(KEYS)
})

it('each of many keys has its own logs', () => {
  const { clock, left } = table([
    slidingWindow({ limit: 3, window: '1m' }),
    slidingWindow({ limit: 5, window: '1h', precision: '1s' }),
    fixedWindow({ limit: 4, window: '1d' }),
  ])
  expect(left(0, KEYS)).toEqual([2])
  expect(left(0, KEYS)).toEqual([1])
  clock.advance(120_000)
  expect(left(0, KEYS)).toEqual([1])
  expect(left(0, KEYS)).toEqual([0])
})

it('freed rows are reused and empty', async () => {
  const { clock, store, limiter, left } = table()
  left(0, KEYS)
  for (let i = 0; i < KEYS; i += 2) await limiter.reset(`key${i}`)
  expect(store.stats().keys).toBe(KEYS / 2)
  expect(left(0, KEYS, 2)).toEqual([2])
  expect(left(1, KEYS, 2)).toEqual([1])
  expect(left(KEYS, 2 * KEYS)).toEqual([2])
  clock.advance(3_600_000)
  expect(left(0, KEYS)).toEqual([2])
})
