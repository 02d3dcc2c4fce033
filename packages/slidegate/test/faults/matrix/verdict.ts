import type { Fault } from './fault.ts'
import { percentile } from './meter.ts'
import type { PolicyReport, Report } from './report.ts'
import { slownessOf } from './slow-clients.ts'
import { TIMEOUT_MS } from './subject.ts'

/** How much is forgiven. */
export interface Bounds {
  /** Beyond the deadline, for the machine's scheduling. */
  readonly slackMs: number
  readonly backWithinMs: number
  readonly blockedMs: number
  /** Of calls by the store, where nothing should be felt. */
  readonly answeredShare: number
  /** When timers are later than this (99th percentile), the machine is too busy to judge how long calls took. */
  readonly starvedMs: number
  /** When timers are later than this, `answeredShare` is not judged. */
  readonly busyMs: number
}

/** What is promised. */
export const STRICT: Bounds = {
  slackMs: 20,
  backWithinMs: 1000,
  blockedMs: 100,
  answeredShare: 0.98,
  starvedMs: Number.POSITIVE_INFINITY,
  busyMs: Number.POSITIVE_INFINITY,
}

/** For a machine that has other things to do. */
export const LOOSE: Bounds = {
  slackMs: 150,
  backWithinMs: 4000,
  blockedMs: 250,
  answeredShare: 0.8,
  starvedMs: TIMEOUT_MS / 2,
  // Replies that are 20 ms late leave 30 ms, too little on a machine this busy.
  busyMs: TIMEOUT_MS / 5,
}

const GROWN_BYTES_MAX = 6_000_000

/** What is not as it is promised. */
export function complaintsOf(report: Report, bounds: Bounds): string[] {
  const { fault, policies, lateMs, blockedMs, stoodMs, grownBytes } = report
  const late99Ms = percentile(lateMs, 99)
  const isStarved = late99Ms > bounds.starvedMs
  // A timer that was as late as this shows that the machine was.
  const slackMs = isStarved
    ? Number.POSITIVE_INFINITY
    : Math.max(bounds.slackMs, late99Ms + bounds.slackMs / 2)
  const answeredShare = late99Ms > bounds.busyMs ? 0 : bounds.answeredShare
  // A client may be the one who is slow.
  const theirs = slownessOf(fault, report.client).map(({ backWithinMs }) => backWithinMs)
  // While this process stands still nobody comes back.
  const backWithinMs = Math.max(bounds.backWithinMs, fault.backWithinMs ?? 0, ...theirs) + stoodMs
  const complaints = policies.flatMap((of) =>
    complaintsOfPolicy(of, fault, { ...bounds, slackMs, backWithinMs, answeredShare }),
  )
  if (blockedMs > bounds.blockedMs)
    complaints.push(`the event loop was blocked for ${blockedMs.toFixed()} ms`)
  if (grownBytes > GROWN_BYTES_MAX) complaints.push(`memory has grown by ${grownBytes} bytes`)
  return complaints
}

function complaintsOfPolicy(report: PolicyReport, { isFelt }: Fault, bounds: Bounds): string[] {
  const { policy, p99Ms, backMs, over, uncharged, overcharged, afresh, changes, strange } = report
  const complaints: string[] = []
  const complain = (what: string) => complaints.push(`${policy}: ${what}`)
  const p99MaxMs = TIMEOUT_MS + bounds.slackMs
  if (p99Ms > p99MaxMs) {
    complain(`the 99th percentile of calls took ${p99Ms.toFixed()} ms, not ${p99MaxMs.toFixed()}`)
  }
  if (backMs > bounds.backWithinMs) complain(`back after ${backMs.toFixed()} ms`)
  if (over > 0) complain(`a window held ${over} units too many`)
  if (uncharged > 0) complain(`${uncharged} units were admitted by the store and not charged`)
  if (overcharged > 0) complain(`${overcharged} units were charged that nobody asked for`)
  if (strange.length > 0) complain(`calls failed with ${[...new Set(strange.map(String))].join(', ')}`)
  if (isFelt === 'surely' && shareOfStore(report) > 0.99) complain('nothing was felt of it')
  if (isFelt === 'never' && shareOfStore(report) < bounds.answeredShare) {
    complain(`only ${(100 * shareOfStore(report)).toFixed()}% of calls were answered by the store`)
  }
  // The rest is for those who have come back.
  if (backMs === Number.POSITIVE_INFINITY) return complaints
  if (afresh.admitted !== afresh.limit) complain(`${afresh.admitted} of ${afresh.limit} were admitted afresh`)
  if (!changes.every(alternate)) complain(`it was told ${changes.map((of) => of.join(' ')).join(' and ')}`)
  return complaints
}

/** The store goes down, and comes back, and so on, and is back at last. */
function alternate(changes: readonly string[]): boolean {
  return changes.length % 2 === 0 && changes.every((change, i) => change === (i % 2 === 0 ? 'down' : 'up'))
}

function shareOfStore({ meanwhile }: PolicyReport): number {
  const all = [...meanwhile.values()].reduce((sum, count) => sum + count, 0)
  return (meanwhile.get('store') ?? 0) / all
}
