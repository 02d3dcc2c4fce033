import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { BANDS, Callers } from '../src/counts/callers.ts'
import { OverTime, timeIn } from '../src/counts/over-time.ts'

describe('counts over time', () => {
  const T = Date.UTC(2026, 2, 9)

  it('assign each decision to its step, at any resolution', () => {
    const decision = fc.record({
      atMs: fc.oneof(fc.nat(5000), fc.nat(10_000_000), fc.nat(90 * 86_400_000)),
      within: fc.array(fc.nat(100), { minLength: 2, maxLength: 2 }),
      allowed: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(decision, { maxLength: 900 }), fc.integer({ min: 1, max: 200 }), (all, most) => {
        const overTime = new OverTime(2)
        for (const { atMs, within, allowed } of all) {
          if (allowed) overTime.admitted(T + atMs, within)
          else overTime.denied(T + atMs)
        }
        const { fromMs, stepMs, steps } = overTime.read(most)
        expect(steps.length).toBeLessThanOrEqual(most)
        expect(fromMs % stepMs).toBe(0)
        const expected = steps.map((_, i) => {
          const here = all.filter(({ atMs }) => Math.floor((T + atMs - fromMs) / stepMs) === i)
          const admitted = here.filter(({ allowed }) => allowed)
          return {
            admitted: admitted.length,
            denied: here.length - admitted.length,
            fullest: [0, 1].map((limit) => Math.max(0, ...admitted.map(({ within }) => within[limit]!))),
          }
        })
        expect(steps).toEqual(expected)
        expect(steps.reduce((sum, { admitted, denied }) => sum + admitted + denied, 0)).toBe(all.length)
      }),
      { numRuns: 60 },
    )
  })

  it('use bounded memory and few steps over a century', () => {
    const overTime = new OverTime(1)
    for (let day = 0; day < 36_500; day++) overTime.admitted(day * 86_400_000, [day])
    const { steps } = overTime.read(120)
    expect(steps.length).toBeGreaterThan(20)
    expect(steps.length).toBeLessThanOrEqual(120)
    expect(steps.at(-1)!.fullest).toEqual([36_499])
  })

  it('use fine steps for a short log', () => {
    const overTime = new OverTime(1)
    for (let i = 0; i < 100; i++) overTime.denied(T + i)
    expect(overTime.read(24)).toMatchObject({ fromMs: T, stepMs: 10, steps: { length: 10 } })
    expect(new OverTime(1).read(24).steps).toEqual([])
  })
})

describe('counts by caller', () => {
  it('group callers by the usage of their fullest window', () => {
    const callers = new Callers(1)
    const held = [0, 1, 99, 100, 250, 999, 1000, 1000, 1001, 1249, 1250, 1999, 2000, 5000]
    held.forEach((units, i) => {
      callers.admitted(`${i}`, [1])
      callers.admitted(`${i}`, [units])
    })
    const told = Object.fromEntries(
      BANDS.map(({ from, to }, i) => [`${from}-${to}`, callers.byBand(0, 1000)[i]]),
    )
    expect(told).toEqual({
      '0-10': 3,
      '10-25': 1,
      '25-50': 1,
      '50-75': 0,
      '75-90': 0,
      '90-100': 1,
      '100-100': 2,
      '100-125': 2,
      '125-150': 1,
      '150-200': 1,
      '200-Infinity': 2,
    })
  })

  it('only sum up the requests of callers above the capacity', () => {
    const callers = new Callers(1, 2)
    for (const key of ['a', 'b', 'c', 'a', 'c']) callers.admitted(key, [1])
    callers.denied('b')
    callers.denied('c')
    expect([callers.size, callers.deniedCount, callers.uncounted]).toEqual([2, 1, 3])
    expect(callers.get('b')).toEqual({ requests: 2, denied: 1, fullest: [1] })
  })
})

test('times are formatted as precisely as their steps', () => {
  const at = Date.UTC(2026, 2, 9, 7, 8, 9, 70)
  expect([10, 1000, 60_000, 86_400_000].map((stepMs) => timeIn(at, stepMs))).toEqual([
    '2026-03-09 07:08:09.070',
    '2026-03-09 07:08:09',
    '2026-03-09 07:08',
    '2026-03-09',
  ])
})
