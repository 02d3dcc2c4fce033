// Makes decisions of outcomes.
import {
  banName,
  type Decision,
  isCounted,
  isDecided,
  type LimitDecision,
  NO_NAMES,
  type Source,
} from '../decision.ts'
import { SlidegateError } from '../errors.ts'
import type { Limit } from '../limits/limit.ts'
import { resetOf, usedOf, waitOf } from '../ops/numbers.ts'
import { costsOf, limitsOf, roomsOf } from '../stores/outcome.ts'
import { type Ban, type ConsumeOutcome, partsInForce, type RequestOp } from '../stores/store.ts'

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

/** Rejects a repeat that costs more than was charged: the rest would pass uncounted. */
function checkRepeat({ cost }: RequestOp, { repeats = cost }: ConsumeOutcome): void {
  if (cost <= repeats) return
  throw new SlidegateError(
    'reused_request_id',
    `the cost is ${cost}, but the request of this requestId was charged ${repeats}; use that cost, or another requestId`,
    cost,
  )
}

/** The denial of a key that is blocked or banned, perhaps by this very denial. */
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
// decision's charge (refund.ts), and V8 adds no note of where the object was made.

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
    const free = Math.max(0, limit.limit - usedOf(numbers, i))
    const taken = costs === undefined ? cost : costs[i]!
    // A shadow limit is charged for those that it has room for; an enforced one had room for all admitted.
    const fitting = shadow && taken > 0 ? Math.min(admitted, rooms![i]!) : admitted
    const left = isCharged ? free - taken * Math.min(position + 1, fitting) : free
    const hasRoom = isRepeat || (isCharged && position < fitting) || left >= taken
    const wait = hasRoom ? 0 : waitOf(numbers, i)
    const reset = resetOf(numbers, i)
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
    deniedBy ?? NO_NAMES,
    verdicts,
    source,
    atMs,
  )
}

/** The decision if one enforced limit decided. */
export function decisionByOne(limit: Limit, cost: number, outcome: ConsumeOutcome): Decision {
  const { atMs, limits: numbers } = outcome
  const allowed = outcome.admitted > 0
  const free = Math.max(0, limit.limit - usedOf(numbers, 0))
  const left = allowed ? free - cost : free
  const wait = allowed ? 0 : waitOf(numbers, 0)
  const reset = resetOf(numbers, 0)
  const verdict = new PlainLimitDecision(limit, allowed, left, wait, reset)
  const deniedBy = allowed ? NO_NAMES : [limit.name]
  return new PlainDecision(allowed, cost, left, wait, reset, deniedBy, [verdict], 'store', atMs)
}
