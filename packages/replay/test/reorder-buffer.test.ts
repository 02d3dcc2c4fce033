import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LoggedRequest } from '../src/log/parse-line.ts'
import { LEAP_LINES, LEAP_MS, ReorderBuffer } from '../src/log/reorder-buffer.ts'

const BOUND_MS = 300_000

function requestsAt(times: readonly number[]): LoggedRequest[] {
  return times.map((timeMs, line) => ({ timeMs, key: 'k', line }))
}

function inOrder(requests: readonly LoggedRequest[]): LoggedRequest[] {
  return requests.toSorted((a, b) => a.timeMs - b.timeMs || a.line - b.line)
}

function reorder(times: readonly number[], options: { boundMs?: number; capacity?: number } = {}) {
  const buffer = new ReorderBuffer({ boundMs: BOUND_MS, capacity: 1_000_000, ...options })
  const tooLate: number[] = []
  const released: LoggedRequest[] = []
  for (const request of requestsAt(times)) {
    if (!buffer.push(request)) tooLate.push(request.line)
    released.push(...buffer.take())
  }
  const beforeDrain = released.length
  buffer.drain()
  released.push(...buffer.take())
  return { released, tooLate, beforeDrain, releasedEarly: buffer.releasedEarly }
}

describe('the reorder buffer', () => {
  it('sorts requests within the bound by time, and ties by line', () => {
    const steps = fc.array(fc.record({ step: fc.nat(60_000), late: fc.nat(BOUND_MS) }))
    fc.assert(
      fc.property(steps, (recorded) => {
        let newest = 1e12
        const times = recorded.map(({ step, late }) => {
          newest += step
          return Math.max(1e12, Math.ceil((newest - late) / 10_000) * 10_000)
        })
        const { released, tooLate } = reorder(times)
        expect(tooLate).toEqual([])
        expect(released).toEqual(inOrder(requestsAt(times)))
      }),
    )
  })

  it('rejects exactly the requests that are later than the bound', () => {
    const time = fc.integer({ min: 0, max: 20 }).map((minutes) => 1e12 + minutes * 60_000)
    fc.assert(
      fc.property(fc.array(time), fc.constantFrom(0, 60_000, BOUND_MS), (times, boundMs) => {
        let newest = 0
        const isLate = requestsAt(times).map(({ timeMs }) => {
          newest = Math.max(newest, timeMs)
          return newest - timeMs > boundMs
        })
        const { released, tooLate } = reorder(times, { boundMs })
        expect(released).toEqual(inOrder(requestsAt(times).filter(({ line }) => !isLate[line])))
        expect(tooLate).toEqual(isLate.flatMap((late, line) => (late ? line : [])))
      }),
    )
  })

  it('holds no request longer than the bound', () => {
    expect(reorder([1e12, 1e12 + BOUND_MS]).beforeDrain).toBe(0)
    expect(reorder([1e12, 1e12 + BOUND_MS + 1]).beforeDrain).toBe(1)
  })

  it('releases the oldest early if it is full, counts it, and stays in order', () => {
    const time = fc.nat(200_000).map((offset) => 1e12 + offset)
    fc.assert(
      fc.property(fc.array(time), fc.integer({ min: 1, max: 5 }), (times, capacity) => {
        const { released, tooLate, releasedEarly } = reorder(times, { capacity })
        expect(released).toEqual(inOrder(released))
        expect(released.length + tooLate.length).toBe(times.length)
        expect(releasedEarly).toBe(Math.max(0, released.length - capacity))
      }),
    )
  })
})

describe('an absurd time', () => {
  const steady = Array.from({ length: 1000 }, (_, i) => 1e12 + i * 1000)

  it.each([0, 1, 500, 999])('in the future, at line %i, makes no other request too late', (at) => {
    const times = steady.toSpliced(at, 0, 3e13)
    const { released, tooLate } = reorder(times)
    expect(tooLate).toEqual([])
    expect(released).toEqual(inOrder(requestsAt(times)))
  })

  it('on every tenth line or on several in a row makes no other request too late', () => {
    const times = steady.flatMap((time, i) => (i % 10 === 5 ? [time, 3e13 + i, 2e13, 3e13] : [time]))
    expect(reorder(times).tooLate).toEqual([])
  })

  it('in the past is too late, or comes first at the start of the log', () => {
    expect(reorder(steady.toSpliced(500, 0, 1000)).tooLate).toEqual([500])
    expect(reorder([1000, ...steady]).tooLate).toEqual([])
  })

  it('differs from a pause in the log', () => {
    const later = steady.map((time) => time + 30 * LEAP_MS)
    const { released, tooLate, beforeDrain } = reorder([...steady, ...later, 1e12])
    expect(tooLate).toEqual([2000])
    expect(released).toHaveLength(2000)
    // Once confirmed, the pause releases everything held before it.
    expect(beforeDrain).toBeGreaterThanOrEqual(1000 + LEAP_LINES)
  })

  it('up to a day ahead is trusted', () => {
    expect(reorder([1e12, 1e12 + LEAP_MS, 1e12]).tooLate).toEqual([2])
  })
})
