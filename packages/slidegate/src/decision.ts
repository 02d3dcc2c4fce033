import { SlidegateError } from './errors.ts'
import type { Limit } from './limits/limit.ts'
import {
  type Ban,
  type ConsumeOutcome,
  type Debit,
  type Part,
  partsInForce,
  type RequestOp,
} from './stores/store.ts'

/**
 * Where an answer comes from:
 * - `store`: the store has decided
 * - `lease`, `denyCache`: this process has, by what the store had told it before
 * - `fallback`: this process has, by a share of the limits, while the store gave no answer
 * - `failOpen`, `failClosed`: allowed or denied because nothing could be known
 */
export type Source = 'store' | 'lease' | 'denyCache' | 'fallback' | 'failOpen' | 'failClosed'

/** What one limit says of a request. Times are milliseconds from the decision's `atMs`. */
export interface LimitDecision {
  readonly name: string
  /** Units that the window admits. */
  readonly limit: number
  readonly windowMs: number
  /** The step in which the window slides; a fixed window's own length. */
  readonly precisionMs: number
  /** A shadow limit is counted and reported, but decides nothing. */
  readonly shadow: boolean
  /** Whether this limit had room for the cost. */
  readonly allowed: boolean
  /** Whole units left after this decision, never below 0. */
  readonly remaining: number
  /** When the same cost fits this limit; 0 where it fits now, `Infinity` where it never will. */
  readonly retryAfterMs: number
  /** When all of the limit is free again; 0 where it is now. */
  readonly resetAfterMs: number
}

/**
 * The answer to one request: plain data.
 *
 * With `slidingWindow({ limit: 10, window: '1s' })` and ten requests of cost 1, made 50 ms apart from
 * t = 0 on: the tenth (t = 450) is allowed with `remaining` 0 and `resetAfterMs` 1000. Another at t = 500 is
 * denied with `retryAfterMs` 500 (the first leaves the window at t = 1000) and `resetAfterMs` 950.
 */
export interface Decision {
  readonly allowed: boolean
  /** Units that the request takes. A request repeated with its `requestId` has the units that were charged. */
  readonly cost: number
  /**
   * Whole units left after this decision, the least over the enforced limits; `Infinity` where none is enforced, 0
   * with `failClosed` and if a ban denies.
   */
  readonly remaining: number
  /**
   * Milliseconds until the same request would be admitted if nobody else asked meanwhile: admitted then,
   * denied 1 ms before. 0 when allowed; `Infinity` for a cost above a limit. Of a blocked key: until both the ban is over
   * and its limits have room.
   */
  readonly retryAfterMs: number
  /** Milliseconds until all quota is back, the greatest over the enforced limits. */
  readonly resetAfterMs: number
  /**
   * Names of what denies the request: first bans in force (`ban`, or `ip.ban` of a dimension), then enforced limits without
   * room, in the order in which they were declared.
   */
  readonly deniedBy: readonly string[]
  /**
   * One entry per limit, shadow ones too, in the order in which they were declared. With `failOpen` and `failClosed`
   * they are as of a key that is not known.
   */
  readonly limits: readonly LimitDecision[]
  readonly source: Source
  /**
   * Only on a denial of a blocked key: the milliseconds until its ban is over, of several keys the most. `deniedBy` names
   * bans that were in force, or only limits if this denial has brought the ban about.
   */
  readonly blockedMs?: number
  /**
   * The instant of the decision, and of its charge: epoch milliseconds by the store's clock.
   *
   * On a Cluster each key of a request is charged at the instant of its own server. This is the latest of them.
   */
  readonly atMs: number
}

const NOBODY: readonly string[] = Object.freeze([])

/**
 * How `deniedBy` names a ban of a part's key.
 *
 * @param limiter the limiter's name, with that of a dimension behind a slash
 */
export function banName(limiter: string): string {
  const slash = limiter.indexOf('/')
  return slash < 0 ? 'ban' : `${limiter.slice(slash + 1)}.ban`
}

/** The bans that have denied the request; none if this denial has brought one about. */
export function bansIn({ blockedMs, deniedBy, limits }: Decision): readonly string[] {
  if (blockedMs === undefined) return NOBODY
  return deniedBy.filter((name) => limits.every((limit) => limit.name !== name))
}

