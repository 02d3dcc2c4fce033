// One descriptor of a request, held to its rule.

import type { LimitDecision } from 'slidegate'
import type { Match, Rule } from './domain.ts'

/** What one limit says of a request. */
type Verdict = Pick<LimitDecision, 'allowed' | 'remaining' | 'retryAfterMs' | 'resetAfterMs'>

/**
 * What is done for a descriptor:
 * - `charge`: its hits are charged, if those of the whole request fit
 * - `check`: it is asked whether one hit would fit
 * - `settle`: its hits have happened already, and are charged in any case
 */
type Purpose = 'charge' | 'check' | 'settle'

const CLOSED: Verdict = {
  allowed: false,
  remaining: 0,
  retryAfterMs: Number.POSITIVE_INFINITY,
  resetAfterMs: Number.POSITIVE_INFINITY,
}

/** One descriptor of a request, held to its rule. */
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
    // Nobody has to be asked.
    if (rule.limits === undefined) this.verdict = CLOSED
  }

  /** Units that the store is asked about. */
  get cost(): number {
    return this.purpose === 'check' ? 1 : this.hits
  }

  get isOver(): boolean {
    return this.verdict?.allowed === false
  }

  /** Whether this alone denies the request. */
  get denies(): boolean {
    return this.isOver && !this.rule.isShadow && !this.rule.isQuota
  }

  /** What was charged has been returned. */
  restore(): void {
    const { verdict, hits } = this
    if (verdict?.allowed) this.verdict = { ...verdict, remaining: verdict.remaining + hits }
  }
}
