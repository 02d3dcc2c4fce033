import { describe, expect, it } from 'vitest'
import type { LimiterRates, Overview } from '../../server/src/admin/api-types.ts'
import { appended } from '../src/history.ts'

function rates(name: string, allowedPerSecond: number): LimiterRates {
  return {
    ...{ name, allowedPerSecond, deniedPerSecond: 2, shadowDeniedPerSecond: 3 },
    lastMinute: { allowedPerSecond, deniedPerSecond: 2, shadowDeniedPerSecond: 3 },
    ...{ withoutStorePerSecond: 0, waiting: 0, callers: 0, isStoreDown: false },
  }
}

function overviewAt(second: number): Overview {
  return {
    ...{
      atMs: second * 1000,
      instances: [],
      gone: [],
      missing: 0,
      limiters: [rates('api', 5), rates('login', 1)],
    },
    store: { kind: 'memory', up: true, callsPerSecond: 0, callMs: null, requestsPerCall: null, servers: [] },
  }
}

const rows = { seconds: [9, 10], allowed: [0, 4], denied: [0, 0], shadowDenied: [0, 0] }

describe('the rows of a chart', () => {
  it('grow by one second, for all limiters or for one', () => {
    expect(appended(rows, overviewAt(11), undefined)).toEqual({
      seconds: [9, 10, 11],
      allowed: [0, 4, 6],
      denied: [0, 0, 4],
      shadowDenied: [0, 0, 6],
    })
    expect(appended(rows, overviewAt(11), 'api')?.allowed).toEqual([0, 4, 5])
  })

  it('stay the same without a new second', () => {
    expect(appended(rows, overviewAt(10), undefined)).toBe(rows)
    expect(appended(rows, overviewAt(8), undefined)).toBe(rows)
  })

  it('end if a second is missing', () => {
    expect(appended(rows, overviewAt(12), undefined)).toBeUndefined()
  })

  it('cover five minutes', () => {
    const seconds = Array.from({ length: 300 }, (_, i) => i)
    const full = { seconds, allowed: seconds, denied: seconds, shadowDenied: seconds }
    const next = appended(full, overviewAt(300), undefined)!
    expect(Object.values(next).map((column) => column.length)).toEqual([300, 300, 300, 300])
    expect(next.seconds[0]).toBe(1)
  })
})
