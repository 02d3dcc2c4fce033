import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fullestWindow, medianMsFor } from './fullest-window.ts'

it('fullestWindow finds the same maximum as trying every window', () => {
  const admission = fc.record({ atMs: fc.nat(60), cost: fc.integer({ min: 1, max: 3 }) })
  fc.assert(
    fc.property(fc.array(admission), fc.integer({ min: 1, max: 30 }), (admissions, windowMs) => {
      let fullest = 0
      for (let from = -windowMs; from <= 60; from++) {
        const within = admissions.filter(({ atMs }) => atMs >= from && atMs < from + windowMs)
        fullest = Math.max(
          fullest,
          within.reduce((units, { cost }) => units + cost, 0),
        )
      }
      expect(fullestWindow(admissions, windowMs)).toBe(fullest)
    }),
  )
})

it('medianMsFor ignores a pause without admissions', () => {
  const steady = Array.from({ length: 40 }, (_, i) => ({ atMs: 10 * i, cost: 2 }))
  expect(medianMsFor(steady, 10)).toBe(50)
  const paused = steady.map(({ atMs, cost }, i) => ({ atMs: i < 20 ? atMs : atMs + 5000, cost }))
  expect(medianMsFor(paused, 10)).toBe(50)
  expect(medianMsFor(steady, 100)).toBe(Number.POSITIVE_INFINITY)
})
