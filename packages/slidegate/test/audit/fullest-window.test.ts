import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fullestWindow } from './fullest-window.ts'

it('finds what trying every window finds', () => {
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
