// Explains a key: how much of each limit is used, and when units become free.
import type { LimitDecision } from '../decision.ts'
import { checkThat } from '../errors.ts'
import type { Declaration } from '../limits/declaration.ts'
import { originOf } from '../limits/declare.ts'
import type { BanState, Limit, ListedCharge } from '../limits/limit.ts'
import { usedOf } from '../ops/numbers.ts'
import { limitsInForce, limitsOf } from '../stores/outcome.ts'
import type { ExplainOp, ExplainOutcome, Part } from '../stores/store.ts'
import { decisionOf } from './decide.ts'
import type { Override } from './overrides.ts'

/** The usage of one limit. Times are in milliseconds after `atMs`. */
export interface LimitExplanation extends LimitDecision {
  /** Units that the limit currently counts. */
  readonly used: number
  /**
   * The time of the oldest charge or slot renewal that counts.
   *
   * In epoch milliseconds by the store's clock. Only set for limits that store times. It may be off by the length of a
   * lease. After the window's length was changed, it may be off by the difference.
   */
  readonly oldestAtMs?: number
  /** When used units become free, in up to eleven steps. After `afterMs`, `units` of them are free. The last step frees all. */
  readonly frees: readonly { readonly afterMs: number; readonly units: number }[]
  /**
   * With the `charges` option: the latest charges that count, oldest first.
   *
   * Only set for limits that store times. Charges within one `precisionMs` are merged. Lists at most 512 charges, or
   * fewer if there are many limits. A concurrency slot has the time of its last renewal.
   */
  readonly charges?: readonly ListedCharge[]
  /** With the `charges` option: units of older charges that also count but aren't listed. */
  readonly olderUnits?: number
  /** With the `charges` option: the limit's declaration. */
  readonly declared?: Declaration
}

const MAX_CHARGES = 512
const MAX_CHARGES_OF_ALL = 2048

/** The maximum number of charges listed per limit. */
export function mostCharges(parts: readonly Part[]): number {
  return Math.max(1, Math.min(MAX_CHARGES, Math.floor(MAX_CHARGES_OF_ALL / limitsOf(parts).length)))
}

/** The maximum number of charges to list per limit. `undefined` if the caller doesn't want a list. */
export function chargesAsked(charges: unknown, parts: readonly Part[]): number | undefined {
  checkThat(charges === undefined || typeof charges === 'boolean', 'charges', charges, 'true or false')
  return charges === true ? mostCharges(parts) : undefined
}

/** The ban of a key in one dimension. */
export interface BanExplanation extends BanState {
  readonly dimension?: string
}

/** The state of a key. */
export interface Explanation {
  readonly atMs: number
  /** Whether a request of this cost would be allowed now. */
  readonly allowed: boolean
  readonly cost: number
  /** The names of active bans and blocks, then those of enforced limits without room. */
  readonly deniedBy: readonly string[]
  /** Milliseconds until the request would be allowed; `Infinity` if it never will be. */
  readonly retryAfterMs: number
  /** Milliseconds until the key's ban or block ends. 0 if it has neither. */
  readonly blockedMs: number
  readonly limits: readonly LimitExplanation[]
  readonly bans: readonly BanExplanation[]
  /** The key's overrides, per dimension. */
  readonly overrides: readonly Override[]
}

export function explanationOf(
  op: ExplainOp,
  outcome: ExplainOutcome,
  names: readonly (string | undefined)[],
): Omit<Explanation, 'overrides'> {
  const decision = decisionOf(op, outcome, 0)
  const inForce = limitsInForce(op, outcome)
  const { atMs, allowed, cost, retryAfterMs, deniedBy } = decision
  return {
    atMs,
    allowed,
    cost,
    deniedBy,
    retryAfterMs,
    blockedMs: outcome.ban?.ms ?? 0,
    limits: decision.limits.map((limit, i) => explained(inForce[i]!, limit, outcome, i)),
    bans: outcome.bans.flatMap((ban, part) => {
      const dimension = names[part]
      return ban === undefined ? [] : [dimension === undefined ? ban : { dimension, ...ban }]
    }),
  }
}

function explained(declared: Limit, verdict: LimitDecision, outcome: ExplainOutcome, i: number) {
  const { kind, windowMs, precisionMs } = declared
  const { atMs } = outcome
  const used = usedOf(outcome.limits, i)
  const times = outcome.frees[i]!
  const frees = new Map(times.map((afterMs, i) => [afterMs, i === 0 ? 1 : Math.ceil((used * i) / 10)]))
  const first = times[0]
  const knowsOldest = kind.charges !== undefined && first !== undefined
  return {
    ...verdict,
    used,
    ...(knowsOldest && { oldestAtMs: atMs + first - (windowMs + precisionMs - 1) }),
    frees: Array.from(frees, ([afterMs, units]) => ({ afterMs, units })),
    ...(outcome.charges !== undefined && charged(declared, outcome.charges[i], used)),
  }
}

function charged(limit: Limit, charges: readonly ListedCharge[] | undefined, used: number) {
  const declared = originOf(limit).options as Declaration
  if (charges === undefined) return { declared }
  const listed = charges.reduce((sum, { units }) => sum + units, 0)
  return { charges, olderUnits: used - listed, declared }
}
