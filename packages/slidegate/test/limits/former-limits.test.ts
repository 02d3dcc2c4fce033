import { describe, expect, it } from 'vitest'
import {
  concurrency,
  fixedWindow,
  type Limit,
  memoryStore,
  slidingCounter,
  slidingWindow,
} from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import type { ConsumeOutcome, ExplainOutcome, Part } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing.ts'

// What was charged before the limits were changed still counts.

function worldOf(before: readonly Limit[], after: readonly Limit[]) {
  const clock = new ManualClock(1_700_000_000_000)
  const store = memoryStore({ clock: clock.now })
  const former = limitSet('changed', before)
  const present = limitSet('changed', after, [before])
  const consume = async (parts: readonly Part[], cost = 1) => {
    const [outcome] = await outcomesOf(store, [{ type: 'consume', parts, cost, count: 1, leaseMs: 0 }])
    return outcome as ConsumeOutcome
  }
  return {
    clock,
    charge: (key: string, cost: number) => consume([{ key, set: former }], cost),
    consume: (keys: readonly string[], cost = 1) =>
      consume(
        keys.map((key) => ({ key, set: present })),
        cost,
      ),
    async peek(...keys: string[]) {
      const parts = keys.map((key) => ({ key, set: present }))
      const [outcome] = await outcomesOf(store, [{ type: 'peek', parts, cost: 1, count: 1 }])
      return (outcome as ConsumeOutcome).limits
    },
    async explain(key: string) {
      const parts = [{ key, set: present }]
      const [outcome] = await outcomesOf(store, [{ type: 'explain', parts, cost: 1, count: 1 }])
      return outcome as ExplainOutcome
    },
  }
}

const sliding = slidingWindow({ name: 'sliding', limit: 10, window: 1000 })
const fixed = fixedWindow({ name: 'fixed', limit: 10, window: 2000 })

it('for the key that it was charged to, and no other of the request', async () => {
  const { charge, peek } = worldOf([sliding], [fixed])
  await charge('a', 3)
  await charge('c', 4)
  expect(await peek('a', 'b', 'c')).toEqual([3, 0, 1000, 0, 0, 0, 4, 0, 1000])
})

it('for each limit by the log that is most like its own', async () => {
  const zset = slidingWindow({ name: 'zset', limit: 10, window: 1000, log: 'zset' })
  const counter = slidingCounter({ name: 'counter', limit: 10, window: 2000 })
  const other = fixedWindow({ name: 'other', limit: 10, window: 4000 })
  const { clock, charge, peek } = worldOf([fixed, zset], [other, counter])
  await charge('k', 10)
  expect(await peek('k')).toEqual([10, 2000, 2000, 10, 1000, 1000])
  clock.advance(1000)
  expect(await peek('k')).toEqual([10, 1000, 1000, 0, 0, 0])
})

it('of what is kept one by one for as long as it was kept', async () => {
  const zset = slidingWindow({ name: 'zset', limit: 10, window: 1000, log: 'zset' })
  const short = slidingWindow({ name: 'short', limit: 10, window: 500 })
  const long = slidingWindow({ name: 'long', limit: 10, window: 2000 })
  const { clock, charge, peek } = worldOf([zset], [short, long])
  await charge('k', 10)
  expect(await peek('k')).toEqual([10, 1000, 1000, 10, 1000, 1000])
  clock.advance(1000)
  expect(await peek('k')).toEqual([0, 0, 0, 0, 0, 0])
})

it('as long as it counted, beside what is charged since', async () => {
  const { clock, charge, consume } = worldOf([sliding], [fixed])
  await charge('k', 9)
  clock.advance(400)
  expect(await consume(['k'], 2)).toMatchObject({ admitted: 0, limits: [9, 600, 600] })
  expect(await consume(['k'], 1)).toMatchObject({ admitted: 1, limits: [9, 0, 1600] })
  clock.advance(599)
  expect(await consume(['k'])).toMatchObject({ admitted: 0, limits: [10, 1, 1001] })
  clock.advance(1)
  expect(await consume(['k'])).toMatchObject({ admitted: 1, limits: [1, 0, 1000] })
})

it('what is explained of it says when it is free', async () => {
  const { clock, charge, consume, explain } = worldOf([sliding], [fixed])
  await charge('k', 4)
  clock.advance(400)
  await consume(['k'], 6)
  const { frees, limits } = await explain('k')
  expect(limits).toEqual([10, 600, 1600])
  // One unit, and each tenth of ten.
  expect(frees).toEqual([[600, 600, 600, 600, 600, 1600, 1600, 1600, 1600, 1600, 1600]])
})

describe('holders', () => {
  const holding = concurrency({ name: 'holding', limit: 10, ttl: 1000 })

  it('are no requests: they do not count for a window, nor requests for them', async () => {
    for (const [before, after] of [
      [holding, fixed],
      [sliding, holding],
    ] as const) {
      const { charge, consume } = worldOf([before], [after])
      await charge('k', 3)
      expect((await consume(['k'])).limits[0]).toBe(0)
    }
  })
})
