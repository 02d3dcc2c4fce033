import type { Entries, Entry } from '../../limits/limit.ts'
import { MAX_AHEAD_MS } from '../instant.ts'
import {
  type ChargeOp,
  type ConsumeOp,
  type HoldOp,
  type Named,
  type RefundOp,
  type RequestOp,
  takesOnce,
} from '../store.ts'
import { type Loaded, type LoadedLog, stateOf } from './loaded.ts'

// One step, two passes: `check` over all logs of an op, and only if every enforced limit has room, `commit`
// over all logs. redis/decide.lua does the same in one chain of calls.

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

/** Finds the charge of a repeated request, if a log still holds it. */
export function findRepeat(loaded: Loaded, nowMs: number, op: Named): Entry | undefined {
  return op.mayRepeat
    ? (findIn(loaded, 'request', nowMs, op) ?? findIn(loaded, 'holder', nowMs, op))
    : undefined
}

function findIn(loaded: Loaded, are: Entries, nowMs: number, { requestId }: Named): Entry | undefined {
  for (const held of loaded) {
    const { kind, params } = held.log
    // A shadow limit decides nothing.
    if (held.log.shadow || held.log.role !== 'count' || kind.entries?.are !== are) continue
    const entry = kind.entries.find(stateOf(held), params, nowMs, requestId!)
    if (entry !== undefined) return entry
  }
  return undefined
}

/** How many requests all enforced limits have room for. */
export function check(loaded: Loaded, nowMs: number, op: RequestOp): number {
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

/** Charges the admitted requests to every log; to a shadow limit's only as many as it has room for. */
export function commit(loaded: Loaded, nowMs: number, op: ConsumeOp, admitted: number): void {
  for (let i = 0; i < loaded.length; i++) {
    const held = loaded[i]!
    const { kind, params, shadow, role } = held.log
    if (role === 'reservations' && op.reservation !== undefined) {
      kind.commit(stateOf(held), params, nowMs, { units: 1, leaseMs: 0, entry: op.reservation })
    }
    if (role !== 'count') continue
    const mine = shadow ? roomIn(held, admitted) : admitted
    // A request that a shadow limit knows is not renewed.
    if (mine === 0 || held.cost === 0) continue
    held.charged = held.cost * mine
    kind.commit(stateOf(held), params, nowMs, {
      units: held.charged,
      leaseMs: op.leaseMs,
      entry: op.requestId ?? '',
    })
  }
}

/** Charges every log without asking. */
export function charge(loaded: Loaded, nowMs: number, op: ChargeOp): void {
  for (let i = 0; i < loaded.length; i++) {
    const held = loaded[i]!
    if (held.log.role !== 'count') continue
    const units = costIn(held, nowMs, op.units, op)
    // A request that a shadow limit knows is not renewed.
    if (units === 0) continue
    const { kind, params } = held.log
    kind.commit(stateOf(held), params, nowMs, { units, leaseMs: 0, entry: op.requestId ?? '' })
  }
}

/** Three numbers per limit, in declared order: see `ConsumeOutcome.limits`. */
export function answer(loaded: Loaded, nowMs: number, count: number): number[] {
  // Room for one limit: all that most limiters have.
  const numbers = [0, 0, 0]
  for (let l = 0; l < loaded.length; l++) {
    const held = loaded[l]!
    const { first, used, cost, charged } = held
    const { kind, params, serves, role } = held.log
    if (role !== 'count') continue
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

/** Refunds a charge; answers the units per log. */
export function refund(loaded: Loaded, nowMs: number, op: RefundOp): number[] {
  if (op.mayRepeat && !isStillCharged(loaded, nowMs, op)) return loaded.map(() => 0)
  return loaded.map((held, i) => {
    const { kind, params } = held.log
    if (op.charged[i] !== true) return 0
    return kind.refund(stateOf(held), params, nowMs, op.atMs, op.units, op.requestId ?? '')
  })
}

/** Renews or removes what is held; answers whether all enforced logs still counted it. */
export function hold(loaded: Loaded, nowMs: number, op: HoldOp): boolean {
  // All else is left as it is.
  const holders = loaded.filter(({ log }) => log.role === 'count' && log.kind.entries?.are === 'holder')
  restamp(holders, nowMs)
  let isHeld = true
  for (const held of holders) {
    const { kind, params, shadow } = held.log
    const state = stateOf(held)
    const isCounted =
      op.type === 'extend'
        ? kind.entries!.renew(state, params, nowMs, op.requestId, op.units)
        : kind.refund(state, params, nowMs, 0, op.units, op.requestId) > 0
    if (!isCounted && !shadow) isHeld = false
  }
  return isHeld
}

export function list(loaded: Loaded, nowMs: number): (readonly Entry[])[] {
  return loaded.map((held) => {
    const { kind, params, role } = held.log
    if (role !== 'count') return []
    return kind.entries?.list(stateOf(held), params, nowMs) ?? []
  })
}

/** Units that a request of this cost takes of a log: none where it holds the request in shadow. */
function costIn(held: LoadedLog, nowMs: number, cost: number, op: Named): number {
  const { kind, params } = held.log
  if (!takesOnce(held.log, op)) return cost
  return kind.entries!.find(stateOf(held), params, nowMs, op.requestId!) === undefined ? cost : 0
}

/** Of so many requests, those that fit all limits of the log. */
function roomIn({ log, used, cost }: LoadedLog, count: number): number {
  const { limits } = log.params
  let room = count
  for (let i = 0; i < limits.length; i++) {
    const free = Math.max(0, limits[i]! - used[i]!)
    if (free < cost * room) room = Math.floor(free / cost)
  }
  return room
}
