import type { Decision } from '../decision.ts'

/** The media type of the body of a denial. */
export const PROBLEM_CONTENT_TYPE = 'application/problem+json'

/** The body of a denial after RFC 9457, of the problem types that the RateLimit header draft registers. */
export type Problem = QuotaExceededProblem | ReducedCapacityProblem | ForbiddenProblem

/** The caller has used up a limit. */
export interface QuotaExceededProblem {
  readonly type: 'https://iana.org/assignments/http-problem-types#quota-exceeded'
  readonly title: string
  readonly status: 429
  /** Bans in force, then limits without room. Absent if limits aren't disclosed. */
  readonly 'violated-policies'?: readonly string[]
}

/** Nobody knows whether the caller has: it is denied because the store gave no answer. */
export interface ReducedCapacityProblem {
  readonly type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
  readonly title: string
  readonly status: 503
}

/** The caller's address is on a list of those who are not served. */
export interface ForbiddenProblem {
  readonly type: 'about:blank'
  readonly title: string
  readonly status: 403
}

export const FORBIDDEN: ForbiddenProblem = { type: 'about:blank', title: 'Forbidden', status: 403 }

/** What a denied request is told. */
export function problemOf({ source, deniedBy }: Decision, disclose = true): Problem {
  if (source === 'failClosed') {
    return {
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      title: 'Request cannot be satisfied due to temporary server capacity constraints',
      status: 503,
    }
  }
  return {
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title: 'Request cannot be satisfied as assigned quota has been exceeded',
    status: 429,
    ...(disclose && { 'violated-policies': deniedBy }),
  }
}
