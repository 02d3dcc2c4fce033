import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Histogram } from '../../src/observe/metrics.ts'
import { errorOf } from '../input/refusal.ts'

it('a value equal to a bound counts in the bucket below it', () => {
  const histogram = new Histogram([1, 2.5, 10])
  for (const value of [0, 1, 1.001, 2.5, 10, 10.5, 1000]) histogram.observe(value)
  expect(histogram.read()).toEqual({ bounds: [1, 2.5, 10], counts: [2, 2, 1, 2], sum: 1025.001 })
})

it('every value counts once, in the first bucket that it fits', () => {
  const numbers = fc.double({ noNaN: true, min: -1e6, max: 1e6 })
  const ascending = fc
    .uniqueArray(numbers, { maxLength: 20, comparator: 'SameValueZero' })
    .map((bounds) => bounds.sort((a, b) => a - b))
  fc.assert(
    fc.property(ascending, fc.array(numbers), (bounds, values) => {
      const histogram = new Histogram(bounds)
      for (const value of values) histogram.observe(value)
      const { counts } = histogram.read()
      const edges = [Number.NEGATIVE_INFINITY, ...bounds, Number.POSITIVE_INFINITY]
      const expected = edges.slice(1).map((to, i) => values.filter((v) => v > edges[i]! && v <= to).length)
      expect(counts).toEqual(expected)
    }),
  )
})

it('read returns a copy, and so are the bounds', () => {
  const bounds = [1]
  const histogram = new Histogram(bounds)
  const before = histogram.read()
  bounds[0] = 5
  histogram.observe(3)
  expect(before).toEqual({ bounds: [1], counts: [0, 0], sum: 0 })
  expect(histogram.read()).toEqual({ bounds: [1], counts: [0, 1], sum: 3 })
})

it.each([[[2, 1]], [[1, 1]], [[Number.NaN]], [[1, Number.POSITIVE_INFINITY]], [undefined], ['12']])(
  'bounds %j are rejected',
  async (bounds) => {
    expect(await errorOf(() => new Histogram(bounds as number[]))).toMatchObject({ code: 'invalid_option' })
  },
)
