import type { Told } from './calls.ts'
import { percentile } from './meter.ts'
import type { PolicyReport, Report } from './report.ts'

/** What is kept of a report. */
export interface Result {
  readonly fault: string
  readonly client: string
  /** Why requests had no answer of the store, with the most frequent first. */
  readonly reasons: string
  /** Of a hundred requests meanwhile, how many had none. */
  readonly feltPercent: number
  readonly p99Ms: number
  readonly longestMs: number
  /** By how much a timer of 50 ms was late, 99th percentile: the machine's part in it. */
  readonly lateMs: number
  /** From the return of the store until it answers all again; -1 if it took too long to wait for. */
  readonly backMs: number
  /** How long the event loop was blocked by this process. */
  readonly blockedMs: number
  readonly grownKb: number
  /** Units beyond the limit in a window that holds a loss of data. */
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

/** Only a policy that throws says why. */
function reasonsOf(policies: readonly PolicyReport[]): string {
  const thrown = policies.find(({ policy }) => policy === 'throw')
  const reasons = [...(thrown?.meanwhile ?? new Map<Told, number>())].filter(([told]) => told !== 'store')
  return reasons
    .sort(([, a], [, b]) => b - a)
    .map(([told]) => told)
    .join(' ')
}

function feltShare({ meanwhile }: PolicyReport): number {
  const all = [...meanwhile.values()].reduce((sum, count) => sum + count, 0)
  return all === 0 ? 0 : 1 - (meanwhile.get('store') ?? 0) / all
}

function round(value: number): number {
  return Math.round(value)
}
