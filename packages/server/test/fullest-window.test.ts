import fc from 'fast-check'
import { expect, it } from 'vitest'
import { FullestWindow } from '../src/replay/fullest-window.ts'
import { fullestByBruteForce } from './support/logs.ts'

function fullestOf(entries: readonly { key: string; timeMs: number }[], windowMs: number): number {
  const fullest = new FullestWindow(windowMs)
  for (const { key, timeMs } of entries) fullest.add(key, timeMs)
  return fullest.count
}

it('is what looking at every window finds', () => {
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

it('is half-open: two requests a whole window apart are in different ones', () => {
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

it('of nothing is empty', () => {
  expect(fullestOf([], 1000)).toBe(0)
})

it('stays right while idle keys are forgotten', () => {
  const fullest = new FullestWindow(1000)
  for (let i = 0; i < 100_000; i++) fullest.add(`key ${i}`, i)
  fullest.add('key 99500', 100_000)
  expect(fullest.count).toBe(2)
})
