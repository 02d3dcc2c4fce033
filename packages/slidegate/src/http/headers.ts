import type { Decision, LimitDecision } from '../decision.ts'

/** A header field of a response. */
export interface Header {
  readonly name: string
  readonly value: string
  /** Of a list, its value behind what limiters before this one have set on the same response. Other fields are replaced. */
  readonly append?: (earlier: string, value: string) => string
}

export type HeaderGeneration = 'draft-11' | 'draft-7' | 'legacy'

/** One function per generation of rate limit headers, so that none changes when the next one comes. */
export const HEADER_GENERATIONS: Readonly<
  Record<HeaderGeneration, (decision: Decision) => readonly Header[]>
> = {
  'draft-11': draft11Headers,
  'draft-7': draft7Headers,
  legacy: legacyHeaders,
}

/**
 * `RateLimit-Policy` and `RateLimit` after draft-ietf-httpapi-ratelimit-headers-11: structured field lists
 * over all enforced limits, in declared order. Of a denial, for instance:
 *
 *     RateLimit-Policy: "burst";q=100;w=60, "hourly";q=1000;w=3600
 *     RateLimit: "burst";r=0;t=12, "hourly";r=480
 *
 * `t`, in seconds, is when all quota of a limit is back; on a denial it is when the same request fits a limit
 * that denied it, stands on no other, and never exceeds `Retry-After`.
 */
export function draft11Headers(decision: Decision): readonly Header[] {
  const policies = policiesOf(decision.limits)
  if (policies === undefined) return []
  let states = ''
  for (const limit of decision.limits) {
    if (limit.shadow) continue
    states += `${states && ', '}"${limit.name}";r=${limit.remaining}${timeParameter(decision, limit)}`
  }
  return [
    policies,
    { name: 'RateLimit', value: states, append: decision.allowed ? appended : appendedByDenial },
  ]
}

/** Those that were spelt last. Most requests meet the same limits as the one before. */
let lastPolicies: { readonly limits: readonly LimitDecision[]; readonly header: Header | undefined } = {
  limits: [],
  header: undefined,
}

function policiesOf(limits: readonly LimitDecision[]): Header | undefined {
  if (!areAlike(limits, lastPolicies.limits)) lastPolicies = { limits, header: spellPolicies(limits) }
  return lastPolicies.header
}

function areAlike(some: readonly LimitDecision[], others: readonly LimitDecision[]): boolean {
  if (some.length !== others.length) return false
  for (let i = 0; i < some.length; i++) {
    const [one, other] = [some[i]!, others[i]!]
    if (one.name !== other.name || one.limit !== other.limit) return false
    if (one.windowMs !== other.windowMs || one.shadow !== other.shadow) return false
  }
  return true
}

function spellPolicies(limits: readonly LimitDecision[]): Header | undefined {
  const policies = limits
    .filter(({ shadow }) => !shadow)
    // Names of limits have no character that would need escaping.
    .map(({ name, limit, windowMs }) => `"${name}";q=${limit}${windowParameter(windowMs)}`)
  if (policies.length === 0) return undefined
  return { name: 'RateLimit-Policy', value: policies.join(', '), append: appended }
}

function appended(earlier: string, value: string): string {
  return `${earlier}, ${value}`
}

function appendedByDenial(earlier: string, value: string): string {
  return appended(withoutTime(earlier), value)
}

function timeParameter(decision: Decision, limit: LimitDecision): string {
  if (decision.allowed) return `;t=${seconds(limit.resetAfterMs)}`
  // A wait would mislead where another limit never admits the request.
  if (limit.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY) return ''
  return `;t=${seconds(limit.retryAfterMs)}`
}

/** Limits that allowed what another limiter then denied are no longer to wait for. Leaves quoted names alone. */
function withoutTime(states: string): string {
  return states.replace(/("(?:[^"\\]|\\.)*")|; *t=\d+/g, '$1')
}

/**
 * `RateLimit-Policy` and `RateLimit` after draft-ietf-httpapi-ratelimit-headers-07, which knows one limit at
 * a time: the tightest, on a denial the one that denies for longest, else the one with the least remaining.
 * `reset`, in seconds, is `Retry-After` on a denial, else (and where waiting does not help) when all quota is
 * back. There is no `RateLimit-Policy` for a window below one second, since that draft requires a `w`.
 *
 *     RateLimit-Policy: 100;w=60
 *     RateLimit: limit=100, remaining=50, reset=30
 */
export function draft7Headers(decision: Decision): readonly Header[] {
  const limit = tightest(decision)
  if (limit === undefined) return []
  const window = windowParameter(limit.windowMs)
  const state = `limit=${limit.limit}, remaining=${limit.remaining}, reset=${seconds(waitMs(limit))}`
  return [
    ...(window === '' ? [] : [{ name: 'RateLimit-Policy', value: `${limit.limit}${window}` }]),
    { name: 'RateLimit', value: state },
  ]
}

/**
 * `X-RateLimit-Limit`, `-Remaining` and `-Reset` of the limit that {@link draft7Headers} names.
 * `X-RateLimit-Reset` is the same moment as `reset` there, but in whole seconds since the epoch by the store's
 * clock, as express-rate-limit and GitHub have it.
 */
export function legacyHeaders(decision: Decision): readonly Header[] {
  const limit = tightest(decision)
  if (limit === undefined) return []
  return [
    { name: 'X-RateLimit-Limit', value: `${limit.limit}` },
    { name: 'X-RateLimit-Remaining', value: `${limit.remaining}` },
    { name: 'X-RateLimit-Reset', value: `${seconds(decision.atMs + waitMs(limit))}` },
  ]
}

/** `Retry-After` in whole seconds, rounded up; none for a request that is allowed or never will be. */
export function retryAfterHeaders(decision: Decision): readonly Header[] {
  if (decision.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY) return []
  return [{ name: 'Retry-After', value: `${seconds(decision.retryAfterMs)}` }]
}

function enforced(decision: Decision): readonly LimitDecision[] {
  return decision.limits.filter((limit) => !limit.shadow)
}

/** On a denial the denying limit with the longest wait, else the limit with the least remaining. */
function tightest(decision: Decision): LimitDecision | undefined {
  const limits = enforced(decision)
  const [denying] = limits.filter((limit) => !limit.allowed).sort((a, b) => b.retryAfterMs - a.retryAfterMs)
  return denying ?? limits.toSorted((a, b) => a.remaining - b.remaining)[0]
}

/** Until the request fits the limit if it does not fit now but will, else until all of the limit is free again. */
function waitMs({ allowed, retryAfterMs, resetAfterMs }: LimitDecision): number {
  return allowed || retryAfterMs === Number.POSITIVE_INFINITY ? resetAfterMs : retryAfterMs
}

/** `;w=` in whole seconds; nothing for a window below one second, which they cannot express. */
function windowParameter(windowMs: number): string {
  return windowMs < 1000 ? '' : `;w=${seconds(windowMs)}`
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000)
}
