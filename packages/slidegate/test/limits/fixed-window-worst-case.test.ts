import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimiter, fixedWindow, memoryStore } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { fullestWindow } from '../processes/fullest-window.ts'
import { admissionsOf, steps } from './admissions.ts'

const numbers = fc.record({
  limit: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 2 ** 40 })),
  window: fc.oneof(fc.integer({ min: 10, max: 60 }), fc.integer({ min: 10, max: 366 * 86_400_000 })),
})

describe('a fixed window admits up to twice its limit within one window length', () => {
  it('as a full limit on each side of an edge, a millisecond apart', () => {
    fc.assert(
      fc.property(numbers, ({ limit, window }) => {
        const clock = new ManualClock(Math.ceil(1_700_000_000_000 / window) * window - 1)
        const store = memoryStore({ clock: clock.now })
        const limiter = createLimiter({ limits: [fixedWindow({ limit, window })], store })
        expect(limiter.consumeSync('k', { cost: limit }).remaining).toBe(0)
        clock.advance(1)
        expect(limiter.consumeSync('k', { cost: limit }).remaining).toBe(0)
        clock.advance(window - 1)
        expect(limiter.consumeSync('k').retryAfterMs).toBe(1)
      }),
    )
  })

  it('and never more, for any requests and refunds', async () => {
    let fullest = 0
    await fc.assert(
      fc.asyncProperty(numbers, steps, async ({ limit, window }, course) => {
        const admissions = await admissionsOf(fixedWindow({ limit, window }), window, course)
        const units = fullestWindow(admissions, window)
        expect(units).toBeLessThanOrEqual(2 * limit)
        fullest = Math.max(fullest, units / limit)
      }),
      { numRuns: 1000 },
    )
    expect(fullest, 'the requests come close to it').toBeGreaterThan(1.9)
  })
})
