// The report of a replay, as printed by --json.

import type { Caller } from '../counts/callers.ts'
import type { NeedsOfWindow } from '../counts/needed-limits.ts'
import type { LimitResult } from '../counts/results.ts'
import type { Compared } from '../limit-option.ts'
import type { BadLine } from '../log/parse-line.ts'
import type { ReorderBuffer } from '../log/reorder-buffer.ts'
import type { Replayed, Run } from '../replay.ts'

/** The JSON output. Each line of the log is counted in either `requests` or `skipped`. */
export interface Report {
  /** Decided requests: `admitted` plus `denied`. */
  readonly requests: number
  /** Lines that couldn't be parsed, or were too far out of order to be sorted. */
  readonly skipped: number
  readonly admitted: number
  readonly denied: number
  readonly limits: readonly LimitResult[]
  /** Number of skipped lines by reason. */
  readonly skippedReasons: Readonly<Record<string, number>>
  readonly badLines: readonly BadLine[]
  readonly topDenied: readonly Caller[]
  /** Times of the first and last request. */
  readonly span: { readonly from: string; readonly to: string; readonly ms: number } | null
  /** Requests decided early because the reorder buffer was full. */
  readonly releasedEarly: number
  /** Number of callers that the store dropped while their usage still counted. */
  readonly forgottenCallers: number
  /** The limits that callers would need. Empty if there were no requests. */
  readonly neededLimits: readonly NeedsOfWindow[]
  /** The result for the kind of limit given with --compare. */
  readonly compare?: {
    readonly kind: Compared
    readonly admitted: number
    readonly denied: number
    readonly limits: readonly LimitResult[]
  }
}

export function reportOf(
  replayed: Replayed,
  buffer: ReorderBuffer,
  top: number,
  neededLimits: readonly NeedsOfWindow[],
  run: Run,
  compared?: Run,
  kind: Compared = 'fixed',
): Report {
  const { requests, skipped, fromMs, toMs } = replayed
  return {
    requests,
    skipped: skipped.count,
    admitted: run.results.admitted,
    denied: run.results.denied,
    limits: run.results.limits(),
    skippedReasons: Object.fromEntries(skipped.reasons),
    badLines: skipped.first,
    topDenied: run.results.topDenied(top),
    span: requests === 0 ? null : { from: isoTime(fromMs), to: isoTime(toMs), ms: toMs - fromMs },
    releasedEarly: buffer.releasedEarly,
    forgottenCallers: forgottenBy(run) + (compared === undefined ? 0 : forgottenBy(compared)),
    neededLimits,
    compare: compared && {
      kind,
      admitted: compared.results.admitted,
      denied: compared.results.denied,
      limits: compared.results.limits(),
    },
  }
}

function forgottenBy({ decider, results }: Run): number {
  return decider.forgotten() + results.forgotten
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
