import type { Decision } from '../decision.ts'

export const PROBLEM_CONTENT_TYPE = 'application/problem+json'

/** The body of a denial after RFC 9457, of the problem type that the RateLimit header draft registers. */
export interface QuotaExceededProblem {
  readonly type: 'https://iana.org/assignments/http-problem-types#quota-exceeded'
  readonly title: string
  readonly status: 429
  /** Names of the limits without room, in declared order. */
  readonly 'violated-policies': readonly string[]
}

export function quotaExceededProblem(decision: Decision): QuotaExceededProblem {
  return {
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title: 'Request cannot be satisfied as assigned quota has been exceeded',
    status: 429,
    'violated-policies': decision.deniedBy,
  }
}
