// Turns outcomes into decisions.
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

/** Returns the decision on one of the requests that share an op. `position` is its index, starting at 0. */
export function decisionOf(asked: RequestOp, outcome: ConsumeOutcome, position: number): Decision {
  const { overrides } = outcome
  const op = overrides === undefined ? asked : { ...asked, parts: partsInForce(asked.parts, overrides) }
  checkRepeat(op, outcome)
  const { ban } = outcome
  if (ban !== undefined && position >= outcome.admitted) return denialOfBlocked(op, outcome, ban)
  return decisionByLimits(op, outcome, position)
}

/** Rejects a repeat that costs more than the first request. The extra units wouldn't be counted. */
function checkRepeat({ cost }: RequestOp, { repeats = cost }: ConsumeOutcome): void {
  if (cost <= repeats) return
  const what = `the cost is ${cost}, but this requestId was charged ${repeats}`
  throw new SlidegateError('reused_request_id', `${what}; use the same cost or another requestId`, cost)
}

/** Returns the denial for a request whose key is blocked or banned. It may be the request that caused the ban. */
function denialOfBlocked(op: RequestOp, outcome: ConsumeOutcome, ban: Ban): Decision {
  const decision = decisionByLimits(op, outcome, outcome.admitted)
  const { retryAfterMs, resetAfterMs, deniedBy } = decision
  const bans = ban.parts.map((part) => {
    const isBlocked = (outcome.overrides?.[part]?.blockedMs ?? 0) > 0
    return banName(op.parts[part]!.set.limiter, isBlocked ? 'block' : 'ban')
  })
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

// Decisions must behave like object literals when they are spread, serialized, logged or compared. So `limits` are created
// eagerly: a spread drops an inherited getter, and an own getter allocates more than the limits do. Constructors allocate less
// than literals: the charge that refund.ts adds fits in the object, and V8 doesn't add allocation sites.

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
 * Returns the decision by the limits alone, without bans.
 *
 * @param costs units per limit, if they aren't the same for all limits
 * @param rooms how many requests fit within each limit
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
    // An enforced limit is charged for all admitted requests. A shadow limit is charged only for those that fit within it.
    const fitting = shadow && taken > 0 ? Math.min(admitted, rooms![i]!) : admitted
    const left = isCharged ? free - taken * Math.min(position + 1, fitting) : free
    const hasRoom = isRepeat || (isCharged && position < fitting) || left >= taken
    const wait = hasRoom ? 0 : waitOf(numbers, i)
    const reset = resetOf(numbers, i)
    const verdict = new PlainLimitDecision(limit, hasRoom, left, wait, reset)
    // Most keys have one limit. The first push to an empty array would allocate room for 17 items.
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
