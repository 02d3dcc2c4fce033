// A descriptor in a request, with its rule and verdict.

import type { LimitDecision } from 'slidegate'
import type { Match, Rule } from './domain.ts'

type Verdict = Pick<LimitDecision, 'allowed' | 'remaining' | 'retryAfterMs' | 'resetAfterMs'>

/**
 * How a descriptor is handled:
 * - `charge`: charges its hits if the whole request is allowed
 * - `check`: checks whether one hit would be allowed
 * - `settle`: charges hits that have already happened, even above the limit
 */
type Purpose = 'charge' | 'check' | 'settle'

const CLOSED: Verdict = {
  allowed: false,
  remaining: 0,
  retryAfterMs: Number.POSITIVE_INFINITY,
  resetAfterMs: Number.POSITIVE_INFINITY,
}

export class Question {
  readonly rule: Rule
  readonly key: string
  readonly metric: string
  readonly hits: number
  readonly purpose: Purpose
  verdict: Verdict | undefined

  constructor({ rule, key, metric }: Match, hits: number, purpose: Purpose) {
    this.rule = rule
    this.key = key
    this.metric = metric
    this.hits = hits
    this.purpose = purpose
    // A rule without limits allows nothing, so it needs no limiter.
    if (rule.limits === undefined) this.verdict = CLOSED
  }

  /** Units passed to the store. */
  get cost(): number {
    return this.purpose === 'check' ? 1 : this.hits
  }

  get isOver(): boolean {
    return this.verdict?.allowed === false
  }

  /** Whether this descriptor alone denies the request. */
  get denies(): boolean {
    return this.isOver && !this.rule.isShadow && !this.rule.isQuota
  }

  /** Updates the verdict after a refund. */
  restore(): void {
    const { verdict, hits } = this
    if (verdict?.allowed) this.verdict = { ...verdict, remaining: verdict.remaining + hits }
  }
}
