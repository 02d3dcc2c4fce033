// Decides requests and charges the admitted ones, or charges without a decision.

import { answer, charge as chargeLog, costIn, decided, look, roomIn } from './driver.ts'
import {
  FORCED,
  LEASE,
  type Loaded,
  type LoadedLog,
  type Memory,
  NAMED,
  type OpKind,
  RESERVATION_NAME,
  stateOf,
  WAITING,
} from './op.ts'
import type { AnyOp, ConsumeOutcome, Named, RequestOp } from './request.ts'

/** Decides requests in order. A request is charged if no part is blocked and all enforced limits have room. */
export interface ConsumeOp extends RequestOp {
  readonly type: 'consume'
  /** The process may spend the units within this many milliseconds. 0 if they are spent immediately. */
  readonly leaseMs: number
  /** Whether the request is waiting in a queue. Denials of such a request don't count toward bans. */
  readonly isWaiting?: boolean | undefined
  /** The unique name of a reservation, by which it can be settled once. Each part must have a log of reservations. */
  readonly reservation?: string | undefined
}

export const consume: OpKind<ConsumeOp, ConsumeOutcome> = {
  effect: 'charge',
  work: 'write',
  counts: true,
  fields: {
    cost: 'units',
    count: 'count',
    leaseMs: 'time',
    isWaiting: 'flag?',
    reservation: 'name?',
    ...NAMED,
  },

  apply(op, memory) {
    const { loaded, nowMs } = memory
    const admitted = look(memory, op)
    if (typeof admitted !== 'number') return admitted
    // If a part has bans, denied requests must be counted.
    const isRemembered = admitted < op.count && loaded.some(({ log }) => log.kind.ban !== undefined)
    if (admitted === 0 && !isRemembered) return decided(loaded, nowMs, admitted, op)
    if (!memory.makeRoom()) {
      return admitted > 0 ? whenFull(op, memory) : decided(loaded, nowMs, admitted, op)
    }
    if (admitted > 0) commit(loaded, nowMs, op, admitted)
    const outcome = decided(loaded, nowMs, admitted, op)
    const blockedMs = isRemembered ? banDenied(loaded, nowMs, op, op.count - admitted) : 0
    return blockedMs > 0 ? { ...outcome, ban: { ms: blockedMs, parts: [] } } : outcome
  },

  encode({ isWaiting, leaseMs, reservation }, words) {
    if (leaseMs > 0) words.push(`${leaseMs}`)
    if (reservation !== undefined) words.push(reservation)
    const lease = leaseMs > 0 ? LEASE : 0
    return (isWaiting ? WAITING : 0) + lease + (reservation === undefined ? 0 : RESERVATION_NAME)
  },

  answer: (reply) => reply.decision(),
}

/** Charges admitted requests to every log. A shadow limit's log is charged only for requests that fit. */
function commit(loaded: Loaded, nowMs: number, op: ConsumeOp, admitted: number): void {
  for (const held of loaded) {
    const { shadow, role } = held.log
    if (role === 'reservations' && op.reservation !== undefined) chargeLog(held, nowMs, 1, op.reservation)
    if (role !== 'count') continue
    held.charged = held.cost * (shadow ? roomIn(held, admitted) : admitted)
    // `charged` is 0 for a shadow limit's log that already has the request, so the entry isn't renewed.
    if (held.charged > 0) chargeLog(held, nowMs, held.charged, op.requestId, op.leaseMs)
  }
}

/** The answer if the store is full of keys at their limits. */
function whenFull(op: ConsumeOp, memory: Memory): ConsumeOutcome {
  const { loaded, nowMs, onFull, opensAtMs } = memory
  if (onFull === 'throw') throw memory.full()
  const limits = answer(loaded, nowMs, op.count)
  return onFull === 'allow'
    ? { source: 'failOpen', atMs: nowMs, admitted: op.count, limits, waitMs: 0 }
    : { source: 'failClosed', atMs: nowMs, admitted: 0, limits, waitMs: Math.max(1, opensAtMs - nowMs) }
}

/** Counts denials toward the bans of the parts that denied requests. Returns the longest block in milliseconds, or 0. */
function banDenied(loaded: Loaded, nowMs: number, op: ConsumeOp, denied: number): number {
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

function hasDenied({ log, used, charged, cost }: LoadedLog): boolean {
  if (log.role !== 'count' || log.shadow) return false
  return log.params.limits.some((limit, i) => used[i]! + charged + cost > limit)
}

/** Charges every log, even beyond its limit. The Redis script runs this op as a decision with the FORCED option. */
export interface ChargeOp extends AnyOp, Named {
  readonly type: 'charge'
  readonly units: number
}

export const charge: OpKind<ChargeOp, undefined> = {
  effect: 'charge',
  work: 'find',
  counts: true,
  fields: { units: 'units', ...NAMED },

  apply(op, memory) {
    if (!memory.makeRoom()) {
      if (memory.onFull === 'allow') return
      throw memory.full()
    }
    const { loaded, nowMs } = memory
    for (const held of loaded) {
      if (held.log.role !== 'count') continue
      const units = costIn(held, nowMs, op.units, op)
      if (units > 0) chargeLog(held, nowMs, units, op.requestId)
    }
  },

  encode: () => FORCED,
}