/** Whether what this source admits is charged anywhere. */
export function isCounted(source: Source): boolean {
  return source === 'store' || source === 'lease' || source === 'fallback'
}

/** Whether anybody has counted: else nothing is known of what is left. */
export function isDecided(source: Source): boolean {
  return source !== 'failOpen' && source !== 'failClosed'
}

/** The limits of an op, those of one part behind those of another. */
export function limitsOf(parts: readonly Part[]): readonly Limit[] {
  return parts.length === 1 ? parts[0]!.set.limits : parts.flatMap(({ set }) => set.limits)
}

/** The same by the numbers that were in force. */
export function limitsInForce(
  { parts }: { readonly parts: readonly Part[] },
  { overrides }: ConsumeOutcome,
): readonly Limit[] {
  return limitsOf(partsInForce(parts, overrides))
}

/**
 * The decision of the request at `position` (from 0) among those that an op asked for together.
 *
 * @throws {SlidegateError} `reused_request_id`
 */
export function decisionOf(asked: RequestOp, outcome: ConsumeOutcome, position: number): Decision {
  const { overrides } = outcome
  const op = overrides === undefined ? asked : { ...asked, parts: partsInForce(asked.parts, overrides) }
  checkRepeat(op, outcome)
  const { ban } = outcome
  if (ban !== undefined && position >= outcome.admitted) return denialOfBlocked(op, outcome, ban)
  return decisionByLimits(op, outcome, position)
}

/** Refuses a repeat that costs more than was charged: the rest would pass uncounted. */
function checkRepeat({ cost }: RequestOp, { repeats = cost }: ConsumeOutcome): void {
  if (cost <= repeats) return
  throw new SlidegateError(
    'reused_request_id',
    `the cost is ${cost}, but the request of this requestId was charged ${repeats}; use that cost, or another requestId`,
    cost,
  )
}

/** Units that a request takes of each limit, in declared order. */
export function costsOf({ parts, cost }: RequestOp, debits: readonly Debit[]): readonly number[] {
  return debits.flatMap(({ costs }, part) => costs ?? parts[part]!.set.limits.map(() => cost))
}

/** A denial of a key that is blocked, by its ban or by the limits that have brought it about. */
function denialOfBlocked(op: RequestOp, outcome: ConsumeOutcome, ban: Ban): Decision {
  const decision = decisionByLimits(op, outcome, outcome.admitted)
  const { retryAfterMs, resetAfterMs, deniedBy } = decision
  const bans = ban.parts.map((part) => banName(op.parts[part]!.set.limiter))
  return {
    ...decision,
    remaining: bans.length > 0 ? 0 : decision.remaining,
    retryAfterMs: Math.max(retryAfterMs, ban.ms),
    resetAfterMs: Math.max(resetAfterMs, ban.ms),
    deniedBy: [...bans, ...deniedBy],
    blockedMs: ban.ms,
  }
}

/**
 * How many requests the log of each limit had room for, over the limits of all parts in order. It matters for logs that only
 * count: these are charged for as many.
 */
export function roomsOf(parts: readonly Part[], cost: number, numbers: readonly number[]): readonly number[] {
  const rooms: number[] = []
  let first = 0
  for (const { set } of parts) {
    for (const { serves, role } of set.logs) {
      if (role !== 'count') continue
      const free = serves.map((i) => Math.max(0, set.limits[i]!.limit - numbers[3 * (first + i)]!))
      const room = Math.floor(Math.min(...free) / cost)
      for (const i of serves) rooms[first + i] = room
    }
    first += set.limits.length
  }
  return rooms
}

function decisionByLimits(op: RequestOp, outcome: ConsumeOutcome, position: number): Decision {
  const { parts, cost } = op
  const limits = limitsOf(parts)
  const costs = outcome.debits && costsOf(op, outcome.debits)
  const rooms = limits.some(isShadow) ? roomsOf(parts, cost, outcome.limits) : undefined
  return decisionBy(limits, cost, outcome, position, op.type === 'consume', costs, rooms)
}

function isShadow({ shadow }: Limit): boolean {
  return shadow
}

// Decisions and their limits are plain objects: a spread, JSON, a log and a deep comparison see what they would of literals.
// So `limits` are made with the decision. Only a getter could make them later: a spread drops one that is inherited, and
// one for each decision allocates more than the limits do. Constructors allocate less than literals: they leave room for the
// decision's origin (origin.ts), and V8 adds no note of where the object was made.

