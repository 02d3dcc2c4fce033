// The decisions of a reply, and the times that the script leaves out.
//
// The script answers only what this process can't compute. A bucket, a fixed window and a sliding counter answer their state before the
// op, and the functions of the memory store make units and times of it. Windows and logs of entries answer the units used, and their
// times only if a request was denied or the log has leases. The approximate `distinct` always answers both.

import type { BanState, Charged } from '../../limits/limit.ts'
import type { LimitSet, Log } from '../../limits/limit-set.ts'
import { type ExplainOp, freesIn } from '../../ops/explain.ts'
import { countFrom, setReset, setUsed, setWait, usedOf } from '../../ops/numbers.ts'
import {
  banOf,
  type ConsumeOutcome,
  debitsOf,
  type ExplainOutcome,
  type Overrides,
  type Part,
  partsInForce,
  type RequestOp,
  takesOnce,
} from '../../ops/request.ts'
import { kindOf, type Op } from '../../ops/table.ts'
import { zerosFor } from '../outcome.ts'
import type { Request } from './encode.ts'

/** A request for a decision. */
export type DecisionRequest = Pick<Request, 'count'> & { readonly op: Extract<Op, RequestOp> }

/** The waits that the script writes as -1: for ever. */
const NEVER = -1

/** An op's first integer, if it isn't plain: this less the requests admitted. */
const EXTRAS = -10

/** The answer of a log that limits read. Its numbers are among those of all limits: see `ConsumeOutcome.limits`. */
interface Answer {
  readonly log: Log
  /** Where its set's limits begin among those of all parts. */
  readonly first: number
  /** Units that a request takes of it. */
  readonly cost: number
  /** What it held, if the times are computed here. */
  readonly state: unknown
  /** Whether its times were answered. */
  readonly isTimed: boolean
}

export function decisionOf(
  { op, count }: DecisionRequest,
  clockMs: number,
  nowMs: number,
  overrides: Overrides,
  next: () => number,
  isExplained: boolean,
): ConsumeOutcome {
  const code = next()
  const parts = partsInForce(op.parts, overrides)
  const limits = zerosFor(parts)
  const answers = answersOf(op, parts, nowMs, limits, next)
  for (let i = answers.length - 1; i >= 0; i--) if (answers[i]!.isTimed) readTimes(answers[i]!, limits, next)
  const extras = code <= EXTRAS ? extrasOf(parts, next) : undefined
  const isAgain = extras !== undefined && extras.repeats > 0
  const admitted = isAgain ? 1 : extras === undefined ? code : EXTRAS - code
  const atMs = isAgain ? clockMs + extras.againMs : nowMs
  const charged = kindOf(op).effect !== 'charge' || isAgain ? 0 : admitted
  computeTimes(answers, limits, charged, isAgain ? 0 : count, nowMs)
  if (isAgain) countFrom(limits, nowMs - atMs)
  const outcome: ConsumeOutcome = { source: 'store', atMs, admitted, limits, waitMs: 0 }
  const explained = isExplained
    ? explanation(op as ExplainOp, parts, answers, limits, nowMs, next)
    : undefined
  // Nearly all have nothing more to say.
  const isTakenOnce = op.mayRepeat === true && answers.some(({ log }) => takesOnce(log, op))
  if (!isTakenOnce && extras === undefined && overrides === undefined && explained === undefined)
    return outcome
  const blocked = explained?.bans.map((ban) => ban?.blockedMs ?? 0) ?? extras?.blocked ?? parts.map(() => 0)
  const ban =
    extras !== undefined && extras.byOpMs > 0 ? { ms: extras.byOpMs, parts: [] } : banOf(blocked, overrides)
  return {
    ...outcome,
    ...(isAgain && { repeats: extras.repeats }),
    ...(isTakenOnce && { debits: debitsOf(parts, outcome, costsOf(answers)) }),
    ...explained,
    ...(ban && { ban }),
    ...(overrides && { overrides }),
  }
}

/** Reads two times per limit. */
function readTimes({ log, first }: Answer, limits: number[], next: () => number): void {
  for (let i = 0; i < log.serves.length; i++) {
    const limit = first + log.serves[i]!
    const waitMs = next()
    setWait(limits, limit, waitMs === NEVER ? Number.POSITIVE_INFINITY : waitMs)
    setReset(limits, limit, next())
  }
}

/** Reads the answers of all logs, without the times. */
function answersOf(
  op: RequestOp,
  parts: readonly Part[],
  nowMs: number,
  limits: number[],
  next: () => number,
): Answer[] {
  let answers: Answer[] = []
  let first = 0
  for (let part = 0; part < parts.length; part++) {
    const { set } = parts[part]!
    for (let place = 0; place < set.logs.length; place++) {
      const log = set.logs[place]!
      if (log.role !== 'count') continue
      const answer = answerOf(op, log, first, nowMs, limits, next)
      // An array that begins empty makes room for 17 at the first.
      if (answers.length === 0) answers = [answer]
      else answers.push(answer)
    }
    first += set.limits.length
  }
  return answers
}

