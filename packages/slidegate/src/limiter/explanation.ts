import type { LimitDecision } from '../decision.ts'
import { invalidOption, show } from '../errors.ts'
import type { Declaration } from '../limits/declaration.ts'
import { adaptedFrom, declaredOptions } from '../limits/declare.ts'
import type { BanState, Charged, Limit } from '../limits/limit.ts'
import { limitsInForce, limitsOf } from '../stores/outcome.ts'
import type { ExplainOp, ExplainOutcome, Part } from '../stores/store.ts'
import { decisionOf } from './decide.ts'
import type { Override } from './overrides.ts'

/** What is used of one limit, and when it is free again. Times are milliseconds from `atMs`. */
export interface LimitExplanation extends LimitDecision {
  /** Units that count now. */
  readonly used: number
  /**
   * When the oldest charge that counts was made, or what is held was renewed, in epoch milliseconds by the store's clock;
   * for kinds that know it. Where
   * leases are taken, and while a window that was changed has not passed, it may be told as earlier or later by the difference.
   */
  readonly oldestAtMs?: number
  /** When how many units in all are free again: at most eleven steps, the last of which is all that is used. */
  readonly frees: readonly { readonly afterMs: number; readonly units: number }[]
  /**
   * With `charges`, of kinds that keep the times of charges: the latest that count, oldest first, those of one grain as one;
   * 512 at most, and fewer where there are many limits. Of limits that keep their requests, holders or values one by one as
   * many units, each at the time when it was last renewed.
   */
  readonly charges?: readonly Charged[]
  /** Beside `charges`: units that count and are older than those listed. */
  readonly chargedElsewhere?: number
  /** With `charges`: what the limit was made of. */
  readonly declared?: Declaration
}

/** Charges that are told of a limit, and of all together. */
const MAX_CHARGES = 512
const MAX_CHARGES_OF_ALL = 2048

/** How many are told of each limit. */
export function mostCharges(parts: readonly Part[]): number {
  return Math.max(1, Math.min(MAX_CHARGES, Math.floor(MAX_CHARGES_OF_ALL / limitsOf(parts).length)))
}

/** How many are asked for, if any. */
export function chargesAsked(
  options: { readonly charges?: boolean } | undefined,
  parts: readonly Part[],
): number | undefined {
  const { charges = false } = options ?? {}
  if (typeof charges !== 'boolean') {
    throw invalidOption(`charges is ${show(charges)}; it must be true or false`, charges)
  }
  return charges ? mostCharges(parts) : undefined
}

/** Of a key that has a ban: of each dimension on its own. */
export interface BanExplanation extends BanState {
  readonly dimension?: string
}

/** All that is known of a key. Nothing is charged, and nothing written, to find it out. */
export interface Explanation {
  readonly atMs: number
  /** Whether a request of this cost would be admitted now. */
  readonly allowed: boolean
  readonly cost: number
  /** Bans in force, then enforced limits without room. */
  readonly deniedBy: readonly string[]
  /** Until it would be admitted; `Infinity` where it never will. */
  readonly retryAfterMs: number
  /** For how long the key is blocked; 0 where it is not. */
  readonly blockedMs: number
  readonly limits: readonly LimitExplanation[]
  readonly bans: readonly BanExplanation[]
  /** What was set for the key by hand, of each dimension on its own. */
  readonly overrides: readonly Override[]
}

/** @param names of the dimensions, by part */
export function explanationOf(
  op: ExplainOp,
  outcome: ExplainOutcome,
  names: readonly (string | undefined)[],
): Omit<Explanation, 'overrides'> {
  const blockedMs = outcome.ban?.ms ?? 0
  const decision = decisionOf(op, outcome, 0)
  const inForce = limitsInForce(op, outcome)
  const { atMs, allowed, cost, retryAfterMs, deniedBy } = decision
  return {
    atMs,
    allowed,
    cost,
    deniedBy,
    retryAfterMs,
    blockedMs,
    limits: decision.limits.map((limit, i) => explained(inForce[i]!, limit, outcome, i)),
    bans: outcome.bans.flatMap((ban, part) => {
      const dimension = names[part]
      return ban === undefined ? [] : [dimension === undefined ? ban : { dimension, ...ban }]
    }),
  }
}

function explained(
  declared: Limit,
  verdict: LimitDecision,
  outcome: ExplainOutcome,
  i: number,
): LimitExplanation {
  const { kind, windowMs, precisionMs } = declared
  const { atMs } = outcome
  const used = outcome.limits[3 * i]!
  const times = outcome.frees[i]!
  const frees = new Map<number, number>()
  times.forEach((afterMs, i) => {
    frees.set(afterMs, i === 0 ? 1 : Math.ceil((used * i) / 10))
  })
  const first = times[0]
  const knowsOldest = kind.keepsTimes === true && first !== undefined
  return {
    ...verdict,
    used,
    ...(knowsOldest && { oldestAtMs: atMs + first - (windowMs + precisionMs - 1) }),
    frees: Array.from(frees, ([afterMs, units]) => ({ afterMs, units })),
    ...(outcome.charges !== undefined && charged(declared, outcome.charges[i], used)),
  }
}

function charged(
  limit: Limit,
  charges: readonly Charged[] | undefined,
  used: number,
): Pick<LimitExplanation, 'charges' | 'chargedElsewhere' | 'declared'> {
  const declared = declaredOptions(adaptedFrom(limit).limit) as Declaration
  if (charges === undefined) return { declared }
  const told = charges.reduce((sum, { units }) => sum + units, 0)
  return { charges, chargedElsewhere: used - told, declared }
}
