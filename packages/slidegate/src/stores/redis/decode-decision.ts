// Reads a decision, and computes the times that the script omits.
//
// For buckets, fixed windows and sliding counters, the script returns the state before the op. The memory store's
// functions then compute units and times. For sliding windows and logs of entries, the script returns the units used.
// It also returns the times if a request was denied or the log has leases. For an approximate `distinct` limit, it
// always returns both.

import type { BanState, ListedCharge } from '../../limits/limit.ts'
import type { LimitSet } from '../../limits/limit-set.ts'
import { answerOf, freesIn, roomIn, takesOnce, withDebits } from '../../ops/driver.ts'
import { countFrom, setReset, setUsed, setWait } from '../../ops/numbers.ts'
import { CheckedLog } from '../../ops/op.ts'
import type { ExplainOp } from '../../ops/peek.ts'
import {
  banOf,
  type ConsumeOutcome,
  type ExplainOutcome,
  type Overrides,
  type Part,
  partsInForce,
  type RequestOp,
} from '../../ops/request.ts'
import { kindOf, type Op } from '../../ops/table.ts'
import { zerosFor } from '../outcome.ts'
import type { Request } from './encode.ts'

export type DecisionRequest = Pick<Request, 'count'> & { readonly op: Extract<Op, RequestOp> }

/** Returns the next integer in the reply. */
type Next = () => number

/** The script writes this for infinite waits. */
const NEVER = -1

/** Marks an outcome with extra numbers. Its first integer is this constant minus the number of admitted requests. */
const EXTRAS = -10

class ReadLog extends CheckedLog {
  /** The state before the op, if this process computes the log's times. */
  state: unknown
  /** Whether the script returns the log's times. */
  isTimed = false
}

export function decisionOf(
  { op, count }: DecisionRequest,
  clockMs: number,
  nowMs: number,
  overrides: Overrides,
  next: Next,
): ConsumeOutcome {
  const code = next()
  const parts = partsInForce(op.parts, overrides)
  const limits = zerosFor(parts)
  const logs = logsOf(op, parts, nowMs, next)
  for (let i = logs.length - 1; i >= 0; i--) if (logs[i]!.isTimed) readTimes(logs[i]!, limits, next)
  const extras = code <= EXTRAS ? extrasOf(parts, next) : undefined
  const isAgain = extras !== undefined && extras.repeats > 0
  const admitted = isAgain ? 1 : extras === undefined ? code : EXTRAS - code
  const atMs = isAgain ? clockMs + extras.againMs : nowMs
  const charged = kindOf(op).effect !== 'charge' || isAgain ? 0 : admitted
  for (let i = 0; i < logs.length; i++) computeNumbers(logs[i]!, limits, charged, isAgain ? 0 : count, nowMs)
  if (isAgain) countFrom(limits, nowMs - atMs)
  const outcome = withDebits(logs, op, { source: 'store', atMs, admitted, limits, waitMs: 0 })
  const explained = op.type === 'explain' ? explanation(op, parts, logs, nowMs, next) : undefined
  // Nearly all outcomes have no extra numbers.
  if (extras === undefined && overrides === undefined && explained === undefined) return outcome
  const blocked = explained?.bans.map((ban) => ban?.blockedMs ?? 0) ?? extras?.blocked ?? parts.map(() => 0)
  const ban =
    extras !== undefined && extras.byOpMs > 0 ? { ms: extras.byOpMs, parts: [] } : banOf(blocked, overrides)
  return {
    ...outcome,
    ...(isAgain && { repeats: extras.repeats }),
    ...explained,
    ...(ban && { ban }),
    ...(overrides && { overrides }),
  }
}

/** Objects that are reused for each op. An op may have fewer logs than there are objects. */
const pool: ReadLog[] = []