interface Constructor<Made, Values extends unknown[]> {
  new (...values: Values): Made
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

function makeDecision(
  this: Writable<Decision>,
  allowed: boolean,
  cost: number,
  remaining: number,
  retryAfterMs: number,
  resetAfterMs: number,
  deniedBy: readonly string[],
  limits: readonly LimitDecision[],
  source: Source,
  atMs: number,
): void {
  this.allowed = allowed
  this.cost = cost
  this.remaining = remaining
  this.retryAfterMs = retryAfterMs
  this.resetAfterMs = resetAfterMs
  this.deniedBy = deniedBy
  this.limits = limits
  this.source = source
  this.atMs = atMs
}

function makeLimitDecision(
  this: Writable<LimitDecision>,
  { name, limit, windowMs, precisionMs, shadow }: Limit,
  allowed: boolean,
  remaining: number,
  retryAfterMs: number,
  resetAfterMs: number,
): void {
  this.name = name
  this.limit = limit
  this.windowMs = windowMs
  this.precisionMs = precisionMs
  this.shadow = shadow
  this.allowed = allowed
  this.remaining = remaining
  this.retryAfterMs = retryAfterMs
  this.resetAfterMs = resetAfterMs
}

makeDecision.prototype = Object.prototype
makeLimitDecision.prototype = Object.prototype

const PlainDecision = makeDecision as unknown as Constructor<Decision, Parameters<typeof makeDecision>>
const PlainLimitDecision = makeLimitDecision as unknown as Constructor<
  LimitDecision,
  Parameters<typeof makeLimitDecision>
>

/**
 * The decision by limits without a ban.
 *
 * @param costs units that it takes of each limit, if not its cost
 * @param rooms see {@link roomsOf}; needed if a limit is a shadow
 */
export function decisionBy(
  limits: readonly Limit[],
  cost: number,
  outcome: ConsumeOutcome,
  position: number,
  isConsume: boolean,
  costs?: readonly number[],
  rooms?: readonly number[],
): Decision {
  const { source, atMs, admitted, repeats, limits: numbers } = outcome
  const allowed = position < admitted
  const isRepeat = repeats !== undefined
  const isCharged = isConsume && isCounted(source) && !isRepeat
  // Without counts, no limit is to blame.
  const isKnown = isDecided(source)
  let verdicts: LimitDecision[] = []
  let deniedBy: string[] | undefined
  let remaining = source === 'failClosed' ? 0 : Number.POSITIVE_INFINITY
  let retryAfterMs = allowed ? 0 : outcome.waitMs
  let resetAfterMs = 0
  for (let i = 0; i < limits.length; i++) {
    const limit = limits[i]!
    const { name, shadow } = limit
    const free = Math.max(0, limit.limit - numbers[3 * i]!)
    const taken = costs === undefined ? cost : costs[i]!
    // A shadow limit is charged for those that it has room for; an enforced one had room for all admitted.
    const fitting = shadow && taken > 0 ? Math.min(admitted, rooms![i]!) : admitted
    const left = isCharged ? free - taken * Math.min(position + 1, fitting) : free
    const hasRoom = isRepeat || (isCharged && position < fitting) || left >= taken
    const wait = hasRoom ? 0 : numbers[3 * i + 1]!
    const reset = numbers[3 * i + 2]!
    const verdict = new PlainLimitDecision(limit, hasRoom, left, wait, reset)
    // Most have one limit. An array that begins empty makes room for 17 at the first.
    if (i === 0) verdicts = [verdict]
    else verdicts.push(verdict)
    if (shadow) continue
    if (left < remaining) remaining = left
    if (reset > resetAfterMs) resetAfterMs = reset
    if (!hasRoom && isKnown) {
      if (deniedBy === undefined) deniedBy = [name]
      else deniedBy.push(name)
      if (wait > retryAfterMs) retryAfterMs = wait
    }
  }
  return new PlainDecision(
    allowed,
    isRepeat ? repeats : cost,
    remaining,
    retryAfterMs,
    resetAfterMs,
    deniedBy ?? NOBODY,
    verdicts,
    source,
    atMs,
  )
}
