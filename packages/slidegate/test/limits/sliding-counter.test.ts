import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimiter, type Limiter, memoryStore, slidingCounter } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { type Admission, fullestWindow } from '../processes/fullest-window.ts'
import { admissionsOf, steps, waitsChecked } from './admissions.ts'

interface Numbers {
  readonly limit: number
  readonly window: number
}

const year = 366 * 86_400_000
const small: fc.Arbitrary<Numbers> = fc.record({
  limit: fc.integer({ min: 1, max: 12 }),
  window: fc.integer({ min: 10, max: 60 }),
})
const any: fc.Arbitrary<Numbers> = fc.record({
  limit: fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 2 ** 40 })),
  window: fc.oneof(fc.integer({ min: 10, max: 10_000 }), fc.integer({ min: 10, max: year })),
})

function limiterOf(numbers: Numbers, clock: ManualClock): Limiter {
  return createLimiter({ limits: [slidingCounter(numbers)], store: memoryStore({ clock: clock.now }) })
}

/** Uses up the limit at a window's end, and again one window length later. */
function acrossAnEdge({ limit, window }: Numbers): Admission[] {
  const startMs = Math.ceil(1_700_000_000_000 / window) * window
  const clock = new ManualClock(startMs + window - 1)
  const limiter = limiterOf({ limit, window }, clock)
  const admissions: Admission[] = []
  for (const ms of [window - 1, 0]) {
    const { remaining } = limiter.consumeSync('k', { cost: limit + 1 })
    if (remaining > 0 && limiter.consumeSync('k', { cost: remaining }).allowed) {
      admissions.push({ atMs: clock.now(), cost: remaining })
    }
    clock.advance(ms)
  }
  return admissions
}

describe('a sliding counter admits up to twice its limit minus one within one window length', () => {
  it('as in its documentation, with 100 per minute', () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1, 12))
    const at = (time: string) => clock.set(Date.parse(`2026-01-01T12:${time}Z`))
    const limiter = limiterOf({ limit: 100, window: 60_000 }, clock)
    const remaining = () => limiter.consumeSync('k', { cost: 101 }).remaining

    at('00:59.999')
    expect(limiter.consumeSync('k', { cost: 100 }).remaining).toBe(0)
    // The first 100 units count less and less.
    at('01:00.600')
    expect(remaining()).toBe(1)
    at('01:15.000')
    expect(remaining()).toBe(25)
    at('01:30.000')
    expect(remaining()).toBe(50)
    // They count at least 1 until the window ends.
    at('01:59.998')
    expect(limiter.consumeSync('k', { cost: 100 }).allowed).toBe(false)
    expect(limiter.consumeSync('k', { cost: 99 }).remaining).toBe(0)
    // Now 199 were admitted in the minute from 0:59.999 to 1:59.999.
    at('01:59.999')
    expect(remaining()).toBe(0)
    at('02:00.000')
    expect(remaining()).toBe(1)
  })

  it('and also denies requests that an exact count would admit', () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1, 12))
    const limiter = limiterOf({ limit: 100, window: 60_000 }, clock)
    limiter.consumeSync('k', { cost: 100 })
    clock.advance(90_000)
    expect(limiter.consumeSync('k', { cost: 101 }).remaining).toBe(50)
  })

  it('if the rest of the previous window counts no more than 1', () => {
    // Two milliseconds before the end, two grains are left.
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5000 }), fc.integer({ min: 0, max: 100_000 }), (limit, more) => {
        const window = Math.max(10, 2 * limit) + more
        expect(fullestWindow(acrossAnEdge({ limit, window }), window)).toBe(2 * limit - 1)
      }),
    )
  })

  it.each([
    ['small', small],
    ['of any size', any],
  ])('and never more, for any requests and refunds: %s', async (_, numbers) => {
    await fc.assert(
      fc.asyncProperty(numbers, steps, async ({ limit, window }, course) => {
        const admissions = await admissionsOf(slidingCounter({ limit, window }), window, course)
        expect(fullestWindow(admissions, window)).toBeLessThan(2 * limit)
        const edges = new Map<number, number>()
        for (const { atMs, cost } of admissions) {
          const edge = Math.floor(atMs / window)
          edges.set(edge, (edges.get(edge) ?? 0) + cost)
        }
        expect(Math.max(0, ...edges.values()), 'between two edges').toBeLessThanOrEqual(limit)
      }),
      { numRuns: 600 },
    )
  })
})

it('a sliding counter reports to the millisecond when a request fits', () => {
  let checked = 0
  fc.assert(
    fc.property(fc.oneof(small, any), steps, (numbers, course) => {
      const limit = slidingCounter(numbers)
      checked += waitsChecked(limit, limit.windowMs, course)
    }),
    { numRuns: 600 },
  )
  expect(checked).toBeGreaterThan(1000)
})

it('a sliding counter has the finest precision for which its arithmetic is exact', () => {
  const finest = (limit: number, window: number) => slidingCounter({ limit, window }).precisionMs
  expect(finest(2 ** 40, 4096)).toBe(1)
  expect(finest(2 ** 40, 4097)).toBe(2)
  expect(finest(2 ** 40, 8193)).toBe(5)
  expect(finest(2 ** 40, year)).toBe(10_000_000)
  expect(finest(100_000, year)).toBe(1)
})
