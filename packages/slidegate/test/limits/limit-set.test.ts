import { describe, expect, it } from 'vitest'
import {
  concurrency,
  distinct,
  fixedWindow,
  type Limit,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { type Log, limitSet, withLog } from '../../src/limits/limit-set.ts'

// Tests which logs the limits of a limiter read.

const fixed = (window: number) => fixedWindow({ name: `fixed${window}`, limit: 10, window })

const namesOf = (...limits: readonly Limit[]) => limitSet('limiter', limits).logs.map(({ name }) => name)

describe('the name of a log depends on its structure, not on its numbers', () => {
  it.each<[string, (limit: number) => Limit, string]>([
    ['a packed window: its precision', (limit) => slidingWindow({ limit, window: 60_000 + limit }), 'w1'],
    [
      'a packed window: its declared precision',
      (limit) => slidingWindow({ limit, window: '1m', precision: 50 }),
      'w50',
    ],
    ['a sorted set: its window', (limit) => slidingWindow({ limit, window: 20, log: 'zset' }), 'z20'],
    ['a stream: its window', (limit) => slidingWindow({ limit, window: 20, log: 'stream' }), 'x20'],
    ['a fixed window: its length', (limit) => fixedWindow({ limit, window: 20 }), 'f20'],
    [
      'a sliding counter: its window',
      (limit) => slidingCounter({ limit: limit ** 4, window: '30d' }),
      'c2592000000',
    ],
    [
      'a bucket: its interval',
      (limit) => tokenBucket({ capacity: limit, refill: limit, interval: '1s' }),
      't1000',
    ],
    ['distinct values: their window', (limit) => distinct({ limit, window: 20 }), 'd20'],
    [
      'approximate distinct values: their window',
      (limit) => distinct({ limit, window: 20, approximate: true }),
      'e20',
    ],
    ['holders: their ttl', (limit) => concurrency({ limit, ttl: 20 }), 'k20'],
  ])('%s', (_, make, name) => {
    for (const limit of [1, 50, 999]) expect(namesOf(make(limit))).toEqual([name])
  })

  it('the default precision fits a limit sixteen times as large', () => {
    const daily = (limit: number) => slidingWindow({ limit, window: '1d' })
    expect([1, 4096, 4097, 50_000, 100_000, 1_600_000].map((limit) => daily(limit).precisionMs)).toEqual([
      1, 1, 2000, 2000, 2000, 2000,
    ])
    expect(slidingWindow({ limit: 2 ** 40, window: '1m' }).precisionMs).toBe(1)
  })

  it('windows with one precision share a log, while each bucket and each shadow limit has its own', () => {
    const bucket = (name: string, shadow = false) =>
      tokenBucket({ capacity: 5, refill: 1, interval: '1s', name, shadow })
    const sliding = (name: string, shadow = false) => slidingWindow({ limit: 5, window: '1s', name, shadow })
    expect(namesOf(sliding('a'), sliding('b'), sliding('c', true))).toEqual(['w1', 'w1sc'])
    expect(namesOf(bucket('a'), bucket('b', true), bucket('c'), bucket('d'))).toEqual([
      't1000',
      't1000sb',
      't1000-2',
      't1000-3',
    ])
  })
})

it('adding the same log to a set returns the same set', () => {
  const set = limitSet('limiter', [fixed(50)])
  const [one, another] = ['one', 'another'].map(
    (name): Log => ({ ...set.logs[0]!, name, role: 'ban', serves: [] }),
  )
  const more = withLog(set, one!)
  expect(withLog(set, { ...one! })).toBe(more)
  expect(withLog(set, another!).logs.map(({ name }) => name)).toEqual(['f50', 'another'])
  expect(withLog(set, one!)).toBe(more)
  expect(more.logs[1]).toEqual(one)
  expect(set.logs).toHaveLength(1)
})
