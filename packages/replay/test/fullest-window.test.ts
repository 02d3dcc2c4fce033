import fc from 'fast-check'
import { expect, it } from 'vitest'
import { FullestWindow } from '../src/counts/fullest-window.ts'
import { fullestByBruteForce } from './support/logs.ts'

function fullestOf(entries: readonly { key: string; timeMs: number }[], windowMs: number): number {
  const fullest = new FullestWindow(windowMs)
  for (const { key, timeMs } of entries) fullest.add(key, timeMs)
  return fullest.count
}

it('FullestWindow matches an exhaustive search of all windows', () => {
  const entry = fc.record({ key: fc.constantFrom('a', 'b', 'c'), timeMs: fc.nat(300) })
  fc.assert(
    fc.property(
      fc.array(entry, { maxLength: 150 }),
      fc.integer({ min: 1, max: 120 }),
      (entries, windowMs) => {
        const sorted = entries.toSorted((a, b) => a.timeMs - b.timeMs)
        expect(fullestOf(sorted, windowMs)).toBe(fullestByBruteForce(entries, windowMs))
      },
    ),
  )
})

it('FullestWindow treats windows as half-open: requests exactly one window apart never share one', () => {
  expect(
    fullestOf(
      [
        { key: 'a', timeMs: 0 },
        { key: 'a', timeMs: 1000 },
      ],
      1000,
    ),
  ).toBe(1)
  expect(
    fullestOf(
      [
        { key: 'a', timeMs: 0 },
        { key: 'a', timeMs: 999 },
      ],
      1000,
    ),
  ).toBe(2)
})

it('FullestWindow returns 0 without requests', () => {
  expect(fullestOf([], 1000)).toBe(0)
})

it('FullestWindow stays exact while idle keys are dropped', () => {
  const fullest = new FullestWindow(1000)
  for (let i = 0; i < 100_000; i++) fullest.add(`key ${i}`, i)
  fullest.add('key 99500', 100_000)
  expect(fullest.count).toBe(2)
})

it('FullestWindow drops the keys with the fewest units until it is half full', () => {
  const fullest = new FullestWindow(1_000_000, 1000)
  for (let i = 0; i < 5000; i++) {
    fullest.add(`once ${i}`, i)
    if (i % 10 === 0) fullest.add('often', i)
  }
  expect(fullest.count).toBe(500)
  expect(fullest.forgotten).toBeGreaterThan(4000)
  expect(fullest.forgotten).toBeLessThan(5000)
})

it('FullestWindow reuses the memory of expired entries', () => {
  const fullest = new FullestWindow(100, 1000)
  for (let i = 0; i < 20_000; i++) fullest.add(`key ${i % 7}`, i)
  expect([fullest.count, fullest.forgotten]).toEqual([15, 0])
})
