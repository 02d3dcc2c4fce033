// The report of a replay, as --json prints it.

import type { Caller } from '../counts/callers.ts'
import type { LimitResult } from '../counts/tally.ts'
import type { Compared } from '../limit-option.ts'
import type { BadLine } from '../log/parse-line.ts'
import type { ReorderBuffer } from '../log/reorder-buffer.ts'
import type { Replayed, Run } from '../replay.ts'

/** What `--json` prints. Every line of the log is one of `requests` or of `skipped`. */
export interface Report {
  /** Those that were decided: `admitted` and `denied`. */
  readonly requests: number
  /** Lines that could not be read, or came too late to be decided in the order of time. */
  readonly skipped: number
  readonly admitted: number
  readonly denied: number
  readonly limits: readonly LimitResult[]
  /** How many lines were skipped for which reason. */
  readonly skippedReasons: Readonly<Record<string, number>>
  /** The first lines that were skipped. */
  readonly badLines: readonly BadLine[]
  readonly topDenied: readonly Caller[]
  /** When the first and the last request were made. */
  readonly span: { readonly from: string; readonly to: string; readonly ms: number } | null
  /** Requests decided before all that might precede them had been read, for want of room. */
  readonly releasedEarly: number
  /** Callers forgotten while they still counted, for want of room. */
  readonly forgottenCallers: number
  /** The same requests, had the limits been counted otherwise. */
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
  run: Run,
  compared?: Run,
  kind: Compared = 'fixed',
): Report {
  const { requests, skipped, fromMs, toMs } = replayed
  return {
    requests,
    skipped: skipped.count,
    admitted: run.tally.admitted,
    denied: run.tally.denied,
    limits: run.tally.limits(),
    skippedReasons: Object.fromEntries(skipped.reasons),
    badLines: skipped.first,
    topDenied: run.tally.topDenied(top),
    span: requests === 0 ? null : { from: isoTime(fromMs), to: isoTime(toMs), ms: toMs - fromMs },
    releasedEarly: buffer.releasedEarly,
    forgottenCallers: forgottenBy(run) + (compared === undefined ? 0 : forgottenBy(compared)),
    compare: compared && {
      kind,
      admitted: compared.tally.admitted,
      denied: compared.tally.denied,
      limits: compared.tally.limits(),
    },
  }
}

function forgottenBy({ decider, tally }: Run): number {
  return decider.forgotten() + tally.forgotten
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
