import { describe, expect, it } from 'vitest'
import { slidingWindow } from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { MAX_RECORDS, WindowLogs } from '../../src/limits/window-log.ts'

// Tests the log that all windows of one precision share: it keeps what any of them needs.

const short = slidingWindow({ name: 'short', limit: 100, window: 10 })
const long = slidingWindow({ name: 'long', limit: 4, window: 100 })

describe.each([
  ['the short window first', [short, long]],
  ['the long window first', [long, short]],
])('two windows on one log, %s', (_, limits) => {
  it('leave room for the records of the long window', () => {
    const { params } = limitSet('windows', limits).logs[0]!
    expect(params.records).toBe(4)
  })
})

it('a log keeps no more records than its maximum', () => {
  const logs = new WindowLogs()
  const number = logs.create()
  for (let i = 0; i <= MAX_RECORDS; i++) logs.at(number).append(1000 + i, 1000 + i, 1)
  const log = logs.at(number)
  // The newest record is stored separately.
  expect([log.count, log.slots, log.total]).toEqual([MAX_RECORDS - 1, MAX_RECORDS, MAX_RECORDS + 1])
  log.append(1000 + MAX_RECORDS + 1, 1000 + MAX_RECORDS + 1, 1)
  expect([log.count, log.totalUpTo(1001), log.totalUpTo(1003)]).toEqual([MAX_RECORDS - 1, 0, 4])
})

it("the header has the oldest stamp of the ring, so most requests don't read the ring", () => {
  const logs = new WindowLogs()
  const log = logs.at(logs.create())
  for (const ms of [1000, 1010, 1020, 1030]) log.append(ms, ms, 1)
  expect([log.count, log.oldest]).toEqual([3, 1000])
  log.keepMs = 100
  log.trim(1110)
  expect([log.count, log.oldest]).toEqual([1, 1020])
  // This has the same effect as a clock change.
  log.merge(500)
  for (const ms of [510, 520]) log.append(ms, ms, 1)
  expect([log.count, log.oldest]).toEqual([2, 500])
})
