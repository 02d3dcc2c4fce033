// tier: system
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeEach, describe, expect, it } from 'vitest'
import { memoryStore, type Store, slidingWindow, tokenBucket } from '../../src/index.ts'
import { waitIn } from '../../src/limiter/waiting/answers.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type Admission, fullestWindow } from '../audit/fullest-window.ts'
import { useRedis } from '../support/use-redis.ts'
import { type Room, roomOn } from './room.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const stores: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  Redis: () => redisStore(redis),
}

/** By the machine's clock, which is the stores' too. */
const nowMs = () => performance.timeOrigin + performance.now()

const medianOf = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!

/**
 * Questions after a denial were asked when there was room at last, by the store's clock. A few may come early, where the
 * question before took longer to the store.
 */
function expectFewEarly({ asked }: Room): void {
  let early = 0
  for (let i = 1; i < asked.length; i++) {
    const [last, next] = [asked[i - 1]!, asked[i]!]
    if (last.outcome.admitted === last.op.count || next.op.cost < last.op.cost) continue
    if (next.outcome.atMs < last.outcome.atMs + waitIn(last)) early++
  }
  expect(early).toBeLessThanOrEqual(asked.length / 3)
}

describe.each(Object.entries(stores))('on %s', (name, create) => {
  it('a waiter asks when there is room, hardly before, and hardly after', async () => {
    const room = roomOn(create(), [slidingWindow({ limit: 1, window: 15 })])
    await room.wait('k')
    const lateMs: number[] = []
    const chargedLateMs: number[] = []
    const controlLateMs: number[] = []
    let turns = 0
    // Where this process is held up, there may be room already.
    for (; lateMs.length < 50; turns++) {
      // What a timer and a question to the store take on this machine now.
      const controlMs = performance.now()
      await delay(15)
      await room.peek('control')
      controlLateMs.push(performance.now() - controlMs - 15)
      await room.wait('k')
      const { atMs } = await room.wait('k')
      const now = nowMs()
      const denial = room.asked.at(-2)!
      if (denial.outcome.admitted > 0) continue
      const dueAtMs = denial.outcome.atMs + waitIn(denial)
      chargedLateMs.push(atMs - dueAtMs)
      lateMs.push(now - dueAtMs)
    }
    const charged = medianOf(chargedLateMs)
    console.log(
      `${name}: charged ${charged} ms after it was due, and told ${medianOf(lateMs).toFixed(2)} ms (medians)`,
    )
    expect(medianOf(lateMs)).toBeLessThan(10 + 3 * medianOf(controlLateMs))
    expectFewEarly(room)
    // Each was asked for twice, when it came and when there was room; and some once more, which came early.
    expect(room.asked.length).toBeLessThanOrEqual(3 * (2 * turns + 1))
  })

  it('of many at random, with some that give up, no window holds more than its limit', async () => {
    const limits = [
      slidingWindow({ limit: 12, window: 40 }),
      slidingWindow({ limit: 200, window: 1000 }),
      slidingWindow({ name: 'hour', limit: 100_000, window: '1h' }),
    ]
    const room = roomOn(create(), limits)
    const admitted: Admission[] = []
    const waits = Array.from({ length: 300 }, async (_, i) => {
      const abort = new AbortController()
      const cost = 1 + ((i * 7) % 4)
      const options = { cost, priority: i % 3, maxWaitMs: i % 5 === 0 ? 150 : 30_000, signal: abort.signal }
      if (i % 7 === 0) setTimeout(() => abort.abort(), i)
      const { atMs } = await room.wait('k', options)
      admitted.push({ atMs, cost })
    })
    const settled = await Promise.allSettled(waits)
    expect(admitted.length).toBeGreaterThan(200)
    expect(settled.length - admitted.length).toBeGreaterThan(20)
    expect(fullestWindow(admitted, 40)).toBeLessThanOrEqual(12)
    expect(fullestWindow(admitted, 40)).toBeGreaterThanOrEqual(11)
    expect(fullestWindow(admitted, 1000)).toBeLessThanOrEqual(200)
    expectFewEarly(room)
    // What was returned may still be on its way.
    await room.peek('k')
    expect((await room.peek('k')).limits[6]).toBe(admitted.reduce((sum, { cost }) => sum + cost, 0))
    expect(room.room.state()).toEqual({ length: 0, expectedWaitMs: 0 })
  })

  it('10,000 for one key are admitted in order, at the rate of the limit', async () => {
    const [limit, window] = [1000, 100]
    const room = roomOn(create(), [slidingWindow({ limit, window })])
    await room.wait('other')
    collectGarbage()
    const heapBefore = process.memoryUsage().heapUsed
    const admitted: number[] = []
    const times: Admission[] = []
    const waits = Array.from({ length: 10_000 }, async (_, i) => {
      const { atMs } = await room.wait('k')
      admitted.push(i)
      times.push({ atMs, cost: 1 })
    })
    expect(room.room.state('k').length).toBe(10_000)
    collectGarbage()
    const perWaiter = (process.memoryUsage().heapUsed - heapBefore) / 10_000
    await Promise.all(waits)
    expect(admitted).toEqual(Array.from({ length: 10_000 }, (_, i) => i))
    expect(fullestWindow(times, window)).toBeLessThanOrEqual(limit)
    // Ten windows, of which the first needs no time. A machine may stand still, but not in most of them.
    const tookMs = times.at(-1)!.atMs - times[0]!.atMs
    const gapsMs = times.slice(limit).map(({ atMs }, i) => atMs - times[i]!.atMs)
    console.log(`${name}: ${tookMs} ms for 9 windows of ${window}, ${Math.round(perWaiter)} bytes a waiter`)
    expect(tookMs).toBeGreaterThanOrEqual(9 * window)
    expect(medianOf(gapsMs)).toBeLessThan(8 * window)
    expect(perWaiter).toBeLessThan(3000)
    expectFewEarly(room)
  })

  it('a bucket that is refilled all the time is used up all the time', async () => {
    const room = roomOn(create(), [tokenBucket({ capacity: 10, refill: 10, interval: 20 })])
    const startMs = performance.now()
    const admitted = await Promise.all(Array.from({ length: 210 }, () => room.wait('k')))
    const tookMs = performance.now() - startMs
    const gapsMs = admitted.slice(10).map(({ atMs }, i) => atMs - admitted[i]!.atMs)
    // What is beyond its capacity takes 2 ms each.
    expect(tookMs).toBeGreaterThanOrEqual(399)
    expect(medianOf(gapsMs)).toBeLessThan(160)
    expectFewEarly(room)
  })
})
