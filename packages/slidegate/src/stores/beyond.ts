import type { Ahead, BanState, Charged, Ticket } from '../limits/limit.ts'
import { type Loaded, type LoadedLog, NOBODY, stateOf } from './loaded.ts'
import type { ConsumeOp, Part, SettleOp } from './store.ts'

// What few ops need of the driver: bans, lines, reservations, and logs of former limits. The twin of redis/beyond.lua.

/** Who waits and does not ask when he might be admitted loses his place after so long. */
const PATIENCE_MS = 500

/** Where a release may give room at any time, those who wait ask again so soon. */
const HELD_MS = 100

/** Who waits behind more than fit a limit at a time is told so much more for each time that it is filled, up to the most. */
const FILL_MS = 100
const MOST_FILLS_MS = 1000

/** What is to be told of bans, by part. */
export function bansOf(loaded: Loaded, parts: number, nowMs: number): (BanState | undefined)[] {
  const bans = new Array<BanState | undefined>(parts).fill(undefined)
  for (const held of loaded) {
    const { kind, params } = held.log
    if (kind.ban !== undefined) bans[held.part] = kind.ban.look(stateOf(held), params, nowMs)
  }
  return bans
}

/** Adds what is held by the logs of former limits. */
export function addFormer(loaded: Loaded, { log, first, used }: LoadedLog, nowMs: number): void {
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

/** Those who wait for the same part before the request. Who sleeps though there is room for him holds up nobody. */
export function whoIsAhead(loaded: Loaded, held: LoadedLog, nowMs: number, ticket: Ticket): Ahead {
  const { limits } = held.log.params
  const room = Math.min(...limits.map((limit, i) => limit - held.used[i]!))
  for (const line of loaded) {
    const { kind, params } = line.log
    if (line.part === held.part && kind.line !== undefined) {
      return kind.line.ahead(stateOf(line), params, nowMs, ticket, room, nowMs + 2 * PATIENCE_MS)
    }
  }
  return NOBODY
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
    if (kind.ban?.counts(params) !== true) continue
    if (!loaded.some((each) => each.part === held.part && hasDenied(each))) continue
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

/** The longest wait of each part, for limits that are enforced. */
function waitsOf(parts: readonly Part[], limits: readonly number[]): number[] {
  let place = 1
  return parts.map(({ set }) => {
    let waitMs = 0
    for (const { shadow } of set.limits) {
      if (!shadow) waitMs = Math.max(waitMs, limits[place]!)
      place += 3
    }
    return waitMs
  })
}

/**
 * Puts those who were not admitted in their place in the line, or takes one who was out of it. A part that has room long
 * before the others is not waited for.
 */
export function queue(
  loaded: Loaded,
  nowMs: number,
  op: ConsumeOp,
  admitted: number,
  limits: readonly number[],
): void {
  const { ticket } = op
  if (ticket === undefined) return
  const waits = waitsOf(op.parts, limits)
  const waitMs = Math.max(...waits)
  const isOut = admitted === op.count || waitMs === Number.POSITIVE_INFINITY
  const isHeld = loaded.some(
    ({ log }) => log.role === 'count' && !log.shadow && log.kind.entries?.are === 'holder',
  )
  const untilMs = nowMs + (isHeld ? Math.min(waitMs, HELD_MS) : waitMs) + PATIENCE_MS
  // Where some of a process were admitted, the next of it come after those that wait elsewhere.
  const sinceMs = admitted > 0 || ticket.sinceMs === 0 ? nowMs : Math.min(ticket.sinceMs, nowMs)
  for (const held of loaded) {
    const { kind, params } = held.log
    if (kind.line === undefined) continue
    const state = stateOf(held)
    if (isOut || waits[held.part]! < waitMs - PATIENCE_MS) kind.line.remove(state, params, nowMs, ticket.id)
    else kind.line.put(state, params, nowMs, { id: ticket.id, sinceMs }, op.cost, untilMs)
  }
}

/** Until there is room for the cost, and for those who wait before. */
export function retryAfter(loaded: Loaded, held: LoadedLog, i: number, nowMs: number): number {
  const { cost, ahead, used, charged } = held
  const { params } = held.log
  const limit = params.limits[i]!
  if (cost > limit) return Number.POSITIVE_INFINITY
  const wanted = Math.min(cost + ahead.units, limit)
  const fills = Math.floor((cost + ahead.units - 1) / limit)
  const fillMs = Math.min(fills * Math.min(params.windows[i]!, FILL_MS), MOST_FILLS_MS)
  // It is the turn of others, and they are about to take it all.
  if (used[i]! + charged + wanted <= limit) return fillMs
  return roomAfter(loaded, held, i, nowMs, wanted) + fillMs
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
export function resetAfter(loaded: Loaded, held: LoadedLog, i: number, nowMs: number): number {
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
  const place = Math.min(i, params.windows.length - 1)
  // Of a log that serves many limits only one is asked for, again and again.
  const one = { ...params, windows: [params.windows[place]!], limits: [params.limits[place]!] }
  const used: number[] = []
  kind.check(stateOf(held), one, atMs, used)
  return used[0]!
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
      const { kind, params } = held.log
      const times = freed.map((units) =>
        formers.length === 0
          ? kind.retryAfter(stateOf(held), params, i, nowMs, params.limits[i]! - used + units)
          : fallsTo(held, formers, i, nowMs, used - units),
      )
      frees[held.first + serves[i]!] = times
    }
  }
  return frees
}

/** Per limit, the latest of what it counts, where its kind keeps times: see `ExplainOutcome.charges`. */
export function chargesOf(loaded: Loaded, nowMs: number, most: number): (readonly Charged[] | undefined)[] {
  const told: (readonly Charged[] | undefined)[] = []
  for (const held of loaded) {
    const { kind, params, role, serves } = held.log
    if (role !== 'count') continue
    serves.forEach((limit, i) => {
      const charges = kind.charges?.(stateOf(held), params, i, nowMs, most)
      told[held.first + limit] = charges && joinedByStamp(charges)
    })
  }
  return told
}

/** What was charged at the same instant, as one. */
function joinedByStamp(charges: readonly Charged[]): readonly Charged[] {
  const joined: Charged[] = []
  for (const { atMs, units } of charges) {
    const last = joined.at(-1)
    if (last?.atMs === atMs) joined[joined.length - 1] = { atMs, units: last.units + units }
    else joined.push({ atMs, units })
  }
  return joined
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
    // Limits may have changed to such that keep what they count: requests, but it is no holder.
    const are = kind.entries?.are
    if (actual > units && role === 'count' && are !== 'holder') {
      const entry = are === undefined ? '' : reservation
      kind.commit(state, params, nowMs, { units: actual - units, leaseMs: 0, entry })
    }
    const atMs = op.instants[held.part]!
    if (actual >= units || op.charged[i] !== true || chargedAtMs.get(held.part) !== atMs) return 0
    return kind.refund(state, params, nowMs, atMs, units - actual, '')
  })
}