function logsOf(op: RequestOp, parts: readonly Part[], nowMs: number, next: Next): readonly ReadLog[] {
  let count = 0
  let first = 0
  for (let part = 0; part < parts.length; part++) {
    const { set } = parts[part]!
    for (let place = 0; place < set.logs.length; place++) {
      const log = set.logs[place]!
      if (log.role !== 'count') continue
      pool[count] ??= new ReadLog()
      const read = pool[count++]!
      read.log = log
      read.first = first
      readLog(read, op, nowMs, next)
    }
    first += set.limits.length
  }
  return count === pool.length ? pool : pool.slice(0, count)
}

function readLog(read: ReadLog, op: RequestOp, nowMs: number, next: Next): void {
  const { log, used } = read
  const { kind, params, serves } = log
  read.cost = takesOnce(log, op) ? next() : op.cost
  read.isTimed = false
  read.state = kind.read?.(next, params, nowMs)
  if (kind.read !== undefined) {
    kind.check(read.state, params, nowMs, used)
    return
  }
  for (let i = 0; i < serves.length; i++) {
    const units = next()
    // If times follow, this is -1 minus the units.
    if (units < 0) read.isTimed = true
    used[i] = units < 0 ? -1 - units : units
  }
}

function readTimes({ log, first }: ReadLog, limits: number[], next: Next): void {
  for (let i = 0; i < log.serves.length; i++) {
    const limit = first + log.serves[i]!
    const waitMs = next()
    setWait(limits, limit, waitMs === NEVER ? Number.POSITIVE_INFINITY : waitMs)
    setReset(limits, limit, next())
  }
}

function computeNumbers(read: ReadLog, limits: number[], admitted: number, asked: number, nowMs: number) {
  const { log, first, used, cost, state, isTimed } = read
  const { kind, params, serves } = log
  if (state === undefined) {
    for (let i = 0; i < serves.length; i++) {
      const limit = first + serves[i]!
      setUsed(limits, limit, used[i]!)
      // The newest charge is in the window's current step.
      if (!isTimed) setReset(limits, limit, params.windows[i]! - (nowMs % params.precision))
    }
    return
  }
  const units = cost * (log.shadow ? roomIn(read, admitted) : admitted)
  if (units > 0) kind.commit(state, params, nowMs, { units, leaseMs: 0, entry: '' })
  read.charged = units
  answerOf(read, state, nowMs, asked, limits)
}

/** Reads a decision's extra numbers. `againMs` is the original time of a repeated request, relative to the clock. */
function extrasOf(parts: readonly Part[], next: Next) {
  const [againMs, repeats, byOpMs] = [next(), next(), next()]
  return { againMs, repeats, byOpMs, blocked: parts.map(({ set }) => (hasBan(set) ? next() : 0)) }
}

function hasBan({ logs }: LimitSet): boolean {
  return logs.some(({ role }) => role === 'ban')
}

function explanation(
  { charges: most }: ExplainOp,
  parts: readonly Part[],
  logs: readonly ReadLog[],
  nowMs: number,
  next: Next,
): Pick<ExplainOutcome, 'frees' | 'bans' | 'charges'> {
  const frees: number[][] = []
  const charges: (ListedCharge[] | undefined)[] = []
  const readCharge = (): ListedCharge => ({ atMs: nowMs - next(), units: next() })
  for (const { log, first, used, state } of logs) {
    log.serves.forEach((limit, i) => {
      const keepsCharges = most !== undefined && log.kind.charges !== undefined
      frees[first + limit] =
        state === undefined ? listOf(next, next) : freesIn(log, state, i, used[i]!, nowMs)
      charges[first + limit] = keepsCharges ? listOf(next, readCharge) : undefined
    })
  }
  const bans = parts.map(({ set }): BanState | undefined => {
    if (!hasBan(set)) return undefined
    const [level, denials, blockedMs, forMs] = [next(), next(), next(), next()]
    return { blockedMs, ...(blockedMs > 0 && { sinceMs: nowMs - forMs }), level, denials }
  })
  return { frees, bans, ...(most !== undefined && { charges }) }
}

/** Reads a count, and then that many items. */
function listOf<Item>(next: Next, read: () => Item): Item[] {
  const items: Item[] = []
  for (let count = next(); count > 0; count--) items.push(read())
  return items
}
