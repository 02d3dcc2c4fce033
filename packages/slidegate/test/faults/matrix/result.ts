import type { CallOutcome } from './calls.ts'
import { percentile } from './meter.ts'
import type { PolicyReport, Report } from './report.ts'

/** The part of a report that is stored. */
export interface Result {
  readonly fault: string
  readonly client: string
  /** Why requests weren't answered by the store, most frequent first. */
  readonly reasons: string
  /** The percentage of requests during the fault that the store didn't answer. */
  readonly feltPercent: number
  readonly p99Ms: number
  readonly longestMs: number
  /** How late timers of 50 ms were (99th percentile). This much of a delay is caused by the machine. */
  readonly lateMs: number
  /** The time from the return of the store until it answers all calls. It is -1 if that took too long. */
  readonly backMs: number
  /** How long this process blocked the event loop. */
  readonly blockedMs: number
  readonly grownKb: number
  /** Units above the limit in a window with a loss of data. */
  readonly overAcross: number
  readonly complaints: string
}

export function resultOf(report: Report, complaints: readonly string[]): Result {
  const { fault, client, policies, lateMs, blockedMs, grownBytes } = report
  const most = (value: (policy: PolicyReport) => number) => Math.max(...policies.map(value))
  const backMs = most(({ backMs }) => backMs)
  return {
    fault: fault.name,
    client: client.name,
    reasons: reasonsOf(policies),
    feltPercent: round(most((policy) => 100 * feltShare(policy))),
    p99Ms: round(most(({ p99Ms }) => p99Ms)),
    longestMs: round(most(({ longestMs }) => longestMs)),
    lateMs: round(percentile(lateMs, 99)),
    backMs: Number.isFinite(backMs) ? round(backMs) : -1,
    blockedMs: round(blockedMs),
    grownKb: round(grownBytes / 1000),
    overAcross: most(({ overAcross }) => overAcross),
    complaints: complaints.join('; '),
  }
}

/** Returns the reasons. Only the policy `throw` reports them. */
function reasonsOf(policies: readonly PolicyReport[]): string {
  const thrown = policies.find(({ policy }) => policy === 'throw')
  const reasons = [...(thrown?.meanwhile ?? new Map<CallOutcome, number>())].filter(
    ([outcome]) => outcome !== 'store',
  )
  return reasons
    .sort(([, a], [, b]) => b - a)
    .map(([outcome]) => outcome)
    .join(' ')
}

function feltShare({ meanwhile }: PolicyReport): number {
  const all = [...meanwhile.values()].reduce((sum, count) => sum + count, 0)
  return all === 0 ? 0 : 1 - (meanwhile.get('store') ?? 0) / all
}

function round(value: number): number {
  return Math.round(value)
}
