import type { OnStoreError } from '../../../src/index.ts'
import type { CallOutcome } from './calls.ts'
import type { MatrixClient } from './clients.ts'
import type { Fault } from './fault.ts'
import { percentile } from './meter.ts'
import type { Subject } from './subject.ts'

/** Times by `performance.now()`. */
export interface Moments {
  readonly injectedMs: number
  readonly healMs: number
  /** When the store could be called again. */
  readonly returnedMs: number
}

export interface PolicyReport {
  readonly policy: OnStoreError
  /** Calls that ended during or after the fault. */
  readonly calls: number
  readonly p99Ms: number
  readonly longestMs: number
  /** Results of calls from the start of the fault until the store was back. */
  readonly meanwhile: ReadonlyMap<CallOutcome, number>
  /** Requests that were sent and not answered, on the limiter whose charges are counted. */
  readonly unanswered: number
  /** The time from the return of the store until it answered all calls. */
  readonly backMs: number
  /** The most units above its limit in any window without a loss of data. */
  readonly over: number
  /** The same for all windows, including those with a loss of data. */
  readonly overAcross: number
  /** Units that the store reported as admitted, but didn't charge. */
  readonly uncharged: number
  /** Units charged beyond all admitted requests and all that were sent and not answered. */
  readonly overcharged: number
  /** Requests admitted for a new key. */
  readonly afresh: { readonly admitted: number; readonly limit: number }
  readonly changes: readonly (readonly string[])[]
  /** Errors that no call should ever throw. */
  readonly strange: readonly unknown[]
}

/** The results of a fault with a client. */
export interface Report {
  readonly fault: Fault
  readonly client: MatrixClient
  readonly policies: readonly PolicyReport[]
  /** How long it took the store to return after the cause was removed. */
  readonly healMs: number
  /** How late timers of 50 ms were during the fault. */
  readonly lateMs: readonly number[]
  /** The slowest of the control calls during the fault. 0 if there were none, because the fault affects them too. */
  readonly controlMs: number
  /** The longest time that this process blocked its event loop. `stoodMs` includes hangs for other reasons. */
  readonly blockedMs: number
  readonly stoodMs: number
  readonly grownBytes: number
}

export async function policyReport(
  subject: Subject,
  { injectedMs, returnedMs }: Moments,
  backMs: number,
  { keepsData }: Fault,
): Promise<PolicyReport> {
  const { calls } = subject
  const durationsMs = calls.durationsMs(injectedMs)
  const keys = Number.isFinite(backMs) ? await subject.charges() : []
  const lost = { fromMs: epochMs(injectedMs), toMs: epochMs(returnedMs) }
  const admitted = sum(keys.map(({ admitted }) => admitted))
  const charged = sum(keys.map(({ charged }) => charged))
  return {
    policy: subject.policy,
    calls: durationsMs.length,
    p99Ms: percentile(durationsMs, 99),
    longestMs: percentile(durationsMs, 100),
    meanwhile: calls.outcomes(injectedMs, returnedMs + backMs),
    unanswered: subject.unanswered,
    backMs,
    // Admissions before and after a loss of data aren't in one window.
    over: keepsData
      ? subject.over(() => true)
      : Math.max(
          subject.over(({ atMs }) => atMs < lost.fromMs),
          subject.over(({ atMs }) => atMs > lost.toMs),
        ),
    overAcross: subject.over(() => true),
    uncharged: keepsData ? sum(keys.map(({ admitted, charged }) => Math.max(0, admitted - charged))) : 0,
    overcharged: keepsData ? Math.max(0, charged - admitted - subject.unanswered) : 0,
    afresh: Number.isFinite(backMs) ? await subject.admittedAfresh() : { admitted: 0, limit: 0 },
    changes: subject.changes,
    strange: subject.strange,
  }
}

function epochMs(ms: number): number {
  return performance.timeOrigin + ms
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
