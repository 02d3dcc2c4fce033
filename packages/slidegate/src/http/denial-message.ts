// The answer to a denied request or message: a problem of RFC 9457, as JSON, HTML or text.
import Negotiator from 'negotiator'
import type { Decision } from '../decision.ts'
import { type Header, retryAfterHeaders } from './headers.ts'

/** The media type of the body of a denial. */
export const PROBLEM_CONTENT_TYPE = 'application/problem+json'

/** The body of a denial: a problem of RFC 9457, with the types of the RateLimit header draft. */
export type Problem = QuotaExceededProblem | ReducedCapacityProblem | ForbiddenProblem

/** The caller used up a limit. */
export interface QuotaExceededProblem {
  readonly type: 'https://iana.org/assignments/http-problem-types#quota-exceeded'
  readonly title: string
  readonly status: 429
  /** Bans in force, then exhausted limits. Absent if limits aren't disclosed. */
  readonly 'violated-policies'?: readonly string[]
}

/** The store is unavailable, so the usage is unknown. */
export interface ReducedCapacityProblem {
  readonly type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
  readonly title: string
  readonly status: 503
}

/** The caller's address is in `deny`. */
export interface ForbiddenProblem {
  readonly type: 'about:blank'
  readonly title: string
  readonly status: 403
}

export const FORBIDDEN: ForbiddenProblem = { type: 'about:blank', title: 'Forbidden', status: 403 }

/** The problem body for a denied request. */
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

/** Sent to the client for a denied message: a problem body with the time to wait. */
export type DenialMessage = Problem & {
  /** Milliseconds. Absent if waiting doesn't help, or if limits aren't disclosed. */
  readonly retryAfterMs?: number
}

export function denialMessageOf(decision: Decision, disclose = true): DenialMessage {
  const { retryAfterMs } = decision
  const isDisclosed = disclose && retryAfterMs !== Number.POSITIVE_INFINITY
  return { ...problemOf(decision, disclose), ...(isDisclosed && { retryAfterMs }) }
}

/** The answer to a denied request. */
export interface DenialResponse {
  readonly status: number
  /** `Retry-After` and `Content-Type`. */
  readonly headers: readonly Header[]
  readonly body: string
}

/** Options of {@link denialOf}. */
export interface DenialOptions {
  /** The `Accept` header of the request. */
  readonly accept?: string | undefined
  /** `false` hides the limits. Default: `true`. */
  readonly disclose?: boolean
}

/** The answer of `rateLimit` to a denied request, for code that calls a limiter itself. Add {@link draft11Headers}. */
export function denialOf(
  decision: Decision,
  { accept, disclose = true }: DenialOptions = {},
): DenialResponse {
  return answerOf(problemOf(decision, disclose), disclose ? retryAfterHeaders(decision) : [], accept)
}

/** Most preferred first. The first is also for clients that accept none of these. */
const MEDIA_TYPES = [PROBLEM_CONTENT_TYPE, 'application/json', 'text/html', 'text/plain']

/** A longer `Accept` header is ignored: parsing it would take long. */
const MAX_ACCEPT = 1024

/** An answer in the form that the client accepts: JSON, HTML for browsers, or text. */
export function answerOf(
  problem: Problem,
  retryAfter: readonly Header[],
  accept: string | undefined,
): DenialResponse {
  const { status } = problem
  const answer = (type: string, body: string): DenialResponse => {
    return { status, headers: [...retryAfter, { name: 'Content-Type', value: type }], body }
  }
  const title = TITLES[status]
  const advice = adviceOf(retryAfter[0]?.value)
  switch (preferred(accept)) {
    case 'text/html':
      return answer('text/html; charset=utf-8', page(title, advice))
    case 'text/plain':
      return answer('text/plain; charset=utf-8', `${title}.${advice === undefined ? '' : ` ${advice}`}\n`)
    case 'application/json':
      return answer('application/json', JSON.stringify(problem))
    default:
      return answer(PROBLEM_CONTENT_TYPE, JSON.stringify(problem))
  }
}

function preferred(accept: string | undefined): string | undefined {
  if (accept === undefined || accept === '*/*' || accept.length > MAX_ACCEPT) return undefined
  return new Negotiator({ headers: { accept } }).mediaType(MEDIA_TYPES)
}

/** Needs no escaping: nothing comes from the caller. */
function page(title: string, advice: string | undefined): string {
  const paragraph = advice === undefined ? '' : `<p>${advice}</p>`
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>${paragraph}</html>\n`
}

const TITLES = { 403: 'Forbidden', 429: 'Too many requests', 503: 'Temporarily out of capacity' } as const

/** @param seconds undefined if waiting doesn't help, or isn't disclosed */
function adviceOf(seconds: string | undefined): string | undefined {
  return seconds && `Try again in ${seconds} ${seconds === '1' ? 'second' : 'seconds'}.`
}
