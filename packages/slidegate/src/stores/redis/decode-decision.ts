import type { BanState, Charged } from '../../limits/limit.ts'
import type { LimitSet, Log } from '../../limits/limit-set.ts'
import type { InForce } from '../../limits/override.ts'
import { freesIn } from '../memory/beyond.ts'
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
  { op, count }: Request & { op: RequestOp },
  code: number,
  clockMs: number,
  nowMs: number,
  overrides: (InForce | undefined)[] | undefined,
  next: () => number,
): ConsumeOutcome {
  const parts = partsInForce(op.parts, overrides)
  const limits = zeros(parts)
  const answers = answersOf(op, parts, nowMs, limits, next)
  for (let i = answers.length - 1; i >= 0; i--) if (answers[i]!.isTimed) readTimes(answers[i]!, limits, next)
  const extras = code <= EXTRAS ? extrasOf(parts, next) : undefined
  const isAgain = extras !== undefined && extras.repeats > 0
  const admitted = isAgain ? 1 : extras === undefined ? code : EXTRAS - code
  const atMs = isAgain ? clockMs + extras.againMs : nowMs
  const charged = op.type !== 'consume' || isAgain ? 0 : admitted
  computeTimes(answers, limits, charged, isAgain ? 0 : count, nowMs)
  if (isAgain) for (let i = 2; i < limits.length; i += 3) if (limits[i]! > 0) limits[i]! += nowMs - atMs
  const outcome: ConsumeOutcome = { source: 'store', atMs, admitted, limits, waitMs: 0 }
  const explained = op.type === 'explain' ? explanation(op, parts, answers, limits, nowMs, next) : undefined
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
    const place = 3 * (first + log.serves[i]!)
    const waitMs = next()
    limits[place + 1] = waitMs === NEVER ? Number.POSITIVE_INFINITY : waitMs
    limits[place + 2] = next()
  }
}

/** Three numbers per limit. */
function zeros(parts: readonly Part[]): number[] {
  let count = 0
  for (let part = 0; part < parts.length; part++) count += parts[part]!.set.limits.length
  // All that most limiters have is one.
  const limits = count > 0 ? [0, 0, 0] : []
  for (let i = limits.length; i < 3 * count; i++) limits.push(0)
  return limits
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
    limits[3 * (first + serves[i]!)] = units
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
      const place = 3 * (first + serves[i]!)
      if (state === undefined) {
        // From the grain of now on, which has the newest charge.
        limits[place + 2] = params.windows[i]! - (nowMs % params.precision)
        continue
      }
      const isFull = fitting < asked && limits[place]! + cost * (fitting + 1) > params.limits[i]!
      if (isFull) limits[place + 1] = kind.retryAfter(state, params, i, nowMs, cost)
      limits[place + 2] = kind.resetAfter(state, params, i, nowMs)
    }
  }
}

/** How many of `count` requests fit all limits of a log. */
function roomIn({ log, first, cost }: Answer, limits: readonly number[], count: number): number {
  const { params, serves } = log
  const rooms = params.limits.map((limit, i) => {
    const used = limits[3 * (first + serves[i]!)]!
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
      const used = limits[3 * (first + limit)]!
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
