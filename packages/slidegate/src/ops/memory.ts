// An operation's view of the memory store: the logs of its keys, and room for more.

import type { Logs } from '../limits/limit.ts'
import type { Log } from '../limits/limit-set.ts'
import type { OverrideChange, Overrides, OverridesOutcome, Part } from './request.ts'

/** A log, as `check` found it. */
export interface CheckedLog {
  log: Log
  /** The number of limits in the parts before its own. */
  first: number
  /** Units within each limit's window before the op. */
  readonly used: number[]
  /** Units that one request costs in this log. */
  cost: number
  /** Units that the op charged. */
  charged: number
}

/** A log of an op in memory. */
export interface LoadedLog extends CheckedLog {
  /** Its key's slot in the table. 0 if it has none yet. */
  slot: number
  /** Where the log is stored, and its number there. 0 while its key has no slot. */
  logs: Logs
  number: number
  /** Index of its part in the op. */
  part: number
}

/** The logs of an op, over all of its parts in order. */
export type Loaded = readonly LoadedLog[]

export function stateOf({ logs, number }: LoadedLog): unknown {
  return logs.at(number)
}

/** The result for a new key if the store is full. */
export type OnFull = 'throw' | 'deny' | 'allow'

/** The store, while it decides an op. */
export interface Memory {
  readonly clockMs: number
  /** The logs of the op's keys. Empty if the op has other keys. */
  readonly loaded: Loaded
  /** The one instant of the op: see `settleInstant`. */
  readonly nowMs: number
  /** Overrides in force before the op. */
  readonly overrides: Overrides
  readonly onFull: OnFull
  /** When the first key at its limit will have room, if the store is full. */
  readonly opensAtMs: number
  load(parts: readonly Part[]): Loaded
  /** Makes room for the keys that have no logs yet. Returns whether it could. */
  makeRoom(): boolean
  /** Keeps the changes to the logs. */
  keep(): void
  /** Deletes the keys. */
  forget(): void
  /** The error to throw if there is no room. */
  full(): Error
  changeOverrides(parts: readonly Part[], change: OverrideChange): void
  /** A page of a limiter's overrides. */
  listOverrides(limiter: string, after: string): OverridesOutcome
}
