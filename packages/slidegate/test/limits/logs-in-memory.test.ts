import { describe, expect, it } from 'vitest'
import { createLimiter, fixedWindow, memoryStore, slidingWindow } from '../../src/index.ts'
import type { Kind } from '../../src/limits/limit.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { SAMPLES } from '../support/kinds.ts'

// Tests the logs of a memory store: each has a number, and writing to one never changes another.

const NOW_MS = 1_700_000_000_000

function logsOf(kind: Kind, limits: readonly (typeof SAMPLES)[string][]) {
  const made = limits.map(({ make }) => make({ limit: 100 }))
  const params = kind.params(made)
  const logs = kind.createLogs()
  const usedAt = (log: number, nowMs: number) => {
    const used: number[] = []
    kind.check(logs.at(log), params, nowMs, used)
    return used[0]
  }
  return {
    logs,
    usedAt,
    used: (log: number) => usedAt(log, NOW_MS + 5000),
    /** Charges ten requests, far enough apart that most logs store them separately. */
    fill(log: number, leaseMs = 0) {
      for (let i = 0; i < 10; i++) {
        kind.commit(logs.at(log), params, NOW_MS + 100 * i, { units: 1, leaseMs, entry: `entry${log}-${i}` })
      }
    },
  }
}

describe.each(Object.entries(SAMPLES))('%s', (_, sample) => {
  const { kind } = sample.make({ limit: 100 })

  it('creates separate logs, which are empty at first', () => {
    const { logs, used, fill } = logsOf(kind, [sample])
    const [one, other] = [logs.create(), logs.create()]
    expect([one, other]).toEqual([1, 2])
    fill(one)
    expect(used(one)).toBeGreaterThan(8)
    expect([0, other].map(used)).toEqual([0, 0])
  })

  it("a copy has the same content, and writes to it don't affect the original", () => {
    const { logs, used, usedAt, fill } = logsOf(kind, [sample])
    const one = logs.create()
    fill(one)
    const before = used(one)
    const copy = logs.copy(one)
    expect(kind.newest(logs.at(copy))).toBe(kind.newest(logs.at(one)))
    for (let ms = 9000; ms < 12_000; ms += 50) {
      expect([ms, usedAt(copy, NOW_MS + ms)]).toEqual([ms, usedAt(one, NOW_MS + ms)])
    }
    fill(copy)
    expect(used(one)).toBe(before)
    logs.delete(copy)
    expect(used(one)).toBe(before)
  })

  it('the number of a deleted log is reused for an empty one', () => {
    const { logs, used, usedAt, fill } = logsOf(kind, [sample])
    const [one, other] = [logs.create(), logs.create()]
    fill(one, 1000)
    fill(other)
    const before = used(other)
    logs.delete(one)
    expect(logs.create()).toBe(one)
    expect([one, other].map(used)).toEqual([0, before])
    fill(one)
    for (let ms = 9000; ms < 12_000; ms += 50) {
      expect([ms, usedAt(one, NOW_MS + ms)]).toEqual([ms, usedAt(other, NOW_MS + ms)])
    }
  })
})

it('a window from its first hit may begin at time 0', () => {
  const limit = fixedWindow({ limit: 9, window: '10s', align: 'first-hit' })
  const { kind } = limit
  const params = kind.params([limit])
  const logs = kind.createLogs()
  const log = logs.create()
  kind.commit(logs.at(log), params, 5, { units: 1, leaseMs: 0, entry: '' })
  expect(kind.resetAfter(logs.at(log), params, 0, 5)).toBe(10_000)
})

it.each(Object.entries(SAMPLES))('%s: an empty log always has room', (_, { make }) => {
  const limit = make({ limit: 9 })
  const { kind } = limit
  const params = kind.params([limit])
  const logs = kind.createLogs()
  const log = logs.create()
  expect(kind.resetAfter(logs.at(log), params, 0, 5)).toBe(0)
  kind.commit(logs.at(log), params, 5, { units: 1, leaseMs: 0, entry: 'first' })
  expect(kind.resetAfter(logs.at(log), params, 0, 5)).toBeGreaterThan(0)
})

it('the names of logs are the same in all versions', () => {
  const names = Object.values(SAMPLES).map(({ make }) => {
    const limit = make({ limit: 9 })
    return limit.kind.logName(limit)
  })
  expect(names).toEqual([
    ...['w1', 'w50', 'z10000', 'x10000', 'f10000', 'fday-America/Sao_Paulo', 'fhit10000'],
    ...['c10000', 't10000', 'k10000', 'd10000', 'e10000'],
  ])
})

it('a peek with a clock that was set back sees the stored usage', async () => {
  const clock = new ManualClock(NOW_MS)
  const limits = [slidingWindow({ limit: 9, window: 1000 })]
  const limiter = createLimiter({ limits, store: memoryStore({ clock: clock.now }) })
  for (let i = 0; i < 6; i++) {
    await limiter.consume('k')
    clock.advance(300)
  }
  // At 1500, the requests at 600 and later count.
  clock.set(NOW_MS + 1499)
  expect((await limiter.peek('k')).remaining).toBe(5)
  clock.set(NOW_MS + 1500)
  expect((await limiter.peek('k')).remaining).toBe(5)
})
