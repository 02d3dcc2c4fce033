// The contract of an operation. For its Redis script, see the .lua file of the same name, or driver.lua for decisions.

import type { Entry, Logs } from '../limits/limit.ts'
import type { Log } from '../limits/limit-set.ts'
import type {
  AnyOp,
  ConsumeOutcome,
  Debit,
  ExplainOutcome,
  Named,
  OverrideChange,
  Overrides,
  OverridesOutcome,
  Part,
} from './request.ts'

/**
 * How an op affects later requests for its keys.
 *
 * - `look` writes nothing. If a log is ahead of the clock, the memory store restamps a copy of it instead.
 * - `charge` uses units, so later requests may be denied or wait longer. The deny cache drops denials of the op's keys.
 * - `renew` extends the time for which units are in use. The deny cache keeps denials of the op's keys.
 * - `free` frees units and may remove keys. The deny cache drops denials of the op's keys, and waiters try again.
 */
export type Effect = 'look' | 'charge' | 'renew' | 'free'

/** Work per log, to estimate an op's duration. `take` removes units from the middle of a log. `search` computes times. */
export type Work = 'remove' | 'write' | 'find' | 'take' | 'search' | 'read' | 'override' | 'page'

/** The type of a field. `READERS` in stores/remote/ops.ts has the ranges. On a Cluster, lists are split by server. */
export type FieldKind = NumberKind | TextKind | ListKind | 'flag'
type NumberKind = 'one' | 'count' | 'units' | 'whole' | 'integer' | 'time' | 'untilEnd' | 'bucket'
type TextKind = 'id' | 'name' | 'rule' | 'place'
type ListKind = 'flagPerLog' | 'integerPerPart' | 'debitPerPart' | 'keyPerPart'

/** A trailing `?` marks an optional field. */
export type Field = FieldKind | `${FieldKind}?`

export const NAMED = { requestId: 'id?', mayRepeat: 'flag?' } as const

/** Fields that an operation's `fields` may omit. */
type Optional = keyof Named | 'debits'

export interface OpKind<Asked extends AnyOp, Result> {
  readonly effect: Effect
  readonly work: Work
  /** The op's fields except `parts`, as sent to a service. */
  readonly fields: { readonly [Name in Exclude<keyof Asked, keyof AnyOp | 'source' | Optional>]-?: Field } & {
    readonly [Name in Optional]?: Field
  }
  /** Whether each limit set in the op must have at least one limit. */
  readonly counts?: boolean
  /** Keys other than those of logs. `andIndex` adds the index of overrides; `index` means only the index. */
  readonly keys?: 'andIndex' | 'index'
  /** Whether the op keeps the stamps of logs that are ahead of the clock. Other ops restamp such logs before they write. */
  readonly leavesStamps?: boolean
  apply(op: Asked, memory: Memory): Result
  /** For decisions: appends the op's arguments for the script to `words`, and returns the options. See driver.lua. */
  encode?(op: Asked, words: string[]): number
  /** For other operations: additional fields of the op's JSON. */
  json?(op: Asked): object
  /** Reads the outcome from the script's reply. Omitted if the op has no outcome. */
  answer?(reply: Reply): Result
  /**
   * On a Cluster: adapts an op that has only one server's parts. `undefined` if that server has nothing to do.
   *
   * @param debit the charge of the first part, if servers charged the parts separately
   */
  forServer?(op: Asked, debit: Debit | undefined): Asked | undefined
}

// The script options for an op: see the top of driver.lua.

export const LOOK = 1
export const FORCED = 2
export const WAITING = 4
export const MAY_REPEAT = 8
export const IDS = 16
export const LEASE = 32
export const RESERVATION_NAME = 64
export const EXPLAIN = 128
export const CHARGES = 256
export const HOLD = 512
export const RARE = 1024
export const CLOCK = 2048

/** Reads the reply to an op, by the field names in the op's outcome. */
export interface Reply {
  /** @param by whether every server must return true, or just one */
  flag(name: string, by: 'every' | 'some'): boolean
  /** The units of every log, across all parts, in order. Empty if `areThere` is false: the reply then omits them. */
  unitsPerLog(name: string, areThere?: boolean): readonly number[]
  entriesPerLog(name: string): readonly (readonly Entry[])[]
  decision(): ConsumeOutcome
  explanation(): ExplainOutcome
  page(): OverridesOutcome
}

/** A log with the results of its `check`. The objects are reused by later ops. */
export class CheckedLog {
  log!: Log
  /** The number of limits in the parts before the log's own part. */
  first = 0
  /** The units in each limit's window before the op. */
  readonly used: number[] = []
  cost = 0
  charged = 0
}

/** A log in memory. */
export class LoadedLog extends CheckedLog {
  /** The slot of the log's key in the table, or 0. */
  slot = 0
  /** Where the log is stored. */
  logs!: Logs
  /** The log's number in `logs`, or 0 while its key has no slot. */
  number = 0
  /** Index, within the op, of the part that the log belongs to. */
  part = 0
}

/** The logs of all parts in order. */
export type Loaded = readonly LoadedLog[]

export function stateOf({ logs, number }: LoadedLog): unknown {
  return logs.at(number)
}

/** The result for a new key if the store is full. */
export type OnFull = 'throw' | 'deny' | 'allow'

/** The memory store, as an operation sees it. */
export interface Memory {
  /** The op's logs. Empty if the op's keys aren't logs. */
  readonly loaded: Loaded
  /** See `settleInstant`. */
  readonly nowMs: number
  /** Overrides in force before the op. */
  readonly overrides: Overrides
  readonly onFull: OnFull
  /** If the store is full: the earliest time at which a key has room again. */
  readonly opensAtMs: number
  load(parts: readonly Part[]): Loaded
  /** Makes room for new keys, which are added after the op. Creates their logs. Returns whether there is room. */
  makeRoom(): boolean
  forget(): void
  full(): Error
  changeOverrides(parts: readonly Part[], change: OverrideChange): void
  listOverrides(limiter: string, after: string): OverridesOutcome
}
