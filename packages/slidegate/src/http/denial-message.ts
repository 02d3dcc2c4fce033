// The answer to a denied request or message: a problem of RFC 9457, as JSON, a page or text.
import Negotiator from 'negotiator'
import type { Decision } from '../decision.ts'
import { type Header, retryAfterHeaders } from './headers.ts'

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

/** The store gave no answer, so it isn't known whether the caller has. */
export interface ReducedCapacityProblem {
  readonly type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
  readonly title: string
  readonly status: 503
}

/** The caller's address is on the list `deny`. */
export interface ForbiddenProblem {
  readonly type: 'about:blank'
  readonly title: string
  readonly status: 403
}

export const FORBIDDEN: ForbiddenProblem = { type: 'about:blank', title: 'Forbidden', status: 403 }

/** The problem that a denied request is answered with. */
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

/** What the client is sent about a denied message: the problem body of a denied request, and how long to wait. */
export type DenialMessage = Problem & {
  /** Milliseconds. Absent if waiting doesn't help, or if limits aren't disclosed. */
  readonly retryAfterMs?: number
}

export function denialMessageOf(decision: Decision, disclose = true): DenialMessage {
  const { retryAfterMs } = decision
  const isDisclosed = disclose && retryAfterMs !== Number.POSITIVE_INFINITY
  return { ...problemOf(decision, disclose), ...(isDisclosed && { retryAfterMs }) }
}

/** A body, and its `Content-Type`. */
export interface DenialBody {
  readonly headers: readonly Header[]
  readonly body: string
}

/** An answer to a request that was denied. */
export interface DenialAnswer {
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

/** The answer of `rateLimit` to a denied request, if you call a limiter yourself. Add headers, such as {@link draft11Headers}. */
export function denialOf(decision: Decision, { accept, disclose = true }: DenialOptions = {}): DenialAnswer {
  const problem = problemOf(decision, disclose)
  const retryAfter = disclose ? retryAfterHeaders(decision) : []
  const seconds = retryAfter[0] === undefined ? undefined : Number(retryAfter[0].value)
  const { headers, body } = denialBody(problem, seconds, accept)
  return { status: problem.status, headers: [...retryAfter, ...headers], body }
}

/** Most preferred first: the first is for clients that accept anything, or none of these. */
const MEDIA_TYPES = [PROBLEM_CONTENT_TYPE, 'application/json', 'text/html', 'text/plain']

/** A longer `Accept` header is not read: it would take long. */
const MAX_ACCEPT = 1024

/**
 * The body in the form that the client accepts: JSON for programs, a page for browsers, a line of text.
 *
 * @param retryAfterS whole seconds; undefined if waiting doesn't help, or isn't disclosed
 */
export function denialBody(
  problem: Problem,
  retryAfterS: number | undefined,
  accept: string | undefined,
): DenialBody {
  const title = TITLES[problem.status]
  const advice = adviceOf(retryAfterS)
  switch (preferred(accept)) {
    case 'text/html':
      return bodyOf('text/html; charset=utf-8', page(title, advice))
    case 'text/plain':
      return bodyOf('text/plain; charset=utf-8', `${title}.${advice === undefined ? '' : ` ${advice}`}\n`)
    case 'application/json':
      return bodyOf('application/json', JSON.stringify(problem))
    default:
      return bodyOf(PROBLEM_CONTENT_TYPE, JSON.stringify(problem))
  }
}

function preferred(accept: string | undefined): string | undefined {
  if (accept === undefined || accept === '*/*' || accept.length > MAX_ACCEPT) return undefined
  return new Negotiator({ headers: { accept } }).mediaType(MEDIA_TYPES)
}

function bodyOf(type: string, body: string): DenialBody {
  return { headers: [{ name: 'Content-Type', value: type }], body }
}

/** Nothing in it comes from the caller. */
function page(title: string, advice: string | undefined): string {
  const paragraph = advice === undefined ? '' : `<p>${advice}</p>`
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>${paragraph}</html>\n`
}

const TITLES = { 403: 'Forbidden', 429: 'Too many requests', 503: 'Temporarily out of capacity' } as const

function adviceOf(retryAfterS: number | undefined): string | undefined {
  if (retryAfterS === undefined) return undefined
  return `Try again in ${retryAfterS} ${retryAfterS === 1 ? 'second' : 'seconds'}.`
}
