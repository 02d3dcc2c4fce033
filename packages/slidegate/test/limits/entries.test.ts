import { describe, expect, it } from 'vitest'
import { slidingWindow } from '../../src/index.ts'
import { MAX_ENTRIES } from '../../src/limits/entry-window.ts'

// Logs of entries: which entries they keep, and which of them they refund.

const NOW_MS = 1_700_000_000_000

function logOf(log: 'zset' | 'stream') {
  const limit = slidingWindow({ limit: MAX_ENTRIES, window: 1000, log })
  const { kind } = limit
  const params = kind.params([limit])
  const logs = kind.createLogs()
  const number = logs.create()
  const state = () => logs.at(number)
  return {
    commit: (entry: string, units: number, ms = 0) =>
      kind.commit(state(), params, NOW_MS + ms, { units, leaseMs: 0, entry }),
    refund: (entry: string, units: number, ms = 0) =>
      kind.refund(state(), params, NOW_MS + 999, NOW_MS + ms, units, entry),
    list: (ms = 0) =>
      kind.entries!.list(state(), params, NOW_MS + ms).map(({ name, units }) => `${name} ${units}`),
    used(ms = 0) {
      const used: number[] = []
      kind.check(state(), params, NOW_MS + ms, used)
      return used[0]
    },
  }
}

describe('a stream', () => {
  it('keeps all entries with the same name, and refunds the right one', () => {
    const { commit, refund, list, used } = logOf('stream')
    commit('a', 2)
    commit('a', 3)
    commit('b', 2)
    commit('a', 2, 5)
    expect(list(5)).toEqual(['a 2', 'a 3', 'b 2', 'a 2'])
    expect([refund('a', 4), refund('b', 3), refund('c', 2), refund('a', 2, 4)]).toEqual([0, 0, 0, 0])
    expect(refund('b', 2)).toBe(2)
    expect(refund('a', 2, 5)).toBe(2)
    expect(list(5)).toEqual(['a 2', 'a 3'])
    expect(refund('a', 3)).toBe(3)
    expect([refund('a', 3), refund('a', 2), refund('a', 2)]).toEqual([0, 2, 0])
    expect([list(5), used(5)]).toEqual([[], 0])
  })

  it('keeps up to its maximum', () => {
    const { commit, list, used } = logOf('stream')
    for (let i = 0; i < MAX_ENTRIES; i++) commit(`${i}`, 2)
    expect([list().length, used()]).toEqual([MAX_ENTRIES, 2 * MAX_ENTRIES])
    commit('last', 2)
    expect([list().length, list()[0], list().at(-1), used()]).toEqual([
      ...[MAX_ENTRIES, '1 2', 'last 2', 2 * MAX_ENTRIES],
    ])
  })

  it('refunds only the newest if there are too many to rewrite', () => {
    const { commit, refund } = logOf('stream')
    for (let i = 0; i < 1024; i++) commit(`${i}`, 1)
    expect(refund('0', 1)).toBe(1)
    commit('0', 1)
    commit('one more', 1)
    expect([refund('1', 1), refund('1022', 1), refund('0', 1)]).toEqual([0, 0, 0])
    expect(refund('one more', 1)).toBe(1)
    expect(refund('1', 1)).toBe(1)
  })
})

describe('a sorted set', () => {
  it('keeps one entry per name, and drops the oldest beyond its maximum', () => {
    const { commit, list, used } = logOf('zset')
    commit('a', 5000)
    commit('b', 5000, 1)
    expect(list(1)).toEqual(['a 5000', 'b 5000'])
    commit('c', 4999, 2)
    expect(list(2)).toEqual(['a 5000', 'b 5000', 'c 4999'])
    commit('d', 1, 3)
    expect(list(3)).toEqual(['b 5000', 'c 4999', 'd 1'])
    expect(used(3)).toBe(10_000)
    commit('b', 1, 4)
    expect(list(4)).toEqual(['c 4999', 'd 1', 'b 5000'])
  })

  it('contains no entries that have left the window', () => {
    const { commit, list } = logOf('zset')
    commit('a', 6000)
    commit('b', 3000, 500)
    commit('c', 3000, 1001)
    expect(list(1001)).toEqual(['b 3000', 'c 3000'])
  })
})
