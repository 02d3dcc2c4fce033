import { describe, expect, it } from 'vitest'
import {
  concurrency,
  distinct,
  fixedWindow,
  type Limit,
  slidingCounter,
  slidingWindow,
} from '../../src/index.ts'
import { type ExtraLog, limitSet, withLog, withLogsOf } from '../../src/limits/limit-set.ts'

// Which logs the limits of a limiter read, and which of those of earlier limits.

const fixed = (window: number) => fixedWindow({ name: `fixed${window}`, limit: 10, window })
const sliding = (window: number) => slidingWindow({ name: `sliding${window}`, limit: 10, window })
const zset = (window: number) => slidingWindow({ name: `zset${window}`, limit: 10, window, log: 'zset' })
const values = (window: number) => distinct({ name: `values${window}`, limit: 10, window })

describe('logs of limits that were in force before', () => {
  /** What they are called, which limits read them, and of which windows they tell. */
  function formers(limits: readonly Limit[], ...before: (readonly Limit[])[]) {
    return limitSet('limiter', limits, before)
      .logs.filter(({ role }) => role === 'former')
      .map(({ name, serves, params }) => [name, serves, params.windows])
  }

  it.each<[string, Limit[], Limit[], unknown[]]>([
    ['a log that is charged still is none', [fixed(50)], [fixed(50)], []],
    [
      'nor is it read for another limit',
      [fixed(50), fixed(70)],
      [fixed(20), fixed(50)],
      [['f20', [1], [20]]],
    ],
    [
      'one that keeps times tells of any window',
      [fixed(50), fixed(70)],
      [sliding(20)],
      [['w1', [0, 1], [50, 70]]],
    ],
    ['one that keeps entries of one, as long as it kept them', [fixed(50)], [zset(20)], [['z20', [0], [20]]]],
    ['and no longer than it is asked', [fixed(50)], [zset(90)], [['z90', [0], [50]]]],
    ['of several it tells what it was', [fixed(50), fixed(70)], [zset(60)], [['z60', [0, 1], [60]]]],
    ['so does any other', [sliding(50)], [fixed(20)], [['f20', [0], [20]]]],
    ['the one of the same kind comes first', [fixed(50)], [sliding(90), fixed(20)], [['f20', [0], [20]]]],
    ['then the one that keeps times', [zset(50)], [fixed(90), sliding(20)], [['w1', [0], [50]]]],
    ['then the longest', [fixed(50)], [fixed(20), fixed(90), fixed(30)], [['f90', [0], [90]]]],
    ['values are counted apart', [values(50)], [values(20)], [['d20', [0], [20]]]],
    ['and requests apart from them', [values(50)], [fixed(20), sliding(20)], []],
    ['holders, too', [fixed(50)], [concurrency({ limit: 10, ttl: 20 })], []],
  ])('%s', (_, limits, before, expected) => {
    expect(formers(limits, before)).toEqual(expected)
  })

  it('what was only tried has decided nothing, nor does it read any', () => {
    const shadow = slidingWindow({ limit: 10, window: 20, shadow: true })
    expect(formers([fixed(50)], [shadow])).toEqual([])
    expect(formers([shadow], [fixed(50)])).toEqual([])
  })

  it('of each of the earlier sets it is one', () => {
    const counter = slidingCounter({ limit: 10, window: 20 })
    expect(formers([fixed(50)], [sliding(20)], [counter], [sliding(30)])).toEqual([
      ['w1', [0], [50]],
      ['c1-20', [0], [20]],
    ])
  })
})

it('a set with a log that no limit reads is the same set for the same log', () => {
  const set = limitSet('limiter', [fixed(50)])
  const { kind, params } = set.logs[0]!
  const [one, another] = ['one', 'another'].map((name): ExtraLog => ({ name, kind, params, role: 'ban' }))
  const more = withLog(set, one!)
  expect(withLog(set, { ...one! })).toBe(more)
  expect(withLog(set, another!).logs.map(({ name }) => name)).toEqual(['f50', 'another'])
  expect(withLog(set, one!)).toBe(more)
  expect(more.logs[1]).toEqual({ name: 'one', kind, params, role: 'ban', shadow: false, serves: [] })
  expect(set.logs).toHaveLength(1)
})

it('a set with all that earlier limits have charged has each of their logs once, and reads none', () => {
  const set = limitSet('limiter', [fixed(50), sliding(50)])
  const all = withLogsOf(set, [[fixed(50), zset(20)], [values(30)]])
  expect(all.logs.map(({ name, role, serves }) => [name, role, serves])).toEqual([
    ['f50', 'count', [0]],
    ['w1', 'count', [1]],
    ['z20', 'former', []],
    ['d30', 'former', []],
  ])
})
