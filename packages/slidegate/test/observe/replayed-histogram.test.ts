import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Histogram } from '../../src/observe/metrics.ts'
import { ReplayedHistogram } from '../../src/observe/replayed-histogram.ts'
import { meterOf } from './sdk.ts'

const BOUNDS = [1, 5, 10, 100]

function replayed(unit = 1): {
  readonly counted: Histogram
  /** The histogram as the SDK collected it. */
  told(): Promise<{ counts: number[]; sum: number }>
} {
  const { meter, collect } = meterOf()
  const counted = new Histogram(BOUNDS)
  const advice = { explicitBucketBoundaries: BOUNDS.map((bound) => bound / unit) }
  const replay = new ReplayedHistogram(
    meter.createHistogram('slidegate.rate_limiting.h', { advice }),
    { a: 'b' },
    unit,
  )
  return {
    counted,
    async told() {
      replay.record(counted.read())
      const { buckets, sum } = (await collect()).histogram('h', { a: 'b' })
      return { counts: buckets.counts, sum: sum! }
    },
  }
}

describe('a collection', () => {
  it('records the counts and the sum, whether there are one or many collections', async () => {
    const values = fc.array(fc.double({ min: 0.001, max: 100, noNaN: true }), { minLength: 1, maxLength: 50 })
    await fc.assert(
      fc.asyncProperty(fc.array(values, { minLength: 1, maxLength: 5 }), async (rounds) => {
        const { counted, told } = replayed()
        for (const round of rounds) {
          for (const value of round) counted.observe(value)
          const { counts, sum } = counted.read()
          const collected = await told()
          expect(collected.counts).toEqual(counts)
          // A value at the lower bound of its bucket is moved up by a thousandth.
          expect(Math.abs(collected.sum - sum)).toBeLessThanOrEqual(0.001 * 90 * rounds.flat().length)
        }
      }),
    )
  })

  it.each([1, 1000])('keeps values at the bounds in their buckets, in a unit of %i', async (unit) => {
    const { counted, told } = replayed(unit)
    for (const value of [1, 1, 5, 10, 10, 10, 100]) counted.observe(value)
    expect(await told()).toEqual({ counts: [2, 1, 3, 1, 0], sum: expect.closeTo(137 / unit) })
  })

  it('keeps values above all bounds and their sum', async () => {
    const { counted, told } = replayed()
    for (const value of [3, 200, 400]) counted.observe(value)
    expect(await told()).toEqual({ counts: [0, 1, 0, 0, 2], sum: expect.closeTo(603) })
  })

  it('records the right buckets if the sum is too large to show the added values', async () => {
    const { counted, told } = replayed()
    counted.observe(2 ** 60)
    await told()
    counted.observe(3)
    expect((await told()).counts).toEqual([0, 1, 0, 0, 1])
  })

  it('records nothing if there is nothing new', async () => {
    const { counted, told } = replayed()
    counted.observe(3)
    const first = await told()
    expect(await told()).toEqual(first)
  })

  it('records 1,000 values in the same proportions if there are more, and carries the rest over', async () => {
    const { counted, told } = replayed()
    let last: number[] = [0, 0, 0, 0, 0]
    for (let round = 1; round <= 10; round++) {
      for (let i = 0; i < 9_975; i++) counted.observe(i < 7_500 ? 3 : 7)
      // One value in four hundred adds a quarter of a value per round, which rounding would lose.
      for (let i = 0; i < 25; i++) counted.observe(50)
      const { counts } = await told()
      const added = counts.map((count, i) => count - last[i]!)
      expect(added.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(998)
      expect(added.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(1002)
      last = counts
    }
    expect(last.map((count) => Math.round(count / 10))).toEqual([0, 750, 248, 3, 0])
    expect(Math.abs(last[3]! - 25)).toBeLessThanOrEqual(1)
  })
})
