// tier: integration
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLimiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { ClockWatch } from '../../src/resilience/clock-watch.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { failing } from './failing-store.ts'

const EPOCH_MS = 1_700_000_000_000
const HOUR_MS = 3_600_000

/** Answers that took so long, and came while the store's clock was ahead of that of this process by so much. */
function watched() {
  const watch = new ClockWatch()
  return (nowMs: number, aheadMs: number, tookMs = 2) =>
    watch.stepAt(EPOCH_MS + Math.floor(nowMs + aheadMs), nowMs - tookMs / 2, nowMs + tookMs / 2)
}

describe('a step of the clock', () => {
  it.each([HOUR_MS, 60_000, 1100, -1100, -60_000, -HOUR_MS])('by %i ms is told, once', (stepMs) => {
    const answer = watched()
    for (let i = 0; i < 10; i++) expect(answer(1000.3 + 10 * i, 0)).toBe(0)
    const byMs = answer(2000, stepMs)
    // As well as two answers of 2 ms can tell: never more than it was.
    expect(Math.abs(byMs - stepMs)).toBeLessThanOrEqual(4)
    expect(Math.abs(byMs)).toBeLessThanOrEqual(Math.abs(stepMs))
    for (let i = 0; i < 10; i++) expect(answer(2010 + 10 * i, stepMs)).toBe(0)
  })

  it('there and back are two', () => {
    const answer = watched()
    const steps = [0, 5000, 0].map((aheadMs, i) => Math.round(answer(1000 * i, aheadMs, 0.2) / 100) * 100)
    expect(steps).toEqual([0, 5000, -5000])
  })

  it.each([
    ['of less than a second', [0, 900, 0, -900, 0], 2],
    ['that may as well be a slow answer', [0, 3000, 0, -3000, 0], 9000],
  ])('%s is not told', (_, ahead, tookMs) => {
    const answer = watched()
    expect(ahead.map((aheadMs, i) => answer(60_000 * i, aheadMs, tookMs))).toEqual([0, 0, 0, 0, 0])
  })

  it('none, however long nobody asked, and however late answers were', () => {
    const answer = watched()
    for (const [i, tookMs] of [1, 5000, 1, 60_000, 0, 1].entries()) {
      expect(answer(i * 24 * HOUR_MS, 0, tookMs)).toBe(0)
    }
  })
})

describe('clockStep', async () => {
  const { redis } = await useRedis()
  // In this process no time passes: what it stands still for would be a step of the store's clock, which is set by hand.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())
  const limits = [slidingWindow({ limit: 1000, window: '1m' })]
  const clock = new ManualClock()
  const stores = {
    Redis: redisStore(redis, { clock: clock.now }),
    'a store that answers at once': failing(memoryStore({ clock: clock.now })),
  }

  it.each(Object.entries(stores))('%s', async (_, store) => {
    const limiter = createLimiter({ limits, store, timeoutMs: 10_000 })
    const steps: number[] = []
    limiter.on('clockStep', ({ byMs }) => steps.push(Math.round(byMs / 10_000) * 10_000))
    const asks = [
      () => limiter.consume('k'),
      () => limiter.peek('k'),
      () => limiter.consume('k', { cost: 2000 }),
    ]
    // Admitted, peeked, denied: each tells the time.
    for (const ask of asks) {
      await ask()
      clock.advance(600_000)
      await ask()
      await ask()
      clock.advance(-600_000)
      await ask()
    }
    expect(steps).toEqual([600_000, -600_000, 600_000, -600_000, 600_000, -600_000])
    await limiter.charge('k', 1)
    await limiter.reset('k')
    expect(steps.length).toBe(6)
  })

  it('is that of one part of a store: the clocks of two servers may differ', async () => {
    const clocks = [new ManualClock(), new ManualClock(EPOCH_MS + HOUR_MS)]
    const parts = clocks.map(({ now }) => memoryStore({ clock: now }))
    const store = failing(memoryStore())
    store.shardOf = ({ parts: [part] }) => Number(part!.key)
    store.apply = (ops, call) => parts[Number(ops[0]!.parts[0]!.key)]!.apply(ops, call)
    const limiter = createLimiter({ limits, store })
    const steps: number[] = []
    limiter.on('clockStep', ({ byMs }) => steps.push(byMs))
    for (let i = 0; i < 6; i++) await limiter.consume(String(i % 2))
    expect(steps).toEqual([])
    clocks[1]!.advance(5000)
    await limiter.consume('1')
    expect(steps.length).toBe(1)
  })
})
