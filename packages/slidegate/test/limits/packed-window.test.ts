import { describe, expect, it } from 'vitest'
import { createLimiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { append, MAX_RECORDS, merge, totalUpTo, trim } from '../../src/limits/window-log.ts'
import { WindowLogs } from '../../src/limits/window-logs.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import type { ConsumeOutcome } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'

// One log for all windows of a precision: what one of them no longer needs, another may.

const short = slidingWindow({ name: 'short', limit: 100, window: 10 })
const long = slidingWindow({ name: 'long', limit: 4, window: 100 })

describe.each([
  ['the short one first', [short, long]],
  ['the long one first', [long, short]],
])('two windows on one log, %s', (_, limits) => {
  it('what has left the short one still counts in the long one', () => {
    const clock = new ManualClock()
    const startMs = clock.now()
    const limiter = createLimiter({ limits, store: memoryStore({ clock: clock.now }) })
    const askAt = (ms: number) => {
      clock.set(startMs + ms)
      return limiter.consumeSync('k').allowed
    }
    expect([0, 20, 25, 30].map(askAt)).toEqual([true, true, true, true])
    // Of these the first one leaves it at 100.
    expect([31, 99, 100, 101].map(askAt)).toEqual([false, false, true, false])
  })

  it('it has room for the records of the long one', () => {
    const { params } = limitSet('windows', limits).logs[0]!
    expect(params.records).toBe(4)
  })
})

it('its totals stay exact, however many units have passed through it', () => {
  const clock = new ManualClock()
  const limit = 2 ** 40
  const limits = [slidingWindow({ limit, window: 100 })]
  const limiter = createLimiter({ limits, store: memoryStore({ clock: clock.now }) })
  // All in all more than 2^53, and never empty.
  const cost = limit / 4 - 1
  for (let i = 0; i < 2 ** 16; i++) {
    const { remaining } = limiter.consumeSync('busy', { cost })
    if (remaining !== limit - Math.min(i + 1, 4) * cost) expect([i, remaining]).toEqual([])
    clock.advance(30)
  }
})

it('it keeps no more records than its bound', () => {
  const logs = new WindowLogs()
  const number = logs.create()
  for (let i = 0; i <= MAX_RECORDS; i++) append(logs.at(number), 1000 + i, 1000 + i, 1)
  const log = logs.at(number)
  // The newest is apart.
  expect([log.count, log.slots, log.total]).toEqual([MAX_RECORDS - 1, MAX_RECORDS, MAX_RECORDS + 1])
  append(log, 1000 + MAX_RECORDS + 1, 1000 + MAX_RECORDS + 1, 1)
  expect([log.count, totalUpTo(log, 1001), totalUpTo(log, 1003)]).toEqual([MAX_RECORDS - 1, 0, 4])
})

it('its header has the oldest stamp of its ring, so most requests need not read the ring', () => {
  const logs = new WindowLogs()
  const log = logs.at(logs.create())
  for (const ms of [1000, 1010, 1020, 1030]) append(log, ms, ms, 1)
  expect([log.count, log.oldest]).toEqual([3, 1000])
  log.keepMs = 100
  trim(log, 1110)
  expect([log.count, log.oldest]).toEqual([1, 1020])
  // As after a step of the clock.
  merge(log, 500)
  for (const ms of [510, 520]) append(log, ms, ms, 1)
  expect([log.count, log.oldest]).toEqual([2, 500])
})

describe('a lease', () => {
  const set = limitSet('leases', [slidingWindow({ limit: 10, window: 1000 })])

  /** Units in use at each time, where requests come at these times with leases of such lengths. */
  async function usedAt(requests: readonly (readonly [ms: number, leaseMs: number])[], atMs: number) {
    const clock = new ManualClock()
    const startMs = clock.now()
    const store = memoryStore({ clock: clock.now })
    const parts = [{ key: 'k', set }]
    for (const [ms, leaseMs] of requests) {
      clock.set(startMs + ms)
      await outcomesOf(store, [{ type: 'consume', parts, cost: 1, count: 1, leaseMs }])
    }
    clock.set(startMs + atMs)
    const [outcome] = await outcomesOf(store, [{ type: 'peek', parts, cost: 1, count: 1 }])
    return (outcome as ConsumeOutcome).limits[0]
  }

  it('lets what was charged before it ends count for so much longer', async () => {
    expect(await usedAt([[0, 500]], 1499)).toBe(1)
    expect(await usedAt([[0, 500]], 1500)).toBe(0)
  })

  it('of two in force the longer one counts', async () => {
    const requests = [
      [0, 500],
      [1, 100],
    ] as const
    expect(await usedAt(requests, 1499)).toBe(2)
    expect(await usedAt(requests, 1500)).toBe(0)
  })

  // The one at 1200 keeps the log; it is over before that at 2400.
  const late = (ms: number) =>
    [
      [0, 500],
      [400, 0],
      [1200, 0],
      [ms, 100],
    ] as const

  it('that is over does not lengthen a later one', async () => {
    expect(await usedAt(late(2000), 2400)).toBe(1)
  })

  it('until then it does', async () => {
    expect(await usedAt(late(1999), 2400)).toBe(2)
  })
})
