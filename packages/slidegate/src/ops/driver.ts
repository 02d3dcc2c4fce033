// Decides in memory. One step, two passes: `check` over all logs of an op, and only if every enforced limit has room, `commit`
// over all logs. consume.lua does the same in one chain of calls.

import type { BanState, Entries, Entry } from '../limits/limit.ts'
import { entriesOf } from '../limits/limit-set.ts'
import { type Loaded, type LoadedLog, type Memory, stateOf } from './memory.ts'
import { countFrom, setReset, setUsed, setWait, unused } from './numbers.ts'
import {
  type Ban,
  banOf,
  type ConsumeOutcome,
  debitsOf,
  type Named,
  type Overrides,
  type RequestOp,
  takesOnce,
} from './request.ts'

/**
 * How far the newest stamp may lie ahead of the clock. Up to here time is held still until the clock has
 * caught up; beyond it the clock was set back, and the log is restamped.
 */
export const MAX_AHEAD_MS = 1000

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

/** Restamps the logs that are ahead of a clock that was set back. On a denial too: else each denial would restart the wait. */
export function restamp(loaded: Loaded, nowMs: number): void {
  for (let i = 0; i < loaded.length; i++) {
    const held = loaded[i]!
    const { kind, params } = held.log
    const state = stateOf(held)
    if (kind.newest(state) > nowMs) kind.restamp(state, params, nowMs)
  }
}

/** Finds the charge of a repeated request, if a log still holds it. */
function findRepeat(loaded: Loaded, nowMs: number, op: Named): Entry | undefined {
  return op.mayRepeat
    ? (findIn(loaded, 'request', nowMs, op) ?? findIn(loaded, 'holder', nowMs, op))
    : undefined
}

function findIn(loaded: Loaded, are: Entries, nowMs: number, { requestId }: Named): Entry | undefined {
  for (const held of loaded) {
    const { kind, params } = held.log
    // A shadow limit decides nothing.
    if (held.log.shadow || entriesOf(held.log) !== are) continue
    const entry = kind.entries!.find(stateOf(held), params, nowMs, requestId!)
    if (entry !== undefined) return entry
  }
  return undefined
}

/** How many requests all enforced limits have room for. */
function check(loaded: Loaded, nowMs: number, op: RequestOp): number {
  let admitted = op.count
  for (let i = 0; i < loaded.length; i++) {
    const held = loaded[i]!
    const { kind, params, role } = held.log
    if (role !== 'count') continue
    kind.check(stateOf(held), params, nowMs, held.used, op.requestId)
    held.cost = costIn(held, nowMs, op.cost, op)
    if (!held.log.shadow) admitted = Math.min(admitted, roomIn(held, admitted))
  }
  return admitted
}

/** The numbers of all limits, in declared order: see `ConsumeOutcome.limits`. */
export function answer(loaded: Loaded, nowMs: number, count: number): number[] {
  const numbers = unused(1)
  for (let l = 0; l < loaded.length; l++) {
    const held = loaded[l]!
    const { first, used, cost, charged } = held
    const { kind, params, serves } = held.log
    const state = stateOf(held)
    for (let i = 0; i < serves.length; i++) {
      const limit = first + serves[i]!
      const isFull = used[i]! + charged + cost > params.limits[i]! && charged < cost * count
      setUsed(numbers, limit, used[i]!)
      setWait(numbers, limit, isFull ? kind.retryAfter(state, params, i, nowMs, cost) : 0)
      setReset(numbers, limit, kind.resetAfter(state, params, i, nowMs))
    }
  }
  return numbers
}

/** The units charged to each limit, in declared order. Nothing if each is the cost. */
function costsIn(loaded: Loaded, op: Named): number[] | undefined {
  if (!loaded.some(({ log }) => takesOnce(log, op))) return undefined
  const costs: number[] = []
  for (const { log, first, cost } of loaded) for (const i of log.serves) costs[first + i] = cost
  return costs
}

/** The units charged to a log. 0 if it is in shadow and has the request. */
export function costIn(held: LoadedLog, nowMs: number, cost: number, op: Named): number {
  const { kind, params } = held.log
  if (!takesOnce(held.log, op)) return cost
  return kind.entries!.find(stateOf(held), params, nowMs, op.requestId!) === undefined ? cost : 0
}

/** How many of `count` requests fit all limits of the log. */
export function roomIn({ log, used, cost }: LoadedLog, count: number): number {
  const { limits } = log.params
  let room = count
  for (let i = 0; i < limits.length; i++) {
    const free = Math.max(0, limits[i]! - used[i]!)
    if (free < cost * room) room = Math.floor(free / cost)
  }
  return room
}

/** How many requests would be admitted. The outcome instead, if a key is blocked or a request is repeated. */
export function look({ loaded, nowMs, overrides }: Memory, op: RequestOp): ConsumeOutcome | number {
  const ban = blockedBy(loaded, nowMs, op, overrides)
  const first = ban === undefined ? findRepeat(loaded, nowMs, op) : undefined
  const admitted = check(loaded, nowMs, op)
  if (ban !== undefined) return { ...decided(loaded, nowMs, 0, op), ban }
  if (first === undefined) return admitted
  const { atMs, units } = first
  const limits = answer(loaded, nowMs, 0)
  countFrom(limits, nowMs - atMs)
  return withDebits(loaded, op, { source: 'store', atMs, admitted: 1, limits, waitMs: 0, repeats: units })
}

/** The ban if a key is blocked. */
function blockedBy(loaded: Loaded, nowMs: number, op: RequestOp, overrides: Overrides): Ban | undefined {
  if (overrides === undefined && loaded.every(({ log }) => log.kind.ban === undefined)) return undefined
  const bans = bansOf(loaded, op.parts.length, nowMs)
  return banOf(
    bans.map((ban) => ban?.blockedMs ?? 0),
    overrides,
  )
}

/** The state of each part's ban, if it has one. */
export function bansOf(loaded: Loaded, parts: number, nowMs: number): (BanState | undefined)[] {
  const bans = new Array<BanState | undefined>(parts).fill(undefined)
  for (const held of loaded) {
    const { kind, params } = held.log
    if (kind.ban !== undefined) bans[held.part] = kind.ban.look(stateOf(held), params, nowMs)
  }
  return bans
}

export function decided(loaded: Loaded, nowMs: number, admitted: number, op: RequestOp): ConsumeOutcome {
  const limits = answer(loaded, nowMs, op.count)
  return withDebits(loaded, op, { source: 'store', atMs: nowMs, admitted, limits, waitMs: 0 })
}

function withDebits(loaded: Loaded, op: RequestOp, outcome: ConsumeOutcome): ConsumeOutcome {
  const costs = costsIn(loaded, op)
  return costs === undefined ? outcome : { ...outcome, debits: debitsOf(op.parts, outcome, costs) }
}
