// The response to a denied request or message: a problem (RFC 9457) as JSON, HTML or text.

import type { Decision } from '../decision.ts'
import { type Header, retryAfterHeaders } from './headers.ts'
import { preferredMediaTypes } from './media-types.ts'

/** The media type of a denial's body. */
export const PROBLEM_CONTENT_TYPE = 'application/problem+json'

/** The body of a denial: a problem (RFC 9457). The RateLimit header draft defines the types other than `about:blank`. */
export type Problem = QuotaExceededProblem | ReducedCapacityProblem | ForbiddenProblem

/** The caller used up a limit. */
export interface QuotaExceededProblem {
  readonly type: 'https://iana.org/assignments/http-problem-types#quota-exceeded'
  readonly title: string
  readonly status: 429
  /** Names of active bans and blocks, then of exhausted limits. Absent if `disclose` is `false`. */
  readonly 'violated-policies'?: readonly string[]
}

/** The store is unavailable, and the limiter fails closed. */
export interface ReducedCapacityProblem {
  readonly type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
  readonly title: string
  readonly status: 503
}

/** The caller's address is in the `deny` list. */
export interface ForbiddenProblem {
  readonly type: 'about:blank'
  readonly title: string
  readonly status: 403
}

export const FORBIDDEN: ForbiddenProblem = { type: 'about:blank', title: 'Forbidden', status: 403 }

/** Returns the problem body for a denied request. */
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

/** The body sent for a denied message: a problem that includes the wait time. */
export type DenialMessage = Problem & {
  /** Milliseconds to wait. Absent if waiting doesn't help or `disclose` is `false`. */
  readonly retryAfterMs?: number
}

export function denialMessageOf(decision: Decision, disclose = true): DenialMessage {
  const { retryAfterMs } = decision
  const isDisclosed = disclose && retryAfterMs !== Number.POSITIVE_INFINITY
  return { ...problemOf(decision, disclose), ...(isDisclosed && { retryAfterMs }) }
}

/** The response to a denied request. */
export interface DenialResponse {
  readonly status: number
  /** `Retry-After` and `Content-Type`. */
  readonly headers: readonly Header[]
  readonly body: string
}

/** Options for {@link denialOf}. */
export interface DenialOptions {
  /** The request's `Accept` header. */
  readonly accept?: string | undefined
  /** `false` hides the limits. Default: `true`. */
  readonly disclose?: boolean
}

/**
 * Returns the response that `rateLimit` sends to a denied request. Use it in code that calls a limiter directly, and add {@link
 * draft11Headers}.
 */
export function denialOf(
  decision: Decision,
  { accept, disclose = true }: DenialOptions = {},
): DenialResponse {
  return answerOf(problemOf(decision, disclose), disclose ? retryAfterHeaders(decision) : [], accept)
}

/** In order of preference. The first type is also used for clients that accept none of these. */
const MEDIA_TYPES = [PROBLEM_CONTENT_TYPE, 'application/json', 'text/html', 'text/plain']

/** A longer `Accept` header is ignored, since it is slow to parse. */
const MAX_ACCEPT = 1024

/** Returns the problem in a format that the client accepts: JSON, HTML or text. */
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
  return preferredMediaTypes(accept, MEDIA_TYPES)[0]
}

/** Returns an HTML page. Nothing is escaped, since no part comes from the caller. */
function page(title: string, advice: string | undefined): string {
  const paragraph = advice === undefined ? '' : `<p>${advice}</p>`
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>${paragraph}</html>\n`
}

const TITLES = { 403: 'Forbidden', 429: 'Too many requests', 503: 'Temporarily out of capacity' } as const

/** @param seconds `undefined` if waiting doesn't help or isn't disclosed */
function adviceOf(seconds: string | undefined): string | undefined {
  return seconds && `Try again in ${seconds} ${seconds === '1' ? 'second' : 'seconds'}.`
}
