// THE contract of an operation: one file for each, and a line in table.ts. Its twin in the script is the .lua file of the same
// name; decisions are made by driver.lua itself.

import type { Entry } from '../limits/limit.ts'
import type { Memory } from './memory.ts'
import type { AnyOp, ConsumeOutcome, Debit, ExplainOutcome, Named, OverridesOutcome } from './request.ts'

/**
 * What an op does to room: `look` writes nothing, `charge` takes some, `renew` keeps what is taken, and `free` gives some back
 * and may remove keys.
 */
export type Effect = 'look' | 'charge' | 'renew' | 'free'

/**
 * The work per log, by which stores estimate how long an op takes.
 *
 * - `remove` deletes the log. `write` adds units. `find` searches for an entry and writes its units.
 * - `take` removes units from the middle. `search` computes times. `read` lists all entries.
 * - `override` writes an override. `page` reads up to a page of them.
 */
export type Work = 'remove' | 'write' | 'find' | 'take' | 'search' | 'read' | 'override' | 'page'

/**
 * The type of a field. The service checks it, and a Cluster splits fields that have a value per part or log.
 * A `?` at the end marks an optional field.
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
export interface OpKind<Asked extends AnyOp, Told> {
  readonly effect: Effect
  readonly work: Work
  /** Its fields besides its parts, as sent to a service. */
  readonly fields: { readonly [Name in Exclude<keyof Asked, keyof AnyOp | 'source' | Optional>]-?: Field } & {
    readonly [Name in Optional]?: Field
  }
  /** Whether it counts units, so that each of its sets needs limits. */
  readonly counts?: boolean
  /** Set if it has other keys than its logs: these and the index of overrides, or only the index. */
  readonly keys?: 'andIndex' | 'index'
  /** Whether it leaves logs alone that are ahead of the clock. */
  readonly leavesStamps?: boolean
  /** Decides it in memory. */
  apply(op: Asked, memory: Memory): Told
  /** For decisions: appends words for the script, and returns the options. See driver.lua. */
  encode?(op: Asked, words: string[]): number
  /** For other ops: what its JSON has besides its fields. */
  json?(op: Asked): object
  /** Reads the outcome from the reply of the script, a service, or several servers. Left out if there is none. */
  answer?(reply: Reply): Told
  /**
   * On a Cluster, the op for one server of several. Returns nothing if there is nothing to do.
   *
   * @param op that for the server's parts
   * @param debit the charge of the first of these, if servers have charged them apart
   */
  forServer?(op: Asked, debit: Debit | undefined): Asked | undefined
}

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
