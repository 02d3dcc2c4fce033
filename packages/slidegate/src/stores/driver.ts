import type { Logs } from '../limits/limit.ts'
import type { Log } from '../limits/limit-set.ts'
import { MAX_AHEAD_MS } from './instant.ts'

// One step, two passes: `check` over all logs of an op, and only if every enforced limit has room, `commit`
// over all logs. The twin of redis/general.lua: same functions, same order.

/** A log of an op. */
export interface LoadedLog {
  log: Log
  /** Its key's slot in the table; 0 while it has none. */
  slot: number
  /** Where it is kept, and its number there: 0 while its key has no slot. */
  logs: Logs
  number: number
  /** Number of limits of the op's parts before the one that the log belongs to. */
  first: number
  /** Units within each limit's window before the op, as `check` finds them. */
  readonly used: number[]
  /** Units that the op has charged. */
  charged: number
}

/** The logs of an op, over all of its parts in order. */
export type Loaded = readonly LoadedLog[]

/**
 * The one instant of an op: the clock's, but not before the newest stamp of any log. A stamp so far ahead
 * that the clock must have been set back does not count: its log will be restamped.
 */
export function settleInstant(loaded: Loaded, clockMs: number): number {
  let nowMs = clockMs
  for (let i = 0; i < loaded.length; i++) {
    const held = loaded[i]!
    const newest = held.log.kind.newest(stateOf(held))
    if (newest > nowMs && newest <= clockMs + MAX_AHEAD_MS) nowMs = newest
  }
  return nowMs
}

/** Restamps the logs that are ahead of a clock that was set back. */
export function restamp(loaded: Loaded, nowMs: number): void {
  for (let i = 0; i < loaded.length; i++) {
    const held = loaded[i]!
    const { kind, params } = held.log
    const state = stateOf(held)
    if (kind.newest(state) > nowMs) kind.restamp(state, params, nowMs)
  }
}

/** How many of `count` requests all enforced limits have room for. */
export function check(loaded: Loaded, nowMs: number, cost: number, count: number): number {
  let admitted = count
  for (let i = 0; i < loaded.length; i++) {
    const held = loaded[i]!
    held.log.kind.check(stateOf(held), held.log.params, nowMs, held.used)
    if (!held.log.shadow) admitted = Math.min(admitted, roomIn(held, cost))
  }
  return admitted
}

/** Charges the admitted requests to every log; to a shadow limit's only as many as it has room for. */
export function commit(loaded: Loaded, nowMs: number, cost: number, admitted: number, leaseMs: number): void {
  for (let i = 0; i < loaded.length; i++) {
    const held = loaded[i]!
    const { kind, params, shadow } = held.log
    held.charged = cost * (shadow ? Math.min(admitted, roomIn(held, cost)) : admitted)
    if (held.charged > 0) kind.commit(stateOf(held), params, nowMs, held.charged, leaseMs)
  }
}

/** Three numbers per limit, in declared order: see `ConsumeOutcome.limits`. */
export function answer(loaded: Loaded, nowMs: number, cost: number, count: number): number[] {
  // Room for one limit: all that most limiters have.
  const numbers = [0, 0, 0]
  for (let l = 0; l < loaded.length; l++) {
    const held = loaded[l]!
    const { first, used, charged } = held
    const { kind, params, serves } = held.log
    const state = stateOf(held)
    for (let i = 0; i < serves.length; i++) {
      const place = 3 * (first + serves[i]!)
      const isFull = used[i]! + charged + cost > params.limits[i]!
      numbers[place] = used[i]!
      numbers[place + 1] =
        isFull && charged < cost * count ? kind.retryAfter(state, params, i, nowMs, cost) : 0
      numbers[place + 2] = kind.resetAfter(state, params, i, nowMs)
    }
  }
  return numbers
}

export function stateOf({ logs, number }: LoadedLog): unknown {
  return logs.at(number)
}

/** Requests of this cost that fit all limits of the log. */
function roomIn(held: LoadedLog, cost: number): number {
  const { limits } = held.log.params
  let room = Number.MAX_SAFE_INTEGER
  for (let i = 0; i < limits.length; i++) {
    const free = Math.max(0, limits[i]! - held.used[i]!)
    if (free < cost * room) room = Math.floor(free / cost)
  }
  return room
}
