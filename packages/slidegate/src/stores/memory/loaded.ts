import type { Logs } from '../../limits/limit.ts'
import type { Log } from '../../limits/limit-set.ts'

/** A log of an op. */
export interface LoadedLog {
  log: Log
  /** Its key's slot in the table; 0 while it has none. */
  slot: number
  /** Where it is kept, and its number there: 0 while its key has no slot. */
  logs: Logs
  number: number
  /** Which of the op's parts it belongs to, and the number of limits of those before. */
  part: number
  first: number
  /** Units within each limit's window before the op, as `check` finds them. */
  readonly used: number[]
  /** Units that one request takes of it. */
  cost: number
  /** Units that the op has charged. */
  charged: number
}

/** The logs of an op, over all of its parts in order. */
export type Loaded = readonly LoadedLog[]

export function stateOf({ logs, number }: LoadedLog): unknown {
  return logs.at(number)
}
