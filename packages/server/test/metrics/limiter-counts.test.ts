import type { LimiterStats } from 'slidegate'
import { expect, it } from 'vitest'
import { LimiterCounts } from '../../src/metrics/limiter-counts.ts'

/** Creates the state of a limiter. */
function limiter(name: string) {
  const stats = { storeErrors: { timeout: 0, down: 0 }, breakerOpened: 0, clockSteps: 0 }
  return { name, told: stats, stats: () => stats as unknown as LimiterStats }
}

function valuesOf(counts: LimiterCounts): Record<string, number> {
  const metrics = counts.metrics(() => undefined)
  return Object.fromEntries(
    metrics.flatMap(({ name, values }) =>
      values.map(({ labels, value }) => [[name, ...Object.values(labels)].join(' '), value]),
    ),
  )
}

it('counts of limiters with the same name add up and survive closing', () => {
  const counts = new LimiterCounts()
  const [first, second] = [limiter('api'), limiter('api')]
  const totals = () => {
    const values = valuesOf(counts)
    return [
      values['slidegate_store_errors_total api timeout'],
      values['slidegate_store_breaker_opened_total api'],
      values['slidegate_store_clock_steps_total api'],
    ]
  }
  counts.opened(first)
  expect(totals()).toEqual([0, 0, 0])
  first.told.storeErrors.timeout = 3
  first.told.breakerOpened = 1
  counts.opened(second)
  second.told.storeErrors.timeout = 2
  second.told.clockSteps = 1
  expect(totals()).toEqual([5, 1, 1])
  // The first limiter still had requests in flight when it was replaced.
  first.told.storeErrors.timeout = 4
  counts.closed(first)
  expect(totals()).toEqual([6, 1, 1])
  counts.closed(second)
  counts.closed(second)
  expect(totals()).toEqual([6, 1, 1])
})

it('a store stops being reported as down when no request has failed for a while', () => {
  let nowMs = 0
  const counts = new LimiterCounts(() => nowMs)
  const isDown = () => valuesOf(counts)['slidegate_store_down envoy.gate']
  counts.storeFailed('envoy.gate')
  expect(isDown()).toBe(0)
  counts.storeDown('envoy.gate')
  nowMs = 59_000
  expect(isDown()).toBe(1)
  counts.storeFailed('envoy.gate')
  nowMs = 118_000
  expect(isDown()).toBe(1)
  nowMs = 119_000
  expect(isDown()).toBe(0)
  counts.storeFailed('envoy.gate')
  expect(isDown()).toBe(1)
  counts.storeUp('envoy.gate')
  expect(isDown()).toBe(0)
})
