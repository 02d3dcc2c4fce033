import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { limitedFetch, upstreamLimiter } from '../../src/outbound/index.ts'
import { fullestWindow } from '../processes/fullest-window.ts'

/** A request: its start, its transit times, and whether its response is lost. */
interface Course {
  readonly startMs: number
  readonly thereMs: number
  readonly backMs: number
  readonly isLost: boolean
}

/** A transit time: mostly within the margin, sometimes several windows. */
const thereMs = fc.oneof({ weight: 5, arbitrary: fc.nat(15) }, fc.nat(300))
const backMs = fc.oneof({ weight: 5, arbitrary: fc.nat(3) }, fc.nat(300))
/** A start time: mostly early, so that more requests start together than there are slots. */
const startMs = fc.oneof({ weight: 5, arbitrary: fc.nat(5) }, fc.nat(300))
const isLost = fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.boolean())
const courses = fc.array(fc.record<Course>({ startMs, thereMs, backMs, isLost }), {
  minLength: 2,
  maxLength: 20,
})
const budgets = fc.record({
  limit: fc.integer({ min: 1, max: 3 }),
  windowMs: fc.integer({ min: 20, max: 60 }),
  marginMs: fc.integer({ min: 1, max: 20 }),
})

const delay = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

it('no window of the upstream exceeds its limit, whatever the transit times', async () => {
  const property = fc.asyncProperty(budgets, courses, async ({ limit, windowMs, marginMs }, courses) => {
    vi.useFakeTimers({
      toFake: [
        'setTimeout',
        'clearTimeout',
        'setInterval',
        'clearInterval',
        'setImmediate',
        'clearImmediate',
        'performance',
      ],
    })
    try {
      const clock = () => 1e12 + Math.floor(performance.now())
      const limits = [{ limit, window: windowMs }]
      const limiter = upstreamLimiter({ limits, marginMs, store: memoryStore({ clock }) })
      const arrivals: { atMs: number; cost: number }[] = []
      const upstream = async (url: string) => {
        const { thereMs, backMs, isLost } = courses[Number(new URL(url).pathname.slice(1))]!
        await delay(thereMs)
        arrivals.push({ atMs: performance.now(), cost: 1 })
        await delay(backMs)
        if (isLost) throw Object.assign(new Error('lost'), { code: 'ECONNRESET' })
        return new Response()
      }
      const limited = limitedFetch(upstream, limiter, { key: 'k', maxWaitMs: 2 ** 31 - 1, retry: false })
      let left = courses.length
      courses.forEach(async ({ startMs }, i) => {
        await delay(startMs)
        await limited(`http://upstream/${i}`).catch(() => {})
        left--
      })
      for (let turns = 0; left > 0 && turns < 1000; turns++) await vi.advanceTimersByTimeAsync(100)
      expect(left).toBe(0)
      expect(arrivals.length).toBe(courses.length)
      expect(fullestWindow(arrivals, windowMs)).toBeLessThanOrEqual(limit)
    } finally {
      vi.useRealTimers()
    }
  })
  await fc.assert(property, { numRuns: 100 })
})
