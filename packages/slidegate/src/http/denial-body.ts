import Negotiator from 'negotiator'
import type { Decision } from '../decision.ts'
import { type Header, retryAfterHeaders } from './headers.ts'
import { PROBLEM_CONTENT_TYPE, type Problem, problemOf } from './problem.ts'

/** A body, and the field that says what it is. */
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

/** What the client can read, and what it may know. */
export interface DenialOptions {
  /** What the client wants to have: its `Accept` field. */
  readonly accept?: string | undefined
  /** `false`: nothing is told of the limits. Default: `true`. */
  readonly disclose?: boolean
}

/**
 * What `rateLimit` answers, for those who ask a limiter themselves; rate limit headers go beside it, such as
 * {@link draft11Headers}.
 */
export function denialOf(decision: Decision, { accept, disclose = true }: DenialOptions = {}): DenialAnswer {
  const problem = problemOf(decision, disclose)
  const retryAfter = disclose ? retryAfterHeaders(decision) : []
  const seconds = retryAfter[0] === undefined ? undefined : Number(retryAfter[0].value)
  const { headers, body } = denialBody(problem, seconds, accept)
  return { status: problem.status, headers: [...retryAfter, ...headers], body }
}

/** Most preferred first: what callers are told in who do not say what they want, or want nothing that there is. */
const MEDIA_TYPES = [PROBLEM_CONTENT_TYPE, 'application/json', 'text/html', 'text/plain']

/** No client needs more to say what it wants; reading takes the longer the more it says. */
const MAX_ACCEPT = 1024

/**
 * What a denied request is told in the form that it asks for: JSON for programs, a page for browsers, a line of text.
 *
 * @param retryAfterS whole seconds; undefined where waiting does not help, or is not to be told
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

/** Nothing in it comes from the caller, or would need escaping. */
function page(title: string, advice: string | undefined): string {
  const paragraph = advice === undefined ? '' : `<p>${advice}</p>`
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>${paragraph}</html>\n`
}

const TITLES = { 403: 'Forbidden', 429: 'Too many requests', 503: 'Temporarily out of capacity' } as const

function adviceOf(retryAfterS: number | undefined): string | undefined {
  if (retryAfterS === undefined) return undefined
  return `Try again in ${retryAfterS} ${retryAfterS === 1 ? 'second' : 'seconds'}.`
}
