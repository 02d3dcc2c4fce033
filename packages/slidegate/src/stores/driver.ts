import type { BanState, Entries, Entry, Logs, Ticket } from '../limits/limit.ts'
import type { Log } from '../limits/limit-set.ts'
import { MAX_AHEAD_MS } from './instant.ts'
import {
  type ChargeOp,
  type ConsumeOp,
  type HoldOp,
  type Named,
  type RefundOp,
  type RequestOp,
  type SettleOp,
  takesOnce,
} from './store.ts'

// One step, two passes: `check` over all logs of an op, and only if every enforced limit has room, `commit`
// over all logs. The twin of redis/general.lua: same functions, same order.

/** Who waits and does not ask when he might be admitted loses his place after so long. */
const PATIENCE_MS = 500

/** Who would have room, were it not the turn of others, asks again so soon. */
const TURN_MS = 5

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
  /** Units within each limit's window before the op, as `check` finds them: with those in logs of former limits. */
  readonly used: number[]
  /** Units of those who wait before the request. */
  ahead: number
  /** Units that one request takes of it. */
  cost: number
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

/** For how many milliseconds more any part is blocked. */
export function blockedFor(loaded: Loaded, nowMs: number): number {
  let blockedMs = 0
  for (const held of loaded) {
    const { kind, params } = held.log
    if (kind.ban !== undefined) {
      blockedMs = Math.max(blockedMs, kind.ban.look(stateOf(held), params, nowMs).blockedMs)
    }
  }
  return blockedMs
}

