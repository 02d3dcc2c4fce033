import fc from 'fast-check'
import { createLimiter, type Decision, type Limit, memoryStore } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import type { Admission } from '../processes/fullest-window.ts'

/** A step of a caller that wants as many units as possible. */
export type Step =
  | { readonly type: 'ask'; readonly share: number; readonly times: number }
  /** Returns this share of the units of a recent decision. */
  | { readonly type: 'return'; readonly which: number; readonly share: number }
  | { readonly type: 'wait'; readonly share: number }
  /** Waits until the last denied request fits, or a little less or more. */
  | { readonly type: 'untilOpen'; readonly offByMs: number }
  /** Waits for the edge of a window, or until shortly before or after it. */
  | { readonly type: 'untilEdge'; readonly offByMs: number }

/** Shares of the limit or the window: mostly small ones, or all of it. */
const share = fc.oneof(fc.constantFrom(0, 0, 1), fc.double({ min: 0, max: 1, noNaN: true }))
const offByMs = fc.constantFrom(-2, -1, -1, 0, 0, 0, 1)

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant('ask' as const), share, times: fc.constantFrom(1, 2, 20) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('return' as const), which: fc.nat(9), share }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('wait' as const), share }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('untilOpen' as const), offByMs }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('untilEdge' as const), offByMs }) },
)

export const steps: fc.Arbitrary<Step[]> = fc.array(step, { minLength: 1, maxLength: 60, size: 'max' })

interface Held {
  readonly atMs: number
  readonly decision: Decision
  cost: number
}

/** Returns the units that a limit admits over a series of steps, minus refunds. Time only moves forward. */
export async function admissionsOf(
  limit: Limit,
  windowMs: number,
  course: readonly Step[],
): Promise<Admission[]> {
  const clock = new ManualClock(1_700_000_000_000)
  const limiter = createLimiter({ limits: [limit], store: memoryStore({ clock: clock.now }) })
  const held: Held[] = []
  let opensAtMs = 0
  for (const each of course) {
    const nowMs = clock.now()
    if (each.type === 'ask') {
      const cost = 1 + Math.floor(each.share * (limit.limit - 1))
      for (let i = 0; i < each.times; i++) {
        const decision = limiter.consumeSync('k', { cost })
        if (decision.allowed) held.push({ atMs: nowMs, decision, cost })
        else opensAtMs = nowMs + decision.retryAfterMs
      }
    } else if (each.type === 'return') {
      const one = held[held.length - 1 - each.which]
      if (one === undefined || one.cost === 0) continue
      one.cost -= await limiter.refund('k', one.decision, 1 + Math.floor(each.share * (one.cost - 1)))
    } else {
      const edgeMs = (Math.floor(nowMs / windowMs) + 1) * windowMs
      const toMs =
        each.type === 'wait'
          ? nowMs + Math.floor(each.share * 2 * windowMs)
          : (each.type === 'untilOpen' ? opensAtMs : edgeMs) + each.offByMs
      clock.set(Math.max(nowMs, toMs))
    }
  }
  return held.map(({ atMs, cost }) => ({ atMs, cost }))
}

/**
 * Checks `retryAfterMs` after each denied step: the request fits then, and not a millisecond earlier.
 *
 * Returns how many were checked.
 */
export function waitsChecked(limit: Limit, windowMs: number, course: readonly Step[]): number {
  const clock = new ManualClock(1_700_000_000_000)
  const limiter = createLimiter({ limits: [limit], store: memoryStore({ clock: clock.now }) })
  let checked = 0
  for (const each of course) {
    if (each.type === 'wait') clock.advance(Math.floor(each.share * windowMs))
    if (each.type !== 'ask') continue
    const cost = 1 + Math.floor(each.share * (limit.limit - 1))
    const { allowed, retryAfterMs } = limiter.consumeSync('k', { cost })
    if (allowed) continue
    clock.advance(retryAfterMs - 1)
    const early = limiter.consumeSync('k', { cost })
    if (early.allowed || early.retryAfterMs !== 1) throw new Error(`${cost} fits before ${retryAfterMs} ms`)
    clock.advance(1)
    if (!limiter.consumeSync('k', { cost }).allowed)
      throw new Error(`${cost} does not fit after ${retryAfterMs} ms`)
    checked++
  }
  return checked
}
