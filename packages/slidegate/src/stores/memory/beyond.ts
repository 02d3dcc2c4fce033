import type { BanState, Charged } from '../../limits/limit.ts'
import type { Log } from '../../limits/limit-set.ts'
import type { ConsumeOp, SettleOp } from '../store.ts'
import { type Loaded, type LoadedLog, stateOf } from './loaded.ts'

// Reservations, explanations and bans, which few ops need. The Lua of it is in redis/rare.lua.

/**
 * Refunds the charge beyond the actual cost, or charges the rest, once. Answers the units returned per log, or nothing
 * if it was settled before.
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
    // Limits may have changed to a kind that keeps entries: the rest is charged as a request, but not as a holder.
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

const TENTHS: readonly number[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

/** Per limit, when one unit and so many tenths of what is used are free again: see `ExplainOutcome.frees`. */
export function freesOf(loaded: Loaded, nowMs: number): number[][] {
  const frees: number[][] = []
  for (const held of loaded) {
    const { serves, role } = held.log
    if (role !== 'count') continue
    serves.forEach((limit, i) => {
      frees[held.first + limit] = freesIn(held.log, stateOf(held), i, held.used[i]!, nowMs)
    })
  }
  return frees
}

/** The same of limit `i` of a log, of which `used` units are used. */
export function freesIn(
  { kind, params }: Log,
  state: unknown,
  i: number,
  used: number,
  nowMs: number,
): number[] {
  const freed = used === 0 ? [] : [1, ...TENTHS.map((tenth) => Math.ceil((used * tenth) / 10))]
  return freed.map((units) => kind.retryAfter(state, params, i, nowMs, params.limits[i]! - used + units))
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

/** The state of each part's ban, if it has one. */
export function bansOf(loaded: Loaded, parts: number, nowMs: number): (BanState | undefined)[] {
  const bans = new Array<BanState | undefined>(parts).fill(undefined)
  for (const held of loaded) {
    const { kind, params } = held.log
    if (kind.ban !== undefined) bans[held.part] = kind.ban.look(stateOf(held), params, nowMs)
  }
  return bans
}

/**
 * Counts denied requests in the bans of the parts whose limits denied them. Answers for how many milliseconds any part
 * is blocked now. A caller that waits does no wrong.
 */
export function banDenied(loaded: Loaded, nowMs: number, op: ConsumeOp, denied: number): number {
  if (denied === 0 || op.isWaiting) return 0
  let blockedMs = 0
  for (const held of loaded) {
    const { kind, params } = held.log
    if (kind.ban === undefined) continue
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
