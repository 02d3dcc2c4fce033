// THE contract of an operation: one file each, and a line in all.ts. Its twin in the script is the .lua file of the same name;
// driver.lua makes decisions itself.

import type { Entry } from '../limits/limit.ts'
import type { Memory } from './memory.ts'
import type { AnyOp, ConsumeOutcome, Debit, ExplainOutcome, Named, OverridesOutcome } from './request.ts'

/**
 * The effect of an op on the room of its keys.
 *
 * - `look` writes nothing. In memory it works on copies of logs that are ahead of the clock.
 * - `charge` takes room, or makes answers to later requests worse. The deny cache drops its denials.
 * - `renew` keeps room taken for longer. The deny cache keeps its denials.
 * - `free` frees room and may remove keys. The deny cache drops its denials, and waiters wake up.
 */
export type Effect = 'look' | 'charge' | 'renew' | 'free'

/**
 * The work per log, from which stores estimate how long an op takes.
 *
 * - `remove` deletes the log. `write` adds units, or rewrites a small log. `find` searches for an entry and writes its units.
 * - `take` removes units from the middle. `search` computes times. `read` lists all entries.
 * - `override` writes an override. `page` reads up to a page of them.
 */
export type Work = 'remove' | 'write' | 'find' | 'take' | 'search' | 'read' | 'override' | 'page'

/**
 * The type of a field. The service checks it. On a Cluster, fields with a value per part or log are split.
 *
 * A trailing `?` marks an optional field. `time` is a duration, `untilEnd` one that may be infinite, `whole` an instant or
 * another integer from 0. `READERS` of stores/remote/ops.ts has the ranges.
 */
export type FieldKind =
  | 'one'
  | 'count'
  | 'units'
  | 'whole'
  | 'integer'
  | 'time'
  | 'untilEnd'
  | 'flag'
  | 'flagPerLog'
  | 'integerPerPart'
  | 'debitPerPart'
  | 'keyPerPart'
  | 'id'
  | 'name'
  | 'rule'
  | 'bucket'
  | 'place'

export type Field = FieldKind | `${FieldKind}?`

/** Fields that an op may omit when it is sent to the service. */
type Optional = keyof Named | 'debits'

/** An operation. */
export interface OpKind<Asked extends AnyOp, Result> {
  readonly effect: Effect
  readonly work: Work
  /** Its fields except `parts`, as sent to a service. */
  readonly fields: { readonly [Name in Exclude<keyof Asked, keyof AnyOp | 'source' | Optional>]-?: Field } & {
    readonly [Name in Optional]?: Field
  }
  /** Whether it counts units, and so needs limits in each of its sets. */
  readonly counts?: boolean
  /** Keys besides its logs: `andIndex` adds the index of overrides, `index` replaces the logs with it. */
  readonly keys?: 'andIndex' | 'index'
  /**
   * Whether logs ahead of the clock stay unchanged. Otherwise they are restamped: in memory before the op, in Lua before it
   * writes.
   */
  readonly leavesStamps?: boolean
  /** Decides it in memory. */
  apply(op: Asked, memory: Memory): Result
  /** For decisions: appends words for the script, and returns the options. See driver.lua. */
  encode?(op: Asked, words: string[]): number
  /** For other ops: additional fields of their JSON. */
  json?(op: Asked): object
  /** Reads the outcome from the reply of the script, a service or several servers. Omitted if there is none. */
  answer?(reply: Reply): Result
  /**
   * On a Cluster: the op for one server of several. `undefined` if there is nothing to do.
   *
   * @param op with only the server's parts
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
  /** Per log, over all parts in order. Empty if they were omitted. */
  unitsPerLog(name: string, areThere?: boolean): readonly number[]
  entriesPerLog(name: string): readonly (readonly Entry[])[]
  decision(): ConsumeOutcome
  explanation(): ExplainOutcome
  page(): OverridesOutcome
}
