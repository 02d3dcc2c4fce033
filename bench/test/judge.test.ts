import { describe, expect, it } from 'vitest'
import { fullestWindow, idealAdmissions, judge, type Seen } from '../src/truth/judge.ts'

/** A request decided at a known time. */
function at(fromMs: number, isAdmitted = true): Seen {
  return { isAdmitted, fromMs, untilMs: fromMs }
}

describe('the fullest window', () => {
  it('excludes a request that comes exactly one window later', () => {
    expect(fullestWindow([at(0), at(999)], 1000)).toBe(2)
    expect(fullestWindow([at(0), at(1000)], 1000)).toBe(1)
  })

  it('starts at any request, and counts only admitted ones', () => {
    expect(fullestWindow([at(0), at(900), at(950), at(970, false), at(1100)], 1000)).toBe(3)
  })

  it('counts only requests that are certainly in it', () => {
    const late: Seen = { isAdmitted: true, fromMs: 990, untilMs: 1010 }
    expect(fullestWindow([at(0), at(10), late], 1000)).toBe(2)
  })
})

describe('an ideal limiter', () => {
  it('admits up to the limit, and again when the oldest request leaves', () => {
    const requests = [0, 1, 2, 999, 1000, 1001].map((atMs) => at(atMs, false))
    expect(idealAdmissions(requests, 2, 1000)).toBe(4)
  })

  it('sets the 100% that limiters are judged by', () => {
    const requests = [at(0), at(1), at(2), at(3, false)]
    const verdict = judge({ name: 'one over', isOurs: false }, requests, { limit: 2, windowMs: 1000 })
    expect(verdict).toMatchObject({ fullestPercent: 150, admittedPercent: 150, requests: 4 })
  })
})
