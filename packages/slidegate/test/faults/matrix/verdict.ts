import type { Fault } from './fault.ts'
import { percentile } from './meter.ts'
import type { PolicyReport, Report } from './report.ts'
import { slownessOf } from './slow-clients.ts'
import { TIMEOUT_MS } from './subject.ts'

/** Tolerances. */
export interface Bounds {
  /** Time beyond the deadline, for the machine's scheduling. */
  readonly slackMs: number
  readonly backWithinMs: number
  readonly blockedMs: number
  /** The share of calls that the store must answer during an unnoticeable fault. */
  readonly answeredShare: number
  /** If timers are later than this (99th percentile), call times aren't checked. */
  readonly starvedMs: number
  /** If a control call takes longer than this, `answeredShare` isn't checked. */
  readonly controlMs: number
}

/** The documented guarantees. */
export const STRICT: Bounds = {
  slackMs: 20,
  backWithinMs: 1000,
  blockedMs: 100,
  answeredShare: 0.98,
  starvedMs: Number.POSITIVE_INFINITY,
  controlMs: Number.POSITIVE_INFINITY,
}

/** Tolerances for a busy machine. */
export const LOOSE: Bounds = {
  slackMs: 150,
  backWithinMs: 4000,
  blockedMs: 250,
  answeredShare: 0.8,
  starvedMs: TIMEOUT_MS / 2,
  // Limiters do more per call than a ping, so they would exceed the deadline first, and open their circuit breakers.
  controlMs: 0.8 * TIMEOUT_MS,
}

/** Checks only the guarantees that don't depend on time. */
export const TIMELESS: Bounds = {
  slackMs: Number.POSITIVE_INFINITY,
  backWithinMs: Number.POSITIVE_INFINITY,
  blockedMs: Number.POSITIVE_INFINITY,
  answeredShare: 0,
  starvedMs: Number.POSITIVE_INFINITY,
  controlMs: Number.POSITIVE_INFINITY,
}

const GROWN_BYTES_MAX = 6_000_000

/** Returns the guarantees that were broken. */
export function complaintsOf(report: Report, bounds: Bounds): string[] {
  const { fault, policies, lateMs, controlMs, blockedMs, stoodMs, grownBytes } = report
  const late99Ms = percentile(lateMs, 99)
  const isStarved = late99Ms > bounds.starvedMs
  // A timer that was this late shows that the machine was slow.
  const slackMs = isStarved
    ? Number.POSITIVE_INFINITY
    : Math.max(bounds.slackMs, late99Ms + bounds.slackMs / 2)
  const answeredShare = controlMs > bounds.controlMs ? 0 : bounds.answeredShare
  // The client itself may be slow.
  const theirs = slownessOf(fault, report.client).map(({ backWithinMs }) => backWithinMs)
  // No client recovers while this process hangs.
  const backWithinMs = Math.max(bounds.backWithinMs, fault.backWithinMs ?? 0, ...theirs) + stoodMs
  const complaints = policies.flatMap((of) =>
    complaintsOfPolicy(of, fault, { ...bounds, slackMs, backWithinMs, answeredShare }),
  )
  if (blockedMs > bounds.blockedMs)
    complaints.push(`the event loop was blocked for ${blockedMs.toFixed()} ms`)
  if (grownBytes > GROWN_BYTES_MAX) complaints.push(`memory grew by ${grownBytes} bytes`)
  return complaints
}

function complaintsOfPolicy(report: PolicyReport, { isFelt }: Fault, bounds: Bounds): string[] {
  const { policy, p99Ms, backMs, over, uncharged, overcharged, afresh, changes, strange } = report
  const complaints: string[] = []
  const complain = (what: string) => complaints.push(`${policy}: ${what}`)
  const p99MaxMs = TIMEOUT_MS + bounds.slackMs
  if (p99Ms > p99MaxMs) {
    complain(`the 99th percentile of calls took ${p99Ms.toFixed()} ms, more than ${p99MaxMs.toFixed()}`)
  }
  if (backMs > bounds.backWithinMs) complain(`back after ${backMs.toFixed()} ms`)
  if (over > 0) complain(`a window held ${over} units too many`)
  if (uncharged > 0) complain(`${uncharged} units were admitted by the store, but not charged`)
  if (overcharged > 0) complain(`${overcharged} units were charged for no request`)
  if (strange.length > 0) complain(`calls failed with ${[...new Set(strange.map(String))].join(', ')}`)
  if (isFelt === 'surely' && shareOfStore(report) > 0.99) complain('the fault had no effect')
  if (isFelt === 'never' && shareOfStore(report) < bounds.answeredShare) {
    complain(`only ${(100 * shareOfStore(report)).toFixed()}% of calls were answered by the store`)
  }
  // The other guarantees are for clients that have recovered.
  if (backMs === Number.POSITIVE_INFINITY) return complaints
  if (afresh.admitted !== afresh.limit)
    complain(`${afresh.admitted} of ${afresh.limit} were admitted for a new key`)
  if (!changes.every(alternate)) complain(`events were ${changes.map((of) => of.join(' ')).join(' and ')}`)
  return complaints
}

/** Whether the events alternate, starting with `down` and ending with `up`. */
function alternate(changes: readonly string[]): boolean {
  return changes.length % 2 === 0 && changes.every((change, i) => change === (i % 2 === 0 ? 'down' : 'up'))
}

function shareOfStore({ meanwhile }: PolicyReport): number {
  const all = [...meanwhile.values()].reduce((sum, count) => sum + count, 0)
  return (meanwhile.get('store') ?? 0) / all
}
