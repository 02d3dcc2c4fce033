// THE contract of an operation. Its twin in the script is the .lua file of the same name, or driver.lua for decisions.

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
 * The effect of an op on the room of its keys.
 *
 * - `look` writes nothing. In memory, it works on copies of logs that are ahead of the clock.
 * - `charge` takes room, or makes answers to later requests worse. The deny cache drops its keys' denials.
 * - `renew` keeps room taken for longer. The deny cache keeps its keys' denials.
 * - `free` frees room and may remove keys. The deny cache drops its keys' denials, and waiters wake up.
 */
export type Effect = 'look' | 'charge' | 'renew' | 'free'

/** Work per log, to estimate durations. `take` removes units from the middle, and `search` computes times. */
export type Work = 'remove' | 'write' | 'find' | 'take' | 'search' | 'read' | 'override' | 'page'

/** The type of a field. `READERS` of stores/remote/ops.ts has the ranges. On a Cluster, lists are split. */
export type FieldKind = NumberKind | TextKind | ListKind | 'flag'
type NumberKind = 'one' | 'count' | 'units' | 'whole' | 'integer' | 'time' | 'untilEnd' | 'bucket'
type TextKind = 'id' | 'name' | 'rule' | 'place'
type ListKind = 'flagPerLog' | 'integerPerPart' | 'debitPerPart' | 'keyPerPart'

/** A trailing `?` marks an optional field. */
export type Field = FieldKind | `${FieldKind}?`

export const NAMED = { requestId: 'id?', mayRepeat: 'flag?' } as const

/** Fields that the service doesn't require. */
type Optional = keyof Named | 'debits'

export interface OpKind<Asked extends AnyOp, Result> {
  readonly effect: Effect
  readonly work: Work
  /** The op's fields except `parts`, as sent to a service. */
  readonly fields: { readonly [Name in Exclude<keyof Asked, keyof AnyOp | 'source' | Optional>]-?: Field } & {
    readonly [Name in Optional]?: Field
  }
  /** Whether the op needs limits in each of its sets. */
  readonly counts?: boolean
  /** Keys besides the op's logs. `andIndex` adds the index of overrides; `index` has only the index. */
  readonly keys?: 'andIndex' | 'index'
  /** Whether logs ahead of the clock stay unchanged. Otherwise, they are restamped before the op writes. */
  readonly leavesStamps?: boolean
  apply(op: Asked, memory: Memory): Result
  /** For decisions: appends words for the script, and returns the options. See driver.lua. */
  encode?(op: Asked, words: string[]): number
  /** For other operations: additional fields of the op's JSON. */
  json?(op: Asked): object
  /** Omitted if the op has no outcome. */
  answer?(reply: Reply): Result
  /**
   * On a Cluster: adapts an op with one server's parts. `undefined` if that server has nothing to do.
   *
   * @param debit the charge of the first part, if servers charged them separately
   */
  forServer?(op: Asked, debit: Debit | undefined): Asked | undefined
}

// The script options of an op: see the top of driver.lua.

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

/** Reads the answer to an op, by the field names of its outcome. */
export interface Reply {
  /** @param by whether every server must return it, or just one */
  flag(name: string, by: 'every' | 'some'): boolean
  /** Per log, over all parts in order. Empty if the units were omitted. */
  unitsPerLog(name: string, areThere?: boolean): readonly number[]
  entriesPerLog(name: string): readonly (readonly Entry[])[]
  decision(): ConsumeOutcome
  explanation(): ExplainOutcome
  page(): OverridesOutcome
}

/** A log, as `check` found it. */
export interface CheckedLog {
  log: Log
  /** The number of limits in the parts before the log's own part. */
  first: number
  /** Units within the window of each limit before the op. */
  readonly used: number[]
  cost: number
  charged: number
}

/** A log in memory. The objects are reused by later ops. */
export class LoadedLog implements CheckedLog {
  log!: Log
  /** The slot of the log's key in the table, or 0. */
  slot = 0
  /** Where the log is stored. */
  logs!: Logs
  /** The log's number in `logs`, or 0 while its key has no slot. */
  number = 0
  /** Index of the log's part in the op. */
  part = 0
  first = 0
  readonly used: number[] = []
  cost = 0
  charged = 0
}

/** The logs of all parts in order. */
export type Loaded = readonly LoadedLog[]

export function stateOf({ logs, number }: LoadedLog): unknown {
  return logs.at(number)
}

/** The answer to a new key if the store is full. */
export type OnFull = 'throw' | 'deny' | 'allow'

/** The memory store, as an operation sees it. */
export interface Memory {
  readonly clockMs: number
  /** Empty if the op has other keys. */
  readonly loaded: Loaded
  /** See `settleInstant`. */
  readonly nowMs: number
  /** Overrides in force before the op. */
  readonly overrides: Overrides
  readonly onFull: OnFull
  /** If the store is full: when the first key at its limit has room again. */
  readonly opensAtMs: number
  load(parts: readonly Part[]): Loaded
  /** Makes room and logs for new keys, which are added after the op. Returns whether it found room. */
  makeRoom(): boolean
  forget(): void
  full(): Error
  changeOverrides(parts: readonly Part[], change: OverrideChange): void
  listOverrides(limiter: string, after: string): OverridesOutcome
}
