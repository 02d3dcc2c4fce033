import type { OnStoreError } from '../../../src/index.ts'
import type { Told } from './calls.ts'
import type { MatrixClient } from './clients.ts'
import type { Fault } from './fault.ts'
import { percentile } from './meter.ts'
import type { Subject } from './subject.ts'

/** By `performance.now()`. */
export interface Moments {
  readonly injectedMs: number
  readonly healMs: number
  /** When the store could be asked again. */
  readonly returnedMs: number
}

export interface PolicyReport {
  readonly policy: OnStoreError
  /** Calls that ended while the fault was there, or after it. */
  readonly calls: number
  readonly p99Ms: number
  readonly longestMs: number
  /** What calls were told from the beginning of the fault until the store was back. */
  readonly meanwhile: ReadonlyMap<Told, number>
  /** Requests that were sent and not answered, of the limiter whose charges are counted. */
  readonly unanswered: number
  /** From the return of the store until it answered all. */
  readonly backMs: number
  /** How many units more than its limit a window held, while the store kept its data. */
  readonly over: number
  /** The same for all windows, those that hold the loss among them. */
  readonly overAcross: number
  /** Units that the store was said to have admitted, and has not charged. */
  readonly uncharged: number
  /** Units that it has charged beyond those and all that were given up. */
  readonly overcharged: number
  /** Of a key that nobody had asked for before. */
  readonly afresh: { readonly admitted: number; readonly limit: number }
  readonly changes: readonly (readonly string[])[]
  /** What calls failed with that they never should. */
  readonly strange: readonly unknown[]
}

/** What came of a fault with a client. */
export interface Report {
  readonly fault: Fault
  readonly client: MatrixClient
  readonly policies: readonly PolicyReport[]
  /** How long it took the store to return, once the cause was gone. */
  readonly healMs: number
  /** By how much timers of 50 ms were late meanwhile. */
  readonly lateMs: readonly number[]
  /** The longest that the event loop stood still by the doing of this process; and at all. */
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
  const told = sum(keys.map(({ told }) => told))
  const charged = sum(keys.map(({ charged }) => charged))
  return {
    policy: subject.policy,
    calls: durationsMs.length,
    p99Ms: percentile(durationsMs, 99),
    longestMs: percentile(durationsMs, 100),
    meanwhile: calls.told(injectedMs, returnedMs + backMs),
    unanswered: subject.unanswered,
    backMs,
    // What was admitted before data was lost and what was admitted after that are not in one window.
    over: keepsData
      ? subject.over(() => true)
      : Math.max(
          subject.over(({ atMs }) => atMs < lost.fromMs),
          subject.over(({ atMs }) => atMs > lost.toMs),
        ),
    overAcross: subject.over(() => true),
    uncharged: keepsData ? sum(keys.map(({ told, charged }) => Math.max(0, told - charged))) : 0,
    overcharged: keepsData ? Math.max(0, charged - told - subject.unanswered) : 0,
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
