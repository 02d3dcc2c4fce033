import type { Decision } from '../decision.ts'
import { type Problem, problemOf } from './problem.ts'

/** What the client is told of a denied message: the problem body of a denied request, and how long to wait. */
export type Notice = Problem & {
  /** Milliseconds; absent where waiting does not help, or is not to be told. */
  readonly retryAfterMs?: number
}

export function noticeOf(decision: Decision, disclose = true): Notice {
  const { retryAfterMs } = decision
  const isTold = disclose && retryAfterMs !== Number.POSITIVE_INFINITY
  return { ...problemOf(decision, disclose), ...(isTold && { retryAfterMs }) }
}
