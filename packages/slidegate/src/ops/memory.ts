// The view that an operation has of the memory store: the logs of its keys, and room for more.

import type { Logs } from '../limits/limit.ts'
import type { Log } from '../limits/limit-set.ts'
import type { OverrideChange, Overrides, OverridesOutcome, Part } from './request.ts'

/** A log, as `check` found it. */
export interface CheckedLog {
  log: Log
  /** Limits of the parts before its own. */
  first: number
  /** Units within each limit's window before the op. */
  readonly used: number[]
  /** Units that one request takes of it. */
  cost: number
  /** Units that the op has charged. */
  charged: number
}

/** A log of an op in memory. */
export interface LoadedLog extends CheckedLog {
  /** Its key's slot in the table; 0 while it has none. */
  slot: number
  /** Where it is kept, and its number there: 0 while its key has no slot. */
  logs: Logs
  number: number
  /** Which of the op's parts it belongs to. */
  part: number
}

/** The logs of an op, over all of its parts in order. */
export type Loaded = readonly LoadedLog[]

export function stateOf({ logs, number }: LoadedLog): unknown {
  return logs.at(number)
}

/** The answer to a new key for which there is no room. */
export type OnFull = 'throw' | 'deny' | 'allow'

/** The store, while it decides an op. */
export interface Memory {
  readonly clockMs: number
  /** The logs of the op's keys; none yet if the op has other keys. */
  readonly loaded: Loaded
  /** The one instant of the op: see `settleInstant`. */
  readonly nowMs: number
  /** Overrides in force before the op. */
  readonly overrides: Overrides
  readonly onFull: OnFull
  /** When the first of the keys that fill it opens. */
  readonly opensAtMs: number
  load(parts: readonly Part[]): Loaded
  /** Makes room, and logs, for the keys that have none yet. Returns whether it could. */
  makeRoom(): boolean
  /** Keeps what was written of them. */
  keep(): void
  /** Forgets the keys. */
  forget(): void
  /** The error to throw if there is no room. */
  full(): Error
  changeOverrides(parts: readonly Part[], change: OverrideChange): void
  /** A page of the overrides of a limiter. */
  listOverrides(limiter: string, after: string): OverridesOutcome
}
