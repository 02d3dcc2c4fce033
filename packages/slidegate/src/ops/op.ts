// THE contract of an operation: one file for each, and a line in all.ts. Its twin in the script is the .lua file of the same
// name; decisions are made by driver.lua itself.

import type { Entry } from '../limits/limit.ts'
import type { Memory } from './memory.ts'
import type { AnyOp, ConsumeOutcome, Debit, ExplainOutcome, Named, OverridesOutcome } from './request.ts'

/**
 * What an op does to the room of its keys.
 *
 * - `look` writes nothing. In memory it works on copies of logs that are ahead of the clock.
 * - `charge` takes room, or makes the answers to later requests worse: the deny cache forgets its denials.
 * - `renew` keeps taken room for longer. The deny cache keeps its denials.
 * - `free` gives room back and may remove keys: the deny cache forgets its denials, and waiters are woken.
 */
export type Effect = 'look' | 'charge' | 'renew' | 'free'

/**
 * The work per log, by which stores estimate how long an op takes.
 *
 * - `remove` deletes the log. `write` adds units, or rewrites a small log. `find` searches for an entry and writes its units.
 * - `take` removes units from the middle. `search` computes times. `read` lists all entries.
 * - `override` writes an override. `page` reads up to a page of them.
 */
export type Work = 'remove' | 'write' | 'find' | 'take' | 'search' | 'read' | 'override' | 'page'

/**
 * The type of a field. The service checks it, and a Cluster splits fields that have a value per part or log.
 * A `?` at the end marks an optional field. `time` is a duration, `untilEnd` one that may be infinite, `whole` an instant or another
 * integer from 0. `READERS` of stores/remote/ops.ts has the ranges.
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

/** Fields that an op may keep from the service. */
type Optional = keyof Named | 'debits'

/** An operation. */
export interface OpKind<Asked extends AnyOp, Result> {
  readonly effect: Effect
  readonly work: Work
  /** Its fields besides its parts, as sent to a service. */
  readonly fields: { readonly [Name in Exclude<keyof Asked, keyof AnyOp | 'source' | Optional>]-?: Field } & {
    readonly [Name in Optional]?: Field
  }
  /** Whether it counts units, so that each of its sets needs limits. */
  readonly counts?: boolean
  /** Other keys than its logs: these and the index of overrides, or only the index. */
  readonly keys?: 'andIndex' | 'index'
  /** Whether logs ahead of the clock stay so. Else memory restamps them first, and the .lua file calls `restamp` before it writes. */
  readonly leavesStamps?: boolean
  /** Decides it in memory. */
  apply(op: Asked, memory: Memory): Result
  /** For decisions: appends words for the script, and returns the options. See driver.lua. */
  encode?(op: Asked, words: string[]): number
  /** For other ops: what its JSON has besides its fields. */
  json?(op: Asked): object
  /** Reads the outcome from the reply of the script, a service, or several servers. Left out if there is none. */
  answer?(reply: Reply): Result
  /**
   * On a Cluster, the op for one server of several. Returns nothing if there is nothing to do.
   *
   * @param op that for the server's parts
   * @param debit the charge of the first of these, if servers have charged them apart
   */
  forServer?(op: Asked, debit: Debit | undefined): Asked | undefined
}

// The options of an op for the script: see the head of driver.lua.

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

/** Reads the answer to an op, by the names of the fields of its outcome. */
export interface Reply {
  /** @param by whether every or some server of several has to say so */
  flag(name: string, by: 'every' | 'some'): boolean
  /** Per log, over all parts in order; none if they were left out. */
  unitsPerLog(name: string, areThere?: boolean): readonly number[]
  entriesPerLog(name: string): readonly (readonly Entry[])[]
  decision(): ConsumeOutcome
  explanation(): ExplainOutcome
  page(): OverridesOutcome
}
