import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimiter, type Limit, memoryStore, tokenBucket } from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import type { ConsumeOutcome } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import type { Admission } from '../processes/fullest-window.ts'
import { admissionsOf, steps, waitsChecked } from './admissions.ts'

interface Rate {
  readonly capacity: number
  readonly refill: number
  readonly interval: number
}

/** Returns the most units that a bucket may admit in this many milliseconds. */
function mostIn(ms: number, { capacity, refill, interval }: Rate): bigint {
  return BigInt(capacity) + (BigInt(ms) * BigInt(refill)) / BigInt(interval)
}

/** Returns the first time span in which the admissions exceed the maximum. */
function excess(admissions: readonly Admission[], rate: Rate): string | undefined {
  for (const [first, { atMs: fromMs }] of admissions.entries()) {
    let units = 0n
    for (const { atMs, cost } of admissions.slice(first)) {
      units += BigInt(cost)
      const most = mostIn(atMs - fromMs, rate)
      if (units > most) return `${units} units in ${atMs - fromMs} ms, of at most ${most}`
    }
  }
  return undefined
}

const year = 366 * 86_400_000
const small: fc.Arbitrary<Rate> = fc.record({
  capacity: fc.integer({ min: 1, max: 12 }),
  refill: fc.integer({ min: 1, max: 12 }),
  interval: fc.integer({ min: 10, max: 60 }),
})
const any: fc.Arbitrary<Rate> = fc
  .record({
    capacity: fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 2 ** 40 })),
    refill: fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 2 ** 40 })),
    interval: fc.oneof(fc.integer({ min: 10, max: 5000 }), fc.integer({ min: 10, max: year })),
  })
  .filter((rate) => {
    try {
      return tokenBucket(rate).limit > 0
    } catch {
      return false
    }
  })

describe('in any time span, a token bucket admits its capacity and the refill', () => {
  // A bucket that becomes full between two milliseconds loses the rest of the refill. These buckets never do.
  it.each<Rate>([
    { capacity: 100, refill: 100, interval: 6000 },
    { capacity: 2, refill: 3, interval: 1000 },
    { capacity: 5, refill: 7, interval: 10 },
    { capacity: 40, refill: 1, interval: 250 },
    { capacity: 3, refill: 999, interval: 1000 },
  ])('exactly, in time spans of every length: %j', (rate) => {
    const clock = new ManualClock()
    const store = memoryStore({ clock: clock.now })
    const limiter = createLimiter({ limits: [tokenBucket(rate)], store })
    let admitted = 0n
    for (let ms = 0; ms <= 3 * rate.interval; ms++) {
      while (limiter.consumeSync('k').allowed) admitted++
      assert.equal(admitted, mostIn(ms, rate), `after ${ms} ms`)
      clock.advance(1)
    }
  })

  it.each([
    ['small', small],
    ['of any size', any],
  ])('and never more, for any requests and refunds: %s', async (_, rates) => {
    await fc.assert(
      fc.asyncProperty(rates, steps, async (rate, course) => {
        const limit = tokenBucket(rate)
        expect(excess(await admissionsOf(limit, limit.windowMs, course), rate)).toBeUndefined()
      }),
      { numRuns: 600 },
    )
  })
})

it('a token bucket reports to the millisecond when a request fits', () => {
  let checked = 0
  fc.assert(
    fc.property(fc.oneof(small, any), steps, (rate, course) => {
      const limit = tokenBucket(rate)
      checked += waitsChecked(limit, limit.windowMs, course)
    }),
    { numRuns: 600 },
  )
  expect(checked).toBeGreaterThan(1000)
})

it('a token bucket reports its capacity as limit, and its fill time as window', () => {
  const { name, limit, windowMs, precisionMs } = tokenBucket({ capacity: 50, refill: 30, interval: '1m' })
  expect([name, limit, windowMs, precisionMs]).toEqual(['30-per-1m', 50, 100_000, 1])
  expect(tokenBucket({ capacity: 1, refill: 3, interval: '1s' }).windowMs).toBe(334)
  expect(tokenBucket({ capacity: 1, refill: 2 ** 40, interval: 10 }).windowMs).toBe(1)
  expect(tokenBucket({ capacity: 1, refill: 1, interval: '366d' }).windowMs).toBe(year)
})

describe('after endless charges', () => {
  async function debtOf(limit: Limit): Promise<number> {
    const parts = [{ key: 'k', set: limitSet('debts', [limit]) }]
    const store = memoryStore({ clock: new ManualClock().now })
    await outcomesOf(store, [{ type: 'charge', parts, units: Number.MAX_SAFE_INTEGER }])
    const [outcome] = await outcomesOf(store, [{ type: 'peek', parts, cost: 1, count: 1 }])
    return (outcome as ConsumeOutcome).limits[2]!
  }

  it('a token bucket is in debt for 366 days, or whole tokens less', async () => {
    expect(await debtOf(tokenBucket({ capacity: 1, refill: 1, interval: '100s' }))).toBe(year)
    const odd = 100_003
    expect(await debtOf(tokenBucket({ capacity: 1, refill: 1, interval: odd }))).toBe(year - (year % odd))
  })

  it('a share of a token bucket may be in debt for longer, because it has one token', async () => {
    const limit = tokenBucket({ capacity: 1000, refill: 1, interval: '7h' })
    expect(await debtOf(limit.kind.share!(limit, 2000))).toBe(2000 * 7 * 3_600_000)
  })
})
