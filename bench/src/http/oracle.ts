import type { Policy } from '../peers/peer.ts'
import type { Judgement } from './app.ts'

/** The decisions for one user, in order. */
interface Record {
  readonly atMs: number[]
  readonly isAdmitted: boolean[]
}

/**
 * Records decisions, then counts the decisions that follow the rule.
 *
 * The rule: a request is admitted if fewer than `limit` requests were admitted in the window that ends with it. Admissions over
 * the limit and needless denials are both wrong.
 */
export class Oracle {
  readonly #policy: Policy
  readonly #users = new Map<string, Record>()

  constructor(policy: Policy) {
    this.#policy = policy
  }

  record(user: string, isAdmitted: boolean, atMs: number): void {
    let record = this.#users.get(user)
    if (record === undefined) {
      record = { atMs: [], isAdmitted: [] }
      this.#users.set(user, record)
    }
    record.atMs.push(atMs)
    record.isAdmitted.push(isAdmitted)
  }

  /** Judges the decisions recorded since the last call. */
  judge(): Judgement {
    let decisions = 0
    let right = 0
    for (const record of this.#users.values()) {
      decisions += record.atMs.length
      right += this.#rightIn(record)
    }
    this.#users.clear()
    return { decisions, right }
  }

  #rightIn({ atMs, isAdmitted }: Record): number {
    const admitted: number[] = []
    let oldest = 0
    let right = 0
    for (const [i, now] of atMs.entries()) {
      while (oldest < admitted.length && admitted[oldest]! <= now - this.#policy.windowMs) oldest++
      if (isAdmitted[i] === admitted.length - oldest < this.#policy.limit) right++
      if (isAdmitted[i]) admitted.push(now)
    }
    return right
  }
}
