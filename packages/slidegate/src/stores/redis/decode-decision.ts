import type { BanState, Charged } from '../../limits/limit.ts'
import type { LimitSet, Log } from '../../limits/limit-set.ts'
import type { InForce } from '../../limits/override.ts'
import { freesIn } from '../beyond.ts'
import {
  banOf,
  type ConsumeOutcome,
  debitsOf,
  type ExplainOp,
  type ExplainOutcome,
  type Part,
  partsInForce,
  type RequestOp,
  takesOnce,
} from '../store.ts'
import type { Request } from './encode.ts'

// What main.lua answers of a decision. What can be computed from that is computed here, as it is in memory.

/** The waits that the script writes as -1: for ever. */
const NEVER = -1

/** An op's first integer, if it isn't plain: this less the requests admitted. */
const EXTRAS = -10

/** The answer of a log that limits read. */
interface Answer {
  readonly log: Log
  /** Where its set's limits begin among those of all parts. */
  readonly first: number
  /** Units that a request takes of it. */
  readonly cost: number
  /** What it held, if the times are computed here. */
  readonly state: unknown
  /** Units used before the op, per limit. */
  readonly used: number[]
  /** Whether its times were answered; per limit until the cost fits, and until all is free. */
  readonly isTimed: boolean
  readonly times: number[]
}

export function decisionOf(
  { op, count }: Request & { op: RequestOp },
  code: number,
  clockMs: number,
  nowMs: number,
  overrides: (InForce | undefined)[] | undefined,
  next: () => number,
): ConsumeOutcome {
  const parts = partsInForce(op.parts, overrides)
  const answers = answersOf(op, parts, nowMs, next)
  for (let i = answers.length - 1; i >= 0; i--) if (answers[i]!.isTimed) readTimes(answers[i]!, next)
  const extras = code <= EXTRAS ? extrasOf(parts, next) : undefined
  const isAgain = extras !== undefined && extras.repeats > 0
  const admitted = isAgain ? 1 : extras === undefined ? code : EXTRAS - code
  const atMs = isAgain ? clockMs + extras.againMs : nowMs
  const charged = op.type !== 'consume' || isAgain ? 0 : admitted
  const limits = limitsOf(answers, charged, isAgain ? 0 : count, nowMs)
  if (isAgain) for (let i = 2; i < limits.length; i += 3) if (limits[i]! > 0) limits[i]! += nowMs - atMs
  const outcome: ConsumeOutcome = { source: 'store', atMs, admitted, limits, waitMs: 0 }
  const explained = op.type === 'explain' ? explanation(op, parts, answers, nowMs, next) : undefined
  // Nearly all have nothing more to say.
  const isTakenOnce = answers.some(({ log }) => takesOnce(log, op))
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

/** Two times per limit. */
function readTimes({ log, times }: Answer, next: () => number): void {
  for (let i = 0; i < log.serves.length; i++) times.push(next(), next())
}

/** The answers of all logs, without the times. */
function answersOf(op: RequestOp, parts: readonly Part[], nowMs: number, next: () => number): Answer[] {
  const answers: Answer[] = []
  let first = 0
  for (const { set } of parts) {
    for (const log of set.logs) {
      if (log.role !== 'count') continue
      const { kind, params, serves } = log
      const cost = takesOnce(log, op) ? next() : op.cost
      const used: number[] = []
      let isTimed = false
      let state: unknown
      if (kind.read !== undefined) {
        state = kind.read(next, params, nowMs)
        kind.check(state, params, nowMs, used)
      } else {
        for (let i = 0; i < serves.length; i++) {
          const units = next()
          isTimed = units < 0
          used[i] = isTimed ? -1 - units : units
        }
      }
      answers.push({ log, first, cost, state, used, isTimed, times: [] })
    }
    first += set.limits.length
  }
  return answers
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
 * Three numbers per limit: see `ConsumeOutcome.limits`.
 *
 * @param admitted requests that were charged
 * @param asked those that were to be
 */
function limitsOf(answers: readonly Answer[], admitted: number, asked: number, nowMs: number): number[] {
  // Room for one limit: all that most limiters have.
  const limits = answers.length > 0 ? [0, 0, 0] : []
  for (const { log, first, cost, state, used, isTimed, times } of answers) {
    const { kind, params, serves } = log
    const fitting = log.shadow && state !== undefined ? roomIn(log, used, cost, admitted) : admitted
    if (state !== undefined && fitting > 0) {
      kind.commit(state, params, nowMs, { units: cost * fitting, leaseMs: 0, entry: '' })
    }
    for (let i = 0; i < serves.length; i++) {
      const place = 3 * (first + serves[i]!)
      limits[place] = used[i]!
      if (isTimed) {
        limits[place + 1] = times[2 * i] === NEVER ? Number.POSITIVE_INFINITY : times[2 * i]!
        limits[place + 2] = times[2 * i + 1]!
      } else if (state === undefined) {
        limits[place + 1] = 0
        // From the grain of now on, which has the newest charge.
        limits[place + 2] = params.windows[i]! - (nowMs % params.precision)
      } else {
        const isFull = fitting < asked && used[i]! + cost * (fitting + 1) > params.limits[i]!
        limits[place + 1] = isFull ? kind.retryAfter(state, params, i, nowMs, cost) : 0
        limits[place + 2] = kind.resetAfter(state, params, i, nowMs)
      }
    }
  }
  return limits
}

/** How many of `count` requests fit all limits of a log. */
function roomIn({ params }: Log, used: readonly number[], cost: number, count: number): number {
  const rooms = params.limits.map((limit, i) => Math.floor(Math.max(0, limit - used[i]!) / cost))
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
  nowMs: number,
  next: () => number,
): Pick<ExplainOutcome, 'frees' | 'bans' | 'charges'> {
  const frees: number[][] = []
  const charges: (Charged[] | undefined)[] = []
  for (const { log, first, state, used } of answers) {
    log.serves.forEach((limit, i) => {
      const keepsCharges = most !== undefined && log.kind.charges !== undefined
      frees[first + limit] = state === undefined ? listOf(next) : freesIn(log, state, i, used[i]!, nowMs)
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
