// tier: integration
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLimiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { ClockWatch } from '../../src/resilience/store-health.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { failing } from './failing-store.ts'

const EPOCH_MS = 1_700_000_000_000
const HOUR_MS = 3_600_000

/** Feeds a clock watch with answers. `aheadMs` is the offset of the store's clock, `tookMs` the latency. */
function watched() {
  const watch = new ClockWatch()
  return (nowMs: number, aheadMs: number, tookMs = 2) =>
    watch.stepAt(EPOCH_MS + Math.floor(nowMs + aheadMs), nowMs - tookMs / 2, nowMs + tookMs / 2)
}

describe('a clock watch', () => {
  it.each([HOUR_MS, 60_000, 1100, -1100, -60_000, -HOUR_MS])('reports a step of %i ms once', (stepMs) => {
    const answer = watched()
    for (let i = 0; i < 10; i++) expect(answer(1000.3 + 10 * i, 0)).toBe(0)
    const byMs = answer(2000, stepMs)
    // The estimate is as exact as two answers with a latency of 2 ms allow, and never exceeds the real step.
    expect(Math.abs(byMs - stepMs)).toBeLessThanOrEqual(4)
    expect(Math.abs(byMs)).toBeLessThanOrEqual(Math.abs(stepMs))
    for (let i = 0; i < 10; i++) expect(answer(2010 + 10 * i, stepMs)).toBe(0)
  })

  it('reports a step there and back as two steps', () => {
    const answer = watched()
    const steps = [0, 5000, 0].map((aheadMs, i) => Math.round(answer(1000 * i, aheadMs, 0.2) / 100) * 100)
    expect(steps).toEqual([0, 5000, -5000])
  })

  it.each([
    ['a step of less than a second', [0, 900, 0, -900, 0], 2],
    ['a step that may also be a slow answer', [0, 3000, 0, -3000, 0], 9000],
  ])("doesn't report %s", (_, ahead, tookMs) => {
    const answer = watched()
    expect(ahead.map((aheadMs, i) => answer(60_000 * i, aheadMs, tookMs))).toEqual([0, 0, 0, 0, 0])
  })

  it('reports no step after idle times or slow answers', () => {
    const answer = watched()
    for (const [i, tookMs] of [1, 5000, 1, 60_000, 0, 1].entries()) {
      expect(answer(i * 24 * HOUR_MS, 0, tookMs)).toBe(0)
    }
  })
})

describe('the clockStep event', async () => {
  const { redis } = await useRedis()
  // Uses fake time, because a real pause of this process would look like a step of the store's manual clock.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())
  const limits = [slidingWindow({ limit: 1000, window: '1m' })]
  const clock = new ManualClock()
  const stores = {
    Redis: redisStore(redis, { clock: clock.now }),
    'a store that answers immediately': failing(memoryStore({ clock: clock.now })),
  }

  it.each(Object.entries(stores))('reports each step once on %s', async (_, store) => {
    const limiter = createLimiter({ limits, store, timeoutMs: 10_000 })
    const steps: number[] = []
    limiter.on('clockStep', ({ byMs }) => steps.push(Math.round(byMs / 10_000) * 10_000))
    const asks = [
      () => limiter.consume('k'),
      () => limiter.peek('k'),
      () => limiter.consume('k', { cost: 2000 }),
    ]
    // Every answer contains the store's time: an admission, a peek and a denial.
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

  it('compares clocks per shard, since the clocks of two servers may differ', async () => {
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
