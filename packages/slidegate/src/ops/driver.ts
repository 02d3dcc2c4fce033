// Decides ops in memory in two passes: `check` on all logs, then `commit` if every enforced limit has room.
// consume.lua does the same in one chain of calls.

import type { BanState, Entries, Entry } from '../limits/limit.ts'
import { entriesOf, type Log } from '../limits/limit-set.ts'
import { countFrom, setReset, setUsed, setWait, unused } from './numbers.ts'
import { type CheckedLog, type Loaded, type LoadedLog, type Memory, stateOf } from './op.ts'
import {
  type Ban,
  banOf,
  type ConsumeOutcome,
  type Named,
  type Overrides,
  type RequestOp,
} from './request.ts'

/** If a stamp is further ahead than this, the clock was set back. */
export const MAX_AHEAD_MS = 1000

/** Returns the time at which an op is decided. A log's stamp is used if it is slightly ahead of the clock. */
export function settleInstant(loaded: Loaded, clockMs: number): number {
  let nowMs = clockMs
  for (const held of loaded) {
    const newest = held.log.kind.newest(stateOf(held))
    if (newest > nowMs && newest <= clockMs + MAX_AHEAD_MS) nowMs = newest
  }
  return nowMs
}

/** Restamps logs that are too far ahead. Denied ops do so, too; otherwise, each denial would restart the wait. */
export function restamp(loaded: Loaded, nowMs: number): void {
  for (const held of loaded) {
    const { kind, params } = held.log
    const state = stateOf(held)
    if (kind.newest(state) > nowMs) kind.restamp(state, params, nowMs)
  }
}

export function find(held: LoadedLog, nowMs: number, name: string): Entry | undefined {
  const { kind, params } = held.log
  return kind.entries!.find(stateOf(held), params, nowMs, name)
}

export function charge(held: LoadedLog, nowMs: number, units: number, entry = '', leaseMs = 0): void {
  const { kind, params } = held.log
  kind.commit(stateOf(held), params, nowMs, { units, leaseMs, entry })
}

/** Refunds up to `units` of a charge. Returns how many of them the log still held. */
export function giveBack(held: LoadedLog, nowMs: number, atMs: number, units: number, entry = ''): number {
  const { kind, params } = held.log
  return kind.refund(stateOf(held), params, nowMs, atMs, units, entry)
}

/** The first charge of a repeated request, if it still counts. */
function findRepeat(loaded: Loaded, nowMs: number, op: Named): Entry | undefined {
  return op.mayRepeat
    ? (findIn(loaded, 'request', nowMs, op) ?? findIn(loaded, 'holder', nowMs, op))
    : undefined
}

function findIn(loaded: Loaded, are: Entries, nowMs: number, { requestId }: Named): Entry | undefined {
  for (const held of loaded) {
    // Shadow limits don't affect decisions.
    const mayHave = !held.log.shadow && entriesOf(held.log) === are
    const entry = mayHave ? find(held, nowMs, requestId!) : undefined
    if (entry !== undefined) return entry
  }
  return undefined
}

/** Returns how many of the op's requests fit within all enforced limits. */
function check(loaded: Loaded, nowMs: number, op: RequestOp): number {
  let admitted = op.count
  for (const held of loaded) {
    const { kind, params, role } = held.log
    if (role !== 'count') continue
    kind.check(stateOf(held), params, nowMs, held.used, op.requestId)
    held.cost = costIn(held, nowMs, op.cost, op)
    if (!held.log.shadow) admitted = Math.min(admitted, roomIn(held, admitted))
  }
  return admitted
}

export function answer(loaded: Loaded, nowMs: number, count: number): number[] {
  const numbers = unused(1)
  for (const held of loaded) answerOf(held, stateOf(held), nowMs, count, numbers)
  return numbers
}

/** Writes the numbers for a log's limits, after `count` requests were decided. */
export function answerOf(
  { log, first, used, cost, charged }: CheckedLog,
  state: unknown,
  nowMs: number,
  count: number,
  numbers: number[],
): void {
  const { kind, params, serves } = log
  for (let i = 0; i < serves.length; i++) {
    const limit = first + serves[i]!
    const isFull = used[i]! + charged + cost > params.limits[i]! && charged < cost * count
    setUsed(numbers, limit, used[i]!)
    setWait(numbers, limit, isFull ? kind.retryAfter(state, params, i, nowMs, cost) : 0)
    setReset(numbers, limit, kind.resetAfter(state, params, i, nowMs))
  }
}

/** Whether the units charged to a log may differ from the op's cost. If so, the outcome has debits. */
export function takesOnce(log: Log, { mayRepeat }: Named): boolean {
  if (!log.shadow || mayRepeat !== true) return false
  const are = entriesOf(log)
  return are === 'request' || are === 'holder'
}

/** Returns the units to charge to a log. 0 if it is a shadow limit's log that already has the request. */
export function costIn(held: LoadedLog, nowMs: number, cost: number, op: Named): number {
  return takesOnce(held.log, op) && find(held, nowMs, op.requestId!) !== undefined ? 0 : cost
}

/** How many of `count` requests fit within all limits of the log. */
export function roomIn({ log, used, cost }: CheckedLog, count: number): number {
  const { limits } = log.params
  let room = count
  for (let i = 0; i < limits.length; i++) {
    const free = Math.max(0, limits[i]! - used[i]!)
    if (free < cost * room) room = Math.floor(free / cost)
  }
  return room
}

/** Returns how many requests can be admitted. For a blocked key or a repeated request, returns the outcome instead. */
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

/** Returns the outcome that `consume` would have. */
export function preview(memory: Memory, op: RequestOp): ConsumeOutcome {
  const admitted = look(memory, op)
  return typeof admitted === 'number' ? decided(memory.loaded, memory.nowMs, admitted, op) : admitted
}

function blockedBy(loaded: Loaded, nowMs: number, op: RequestOp, overrides: Overrides): Ban | undefined {
  if (overrides === undefined && loaded.every(({ log }) => log.kind.ban === undefined)) return undefined
  const blockedMs = bansOf(loaded, op.parts.length, nowMs).map((ban) => ban?.blockedMs ?? 0)
  return banOf(blockedMs, overrides)
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

/** Adds the debits if the units charged to a log may differ from the cost. */
export function withDebits(
  logs: readonly CheckedLog[],
  op: RequestOp,
  outcome: ConsumeOutcome,
): ConsumeOutcome {
  if (op.mayRepeat !== true || !logs.some(({ log }) => takesOnce(log, op))) return outcome
  const costs: number[] = []
  for (const { log, first, cost } of logs) for (const i of log.serves) costs[first + i] = cost
  const { source, atMs } = outcome
  const debits = op.parts.map(({ set }) => ({ source, atMs, costs: costs.splice(0, set.limits.length) }))
  return { ...outcome, debits }
}

/** When units of limit `i` become free again if `used` units are in use. See `ExplainOutcome.frees`. */
export function freesIn(
  { kind, params }: Log,
  state: unknown,
  i: number,
  used: number,
  nowMs: number,
): number[] {
  const freed =
    used === 0 ? [] : [1, ...Array.from({ length: 10 }, (_, i) => Math.ceil((used * (i + 1)) / 10))]
  return freed.map((units) => kind.retryAfter(state, params, i, nowMs, params.limits[i]! - used + units))
}