/** What is to be told of bans, by part. */
export function bansOf(loaded: Loaded, parts: number, nowMs: number): (BanState | undefined)[] {
  const bans = new Array<BanState | undefined>(parts).fill(undefined)
  for (const held of loaded) {
    const { kind, params } = held.log
    if (kind.ban !== undefined) bans[held.part] = kind.ban.look(stateOf(held), params, nowMs)
  }
  return bans
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

/**
 * The instant at which a request of this id was admitted, where a log still holds it: it is answered as it was then,
 * and charged nothing.
 */
export function findRepeat(loaded: Loaded, nowMs: number, op: Named): number | undefined {
  return op.mayRepeat
    ? (findIn(loaded, 'request', nowMs, op) ?? findIn(loaded, 'holder', nowMs, op))
    : undefined
}

function findIn(loaded: Loaded, are: Entries, nowMs: number, { requestId }: Named): number | undefined {
  for (const held of loaded) {
    const { kind, params } = held.log
    // A shadow limit decides nothing.
    if (held.log.shadow || held.log.role !== 'count' || kind.entries?.are !== are) continue
    const entry = kind.entries.find(stateOf(held), params, nowMs, requestId!)
    if (entry !== undefined) return entry.atMs
  }
  return undefined
}

/** How many requests all enforced limits have room for. */
export function check(loaded: Loaded, nowMs: number, op: RequestOp): number {
  let admitted = op.count
  const ticket = op.type === 'consume' ? op.ticket : undefined
  for (let i = 0; i < loaded.length; i++) {
    const held = loaded[i]!
    const { kind, params, role } = held.log
    if (role !== 'count') continue
    kind.check(stateOf(held), params, nowMs, held.used)
    addFormer(loaded, held, nowMs)
    held.cost = costIn(held, nowMs, op.cost, op)
    held.ahead = ticket === undefined ? 0 : unitsAhead(loaded, held, nowMs, ticket)
    if (!held.log.shadow) admitted = Math.min(admitted, roomIn(held, admitted))
  }
  return admitted
}

/** Adds what is held by the logs of former limits. */
function addFormer(loaded: Loaded, { log, first, used }: LoadedLog, nowMs: number): void {
  for (const former of loaded) {
    if (former.log.role !== 'former' || former.first !== first) continue
    const { kind, params, serves } = former.log
    kind.check(stateOf(former), params, nowMs, former.used)
    log.serves.forEach((limit, i) => {
      const place = serves.indexOf(limit)
      if (place >= 0) used[i]! += former.used[Math.min(place, params.windows.length - 1)]!
    })
  }
}

/** Units of those who wait for the same part before the request. */
function unitsAhead(loaded: Loaded, { part }: LoadedLog, nowMs: number, ticket: Ticket): number {
  for (const held of loaded) {
    const { kind, params } = held.log
    if (held.part === part && kind.line !== undefined) {
      return kind.line.ahead(stateOf(held), params, nowMs, ticket)
    }
  }
  return 0
}

/** Charges the admitted requests to every log; to a shadow limit's only as many as it has room for. */
export function commit(loaded: Loaded, nowMs: number, op: ConsumeOp, admitted: number): void {
  for (let i = 0; i < loaded.length; i++) {
    const held = loaded[i]!
    const { kind, params, shadow, role } = held.log
    if (role === 'reservations' && op.reservation !== undefined) {
      kind.commit(stateOf(held), params, nowMs, { units: 1, leaseMs: 0, entry: op.reservation })
    }
    if (role !== 'count') continue
    const fitting = shadow ? roomIn(held, admitted) : admitted
    // A value that is known is renewed; a request that a shadow limit knows is not.
    if (fitting === 0 || (held.cost === 0 && kind.entries?.are !== 'value')) continue
    held.charged = held.cost * fitting
    kind.commit(stateOf(held), params, nowMs, {
      units: held.charged,
      leaseMs: op.leaseMs,
      entry: entryIn(held, op),
    })
  }
}

/**
 * So many requests were denied: each is counted where limits of the same part have denied it. Answers for how many
 * milliseconds any part is blocked now. Who waits in line does no wrong.
 */
export function banDenied(loaded: Loaded, nowMs: number, op: ConsumeOp, denied: number): number {
  if (denied === 0 || op.ticket !== undefined) return 0
  let blockedMs = 0
  for (const held of loaded) {
    const { kind, params } = held.log
    if (kind.ban === undefined || !loaded.some((each) => each.part === held.part && hasDenied(each))) continue
    blockedMs = Math.max(blockedMs, kind.ban.denied(stateOf(held), params, nowMs, denied))
  }
  return blockedMs
}

/** Whether it has no room for one request more. */
function hasDenied(held: LoadedLog): boolean {
  const { log, used, charged, cost } = held
  if (log.role !== 'count' || log.shadow) return false
  return log.params.limits.some((limit, i) => used[i]! + charged + cost > limit)
}

/** Puts those who were not admitted in their place in the line, or takes one who was out of it. */
export function queue(
  loaded: Loaded,
  nowMs: number,
  op: ConsumeOp,
  admitted: number,
  limits: readonly number[],
): void {
  const { ticket } = op
  if (ticket === undefined) return
  let waitMs = 0
  for (let i = 1; i < limits.length; i += 3) waitMs = Math.max(waitMs, limits[i]!)
  for (const held of loaded) {
    const { kind, params } = held.log
    if (kind.line === undefined) continue
    const state = stateOf(held)
    if (admitted === op.count || waitMs === Number.POSITIVE_INFINITY) {
      kind.line.remove(state, params, nowMs, ticket.id)
    } else {
      // Where some of a process were admitted, the next of it come after those that wait elsewhere.
      const sinceMs = admitted > 0 || ticket.sinceMs === 0 ? nowMs : ticket.sinceMs
      const untilMs = nowMs + waitMs + PATIENCE_MS
      kind.line.put(state, params, nowMs, { id: ticket.id, sinceMs }, op.cost, untilMs)
    }
  }
}

/** Charges every log without asking. */
export function charge(loaded: Loaded, nowMs: number, op: ChargeOp): void {
  for (let i = 0; i < loaded.length; i++) {
    const held = loaded[i]!
    if (held.log.role !== 'count') continue
    const units = costIn(held, nowMs, op.units, op)
    const { kind, params } = held.log
    kind.commit(stateOf(held), params, nowMs, { units, leaseMs: 0, entry: entryIn(held, op) })
  }
}

/** Three numbers per limit, in declared order: see `ConsumeOutcome.limits`. */
export function answer(loaded: Loaded, nowMs: number, count: number): number[] {
  // Room for one limit: all that most limiters have.
  const numbers = [0, 0, 0]
  for (let l = 0; l < loaded.length; l++) {
    const held = loaded[l]!
    const { first, used, cost, charged, ahead } = held
    const { params, serves, role } = held.log
    if (role !== 'count') continue
    for (let i = 0; i < serves.length; i++) {
      const place = 3 * (first + serves[i]!)
      const isFull = used[i]! + charged + ahead + cost > params.limits[i]!
      numbers[place] = used[i]!
      numbers[place + 1] = isFull && charged < cost * count ? retryAfter(loaded, held, i, nowMs) : 0
      numbers[place + 2] = resetAfter(loaded, held, i, nowMs)
    }
  }
  return numbers
}

/** Until there is room for the cost, and for those who wait before. */
function retryAfter(loaded: Loaded, held: LoadedLog, i: number, nowMs: number): number {
  const { cost, ahead, used, charged } = held
  const limit = held.log.params.limits[i]!
  if (cost > limit) return Number.POSITIVE_INFINITY
  const wanted = Math.min(cost + ahead, limit)
  // It is the turn of others, and they are about to take it.
  if (used[i]! + charged + wanted <= limit) return TURN_MS
  return roomAfter(loaded, held, i, nowMs, wanted)
}

/** Until limit `i` of the log has room for so many units, which it has not now. */
function roomAfter(loaded: Loaded, held: LoadedLog, i: number, nowMs: number, units: number): number {
  const { kind, params } = held.log
  const formers = formersOf(loaded, held, i, nowMs)
  return formers.length === 0
    ? kind.retryAfter(stateOf(held), params, i, nowMs, units)
    : fallsTo(held, formers, i, nowMs, params.limits[i]! - units)
}

/** Until no more than so many units are used. They only fall while nothing is charged, so that can be searched for. */
function fallsTo(
  held: LoadedLog,
  formers: readonly LoadedLog[],
  i: number,
  nowMs: number,
  units: number,
): number {
  let [before, after] = [0, resetOf(held, formers, i, nowMs)]
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    let used = usedAt(held, i, nowMs + middle)
    for (const former of formers) used += usedAt(former, placeIn(former, held, i), nowMs + middle)
    if (used <= units) after = middle
    else before = middle
  }
  return after
}