/** Units used per limit of a log, as its kind finds them. One list for all logs, since it is read at once. */
const found: number[] = []

function answerOf(
  op: RequestOp,
  log: Log,
  first: number,
  nowMs: number,
  limits: number[],
  next: () => number,
): Answer {
  const { kind, params, serves } = log
  const cost = takesOnce(log, op) ? next() : op.cost
  let isTimed = false
  let state: unknown
  if (kind.read !== undefined) {
    state = kind.read(next, params, nowMs)
    kind.check(state, params, nowMs, found)
  }
  for (let i = 0; i < serves.length; i++) {
    let units = state === undefined ? next() : found[i]!
    if (units < 0) {
      isTimed = true
      units = -1 - units
    }
    setUsed(limits, first + serves[i]!, units)
  }
  return { log, first, cost, state, isTimed }
}

/** What isn't plain about a decision. */
interface Extras {
  /** When a request that comes again was admitted, from the clock on; and the units that it was charged, 0 for no such request. */
  readonly againMs: number
  readonly repeats: number
  /** For how long the op has blocked a key. */
  readonly byOpMs: number
  /** For how long each part was blocked before. */
  readonly blocked: readonly number[]
}

function extrasOf(parts: readonly Part[], next: () => number): Extras {
  const [againMs, repeats, byOpMs] = [next(), next(), next()]
  return { againMs, repeats, byOpMs, blocked: parts.map(({ set }) => (hasBan(set) ? next() : 0)) }
}

/**
 * Computes the times of all limits whose logs didn't answer them.
 *
 * @param admitted requests that were charged
 * @param asked those that were to be
 */
function computeTimes(
  answers: readonly Answer[],
  limits: number[],
  admitted: number,
  asked: number,
  nowMs: number,
): void {
  for (let place = 0; place < answers.length; place++) {
    const answer = answers[place]!
    if (answer.isTimed) continue
    const { log, first, cost, state } = answer
    const { kind, params, serves } = log
    const fitting = log.shadow && state !== undefined ? roomIn(answer, limits, admitted) : admitted
    if (state !== undefined && fitting > 0) {
      kind.commit(state, params, nowMs, { units: cost * fitting, leaseMs: 0, entry: '' })
    }
    for (let i = 0; i < serves.length; i++) {
      const limit = first + serves[i]!
      if (state === undefined) {
        // From the grain of now on, which has the newest charge.
        setReset(limits, limit, params.windows[i]! - (nowMs % params.precision))
        continue
      }
      const isFull = fitting < asked && usedOf(limits, limit) + cost * (fitting + 1) > params.limits[i]!
      if (isFull) setWait(limits, limit, kind.retryAfter(state, params, i, nowMs, cost))
      setReset(limits, limit, kind.resetAfter(state, params, i, nowMs))
    }
  }
}

/** How many of `count` requests fit all limits of a log. */
function roomIn({ log, first, cost }: Answer, limits: readonly number[], count: number): number {
  const { params, serves } = log
  const rooms = params.limits.map((limit, i) => {
    const used = usedOf(limits, first + serves[i]!)
    return Math.floor(Math.max(0, limit - used) / cost)
  })
  return Math.min(count, ...rooms)
}

/** Units that a request takes of each limit. */
function costsOf(answers: readonly Answer[]): number[] {
  const costs: number[] = []
  for (const { log, first, cost } of answers) for (const i of log.serves) costs[first + i] = cost
  return costs
}

function hasBan({ logs }: LimitSet): boolean {
  return logs.some(({ role }) => role === 'ban')
}

function explanation(
  { charges: most }: ExplainOp,
  parts: readonly Part[],
  answers: readonly Answer[],
  limits: readonly number[],
  nowMs: number,
  next: () => number,
): Pick<ExplainOutcome, 'frees' | 'bans' | 'charges'> {
  const frees: number[][] = []
  const charges: (Charged[] | undefined)[] = []
  for (const { log, first, state } of answers) {
    log.serves.forEach((limit, i) => {
      const used = usedOf(limits, first + limit)
      const keepsCharges = most !== undefined && log.kind.charges !== undefined
      frees[first + limit] = state === undefined ? listOf(next) : freesIn(log, state, i, used, nowMs)
      charges[first + limit] = keepsCharges ? chargesOf(nowMs, next) : undefined
    })
  }
  const bans = parts.map(({ set }): BanState | undefined => {
    if (!hasBan(set)) return undefined
    const [level, denials, blockedMs] = [next(), next(), next()]
    return { blockedMs, level, denials }
  })
  return { frees, bans, ...(most !== undefined && { charges }) }
}

/** A number, and as many that follow it. Room is not made for as many as are said to follow. */
function listOf(next: () => number): number[] {
  const numbers: number[] = []
  for (let count = next(); count > 0; count--) numbers.push(next())
  return numbers
}

function chargesOf(nowMs: number, next: () => number): Charged[] {
  const charges: Charged[] = []
  for (let count = next(); count > 0; count--) charges.push({ atMs: nowMs - next(), units: next() })
  return charges
}
