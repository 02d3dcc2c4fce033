import { decisionOf, type LimitDecision } from './decision.ts'
import type { BanState, Limit } from './limits/limit.ts'
import type { LimitSet } from './limits/limit-set.ts'
import type { Override } from './overrides/overrides.ts'
import type { ExplainOp, ExplainOutcome } from './stores/store.ts'

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
  /** The enforced limits that deny it. */
  readonly deniedBy: readonly string[]
  /** Until it would be admitted; `Infinity` where it never will. */
  readonly retryAfterMs: number
  /** For how long the key is blocked; 0 where it is not. */
  readonly blockedMs: number
  readonly limits: readonly LimitExplanation[]
  readonly bans: readonly BanExplanation[]
  /** Limits that were set in place of those declared. */
  readonly overrides: readonly Override[]
}

/** @param names of the dimensions, by part */
export function explanationOf(
  op: ExplainOp,
  outcome: ExplainOutcome,
  names: readonly (string | undefined)[],
): Omit<Explanation, 'overrides'> {
  const { blockedMs = 0 } = outcome
  const decision = decisionOf(op, outcome, 0)
  const declared = op.parts.flatMap(({ set }) => set.limits)
  const mixed = op.parts.flatMap(({ set }) => set.limits.map((_, i) => hasFormer(set, i)))
  const { atMs, allowed, cost, retryAfterMs, deniedBy } = decision
  return {
    atMs,
    allowed,
    cost,
    deniedBy,
    retryAfterMs,
    blockedMs,
    limits: decision.limits.map((limit, i) =>
      explained(declared[i]!, limit, outcome.limits[3 * i]!, outcome.frees[i]!, atMs, mixed[i]!),
    ),
    bans: outcome.bans.flatMap((ban, part) => {
      const dimension = names[part]
      return ban === undefined ? [] : [dimension === undefined ? ban : { dimension, ...ban }]
    }),
  }
}

/** Whether a limit also reads what was charged to others before: of that it is not known how long it counts. */
function hasFormer({ logs }: LimitSet, limit: number): boolean {
  return logs.some(({ role, serves }) => role === 'former' && serves.includes(limit))
}

function explained(
  declared: Limit,
  verdict: LimitDecision,
  used: number,
  times: readonly number[],
  atMs: number,
  isMixed: boolean,
): LimitExplanation {
  const { kind, windowMs, precisionMs } = declared
  const frees = new Map<number, number>()
  times.forEach((afterMs, i) => {
    frees.set(afterMs, i === 0 ? 1 : Math.ceil((used * i) / 10))
  })
  const first = times[0]
  const knowsOldest = kind.keepsTimes === true && first !== undefined && !isMixed
  return {
    ...verdict,
    used,
    ...(knowsOldest && { oldestAtMs: atMs + first - (windowMs + precisionMs - 1) }),
    frees: Array.from(frees, ([afterMs, units]) => ({ afterMs, units })),
  }
}