/** Until limit `i` of the log is free. */
function resetAfter(loaded: Loaded, held: LoadedLog, i: number, nowMs: number): number {
  return resetOf(held, formersOf(loaded, held, i, nowMs), i, nowMs)
}

function resetOf(held: LoadedLog, formers: readonly LoadedLog[], i: number, nowMs: number): number {
  const { kind, params } = held.log
  let resetMs = kind.resetAfter(stateOf(held), params, i, nowMs)
  for (const former of formers) {
    const { log } = former
    const place = Math.min(placeIn(former, held, i), log.params.windows.length - 1)
    resetMs = Math.max(resetMs, log.kind.resetAfter(stateOf(former), log.params, place, nowMs))
  }
  return resetMs
}

const NONE: readonly LoadedLog[] = []

/** Logs of former limits that hold anything of limit `i` of the log. */
function formersOf(loaded: Loaded, held: LoadedLog, i: number, nowMs: number): readonly LoadedLog[] {
  // Few ops have any.
  let formers = NONE
  for (const former of loaded) {
    if (former.log.role !== 'former' || former.first !== held.first) continue
    const place = placeIn(former, held, i)
    if (place >= 0 && usedAt(former, place, nowMs) > 0) formers = [...formers, former]
  }
  return formers
}

/** Which of the limits of a former log is limit `i` of another; below 0 where none is. */
function placeIn(former: LoadedLog, { log }: LoadedLog, i: number): number {
  return former.log.serves.indexOf(log.serves[i]!)
}

/** What stays of what is used at a later time. */
function usedAt(held: LoadedLog, i: number, atMs: number): number {
  const { kind, params } = held.log
  const used: number[] = []
  kind.check(stateOf(held), params, atMs, used)
  return used[Math.min(i, used.length - 1)]!
}

const TENTHS: readonly number[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

/** Per limit, when one unit and so many tenths of what is used are free again: see `ExplainOutcome.frees`. */
export function freesOf(loaded: Loaded, nowMs: number): number[][] {
  const frees: number[][] = []
  for (const held of loaded) {
    const { serves, role } = held.log
    if (role !== 'count') continue
    for (let i = 0; i < serves.length; i++) {
      const used = held.used[i]!
      const formers = formersOf(loaded, held, i, nowMs)
      const freed = used === 0 ? [] : [1, ...TENTHS.map((tenth) => Math.ceil((used * tenth) / 10))]
      const times = freed.map((units) => fallsTo(held, formers, i, nowMs, used - units))
      frees[held.first + serves[i]!] = times
    }
  }
  return frees
}

/** The same for a request that was admitted at `atMs` and comes again: as things are now, the times from then on. */
export function answerAgain(loaded: Loaded, nowMs: number, atMs: number): number[] {
  const numbers = answer(loaded, nowMs, 0)
  for (let place = 2; place < numbers.length; place += 3) {
    if (numbers[place]! > 0) numbers[place]! += nowMs - atMs
  }
  return numbers
}

/** Units that a request takes of each limit, in declared order; nothing where that is its cost. */
export function costsIn(loaded: Loaded, op: Named): number[] | undefined {
  if (!loaded.some(({ log }) => takesOnce(log, op))) return undefined
  const costs: number[] = []
  for (const { log, first, cost } of loaded) {
    if (log.role === 'count') for (const i of log.serves) costs[first + i] = cost
  }
  return costs
}

/** Takes back what was charged; answers the units per log. */
export function refund(loaded: Loaded, nowMs: number, op: RefundOp): number[] {
  if (op.mayRepeat && !isStillCharged(loaded, nowMs, op)) return loaded.map(() => 0)
  return loaded.map((held, i) => {
    const { kind, params } = held.log
    if (op.charged[i] !== true) return 0
    return kind.refund(stateOf(held), params, nowMs, op.atMs, op.units, entryIn(held, op))
  })
}

/**
 * Whether the logs that find requests by their ids still hold this one. Several decisions may have been made on it, and
 * each of them can be returned: by whether the entry is there, only the first is.
 */
function isStillCharged(loaded: Loaded, nowMs: number, { requestId, units, atMs }: RefundOp): boolean {
  const finding = loaded.filter(({ log }) => !log.shadow && log.role === 'count')
  const are = finding.some(({ log }) => log.kind.entries?.are === 'request') ? 'request' : 'holder'
  return finding.every((held) => {
    const { kind, params } = held.log
    if (kind.entries?.are !== are) return true
    const entry = kind.entries.find(stateOf(held), params, nowMs, requestId!)
    return entry?.units === units && (are === 'holder' || entry.atMs === atMs)
  })
}

/** Renews or removes what is held; answers whether all enforced logs still counted it. */
export function hold(loaded: Loaded, nowMs: number, op: HoldOp): boolean {
  let isHeld = true
  for (const held of loaded) {
    const { kind, params, shadow, role } = held.log
    if (role !== 'count' || kind.entries?.are !== 'holder') continue
    const state = stateOf(held)
    const counted =
      op.type === 'extend'
        ? kind.entries.renew(state, params, nowMs, op.requestId)
        : kind.refund(state, params, nowMs, 0, op.units, op.requestId) > 0
    if (!counted && !shadow) isHeld = false
  }
  return isHeld
}

/**
 * Returns what was charged beyond what the request turned out to be, or charges the rest: once. Answers the units
 * returned per log, or nothing where it was settled before.
 */
export function settle(loaded: Loaded, nowMs: number, op: SettleOp): number[] | undefined {
  const { reservation, units, actual } = op
  const chargedAtMs = new Map<number, number>()
  for (const held of loaded) {
    if (held.log.role !== 'reservations') continue
    const entry = held.log.kind.entries!.find(stateOf(held), held.log.params, nowMs, reservation)
    if (entry === undefined) return undefined
    chargedAtMs.set(held.part, entry.atMs)
  }
  return loaded.map((held, i) => {
    const { kind, params, role } = held.log
    const state = stateOf(held)
    if (role === 'reservations') kind.refund(state, params, nowMs, 0, 1, reservation)
    if (actual > units && role === 'count') {
      kind.commit(state, params, nowMs, { units: actual - units, leaseMs: 0, entry: '' })
    }
    if (actual >= units || op.charged[i] !== true) return 0
    return kind.refund(state, params, nowMs, chargedAtMs.get(held.part)!, units - actual, '')
  })
}

export function list(loaded: Loaded, nowMs: number): (readonly Entry[])[] {
  return loaded.map((held) => {
    const { kind, params, role } = held.log
    if (role !== 'count') return []
    return kind.entries?.list(stateOf(held), params, nowMs) ?? []
  })
}

export function stateOf({ logs, number }: LoadedLog): unknown {
  return logs.at(number)
}

/** Units that a request of this cost takes of a log: none where it holds what was brought, or in shadow the request. */
function costIn(held: LoadedLog, nowMs: number, cost: number, op: Named): number {
  const { kind, params } = held.log
  if (!takesOnce(held.log, op)) return cost
  if (kind.entries!.find(stateOf(held), params, nowMs, entryIn(held, op)) !== undefined) return 0
  return kind.entries!.are === 'value' ? 1 : cost
}

/** What the op's entry in a log is called. */
function entryIn({ log }: LoadedLog, { requestId, value }: Named): string {
  const are = log.kind.entries?.are
  return (are === undefined ? undefined : are === 'value' ? value : requestId) ?? ''
}

/** Of so many requests, those that fit all limits of the log. */
function roomIn({ log, used, cost, ahead }: LoadedLog, count: number): number {
  const { limits } = log.params
  let room = count
  for (let i = 0; i < limits.length; i++) {
    const free = Math.max(0, limits[i]! - used[i]! - ahead)
    if (free < cost * room) room = Math.floor(free / cost)
  }
  return room
}
