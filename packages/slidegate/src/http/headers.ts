// Rate limit headers in all formats. Merges the headers of several limiters on one response.
import { bansIn, type Decision, type LimitDecision } from '../decision.ts'
import { checkThat } from '../errors.ts'

/** A header field of a response. */
export interface Header {
  readonly name: string
  readonly value: string
}

/** A header format: the number of an IETF draft, or `legacy` for `X-RateLimit-*`. */
export type HeaderFormat = 'draft-11' | 'draft-7' | 'draft-6' | 'legacy'

interface Format {
  readonly names: readonly string[]
  readonly write: (decision: Decision) => readonly Header[]
  /** How to read the remaining units. Set only for formats that can describe just one limit. */
  readonly remaining?: { readonly name: string; readonly pattern: RegExp }
}

/** Each format has its own function, so that a new draft doesn't change other formats. */
export const HEADER_FORMATS: Readonly<Record<HeaderFormat, Format>> = {
  'draft-11': { names: ['RateLimit-Policy', 'RateLimit'], write: draft11Headers },
  'draft-7': {
    names: ['RateLimit-Policy', 'RateLimit'],
    write: draft7Headers,
    remaining: { name: 'RateLimit', pattern: /remaining=(\d+)/ },
  },
  'draft-6': {
    names: ['RateLimit-Policy', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'],
    write: draft6Headers,
    remaining: { name: 'RateLimit-Remaining', pattern: /^(\d+)$/ },
  },
  legacy: {
    names: ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
    write: legacyHeaders,
    remaining: { name: 'X-RateLimit-Remaining', pattern: /^(\d+)$/ },
  },
}

/** The headers that a limiter adds to a response, in one format. */
export interface HeaderSet {
  readonly format: HeaderFormat
  readonly isDenial: boolean
  readonly headers: readonly Header[]
}

/** Reads and writes the headers of a response. */
export interface HeaderAccess {
  /** Returns the header's value, or `undefined` if it isn't set. */
  get(name: string): string | undefined
  /** Sets the header, replacing any earlier value. */
  set(name: string, value: string): void
}

/**
 * Sets headers on a response that may already have headers from earlier limiters. Lists are joined; in formats without
 * lists, only the tighter limit is kept.
 */
export function placeHeaders(sets: readonly HeaderSet[], on: HeaderAccess): void {
  for (const set of sets) place(set, on, set.isDenial, false)
}

/**
 * Like {@link placeHeaders}, but the response has headers from later limiters. `isDenial` is whether one of those limiters denied
 * the request.
 */
export function placeHeadersBefore(sets: readonly HeaderSet[], on: HeaderAccess, isDenial: boolean): void {
  for (const set of sets) place(set, on, isDenial, true)
}

/**
 * @param laterDenies whether the later limiter denied the request
 * @param isBefore whether this limiter is the earlier one
 */
function place(set: HeaderSet, on: HeaderAccess, laterDenies: boolean, isBefore: boolean): void {
  const { remaining } = HEADER_FORMATS[set.format]
  if (remaining !== undefined) {
    if (laterDenies ? isBefore : isLooser(set, on, remaining, isBefore)) return
    for (const { name, value } of set.headers) on.set(name, value)
    return
  }
  for (const { name, value } of set.headers) {
    const others = on.get(name)
    if (others === undefined) on.set(name, value)
    else on.set(name, isBefore ? joined(value, others, laterDenies) : joined(others, value, laterDenies))
  }
}

/** Whether the response already has a tighter limit. If the limits are equal, the earlier limiter's headers are kept. */
function isLooser(
  { headers }: HeaderSet,
  on: HeaderAccess,
  { name, pattern }: NonNullable<Format['remaining']>,
  isBefore: boolean,
): boolean {
  const others = remainingIn(on.get(name), pattern)
  const ours = remainingIn(headers.find((header) => header.name === name)?.value, pattern)
  return others !== undefined && ours !== undefined && (isBefore ? others < ours : others <= ours)
}

function remainingIn(value: string | undefined, pattern: RegExp): number | undefined {
  const found = value === undefined ? null : pattern.exec(value)
  return found === null ? undefined : Number(found[1])
}

/** Joins two lists. Omits the earlier limiter's wait times if the later limiter denied the request. */
function joined(earlier: string, later: string, laterDenies: boolean): string {
  return `${laterDenies ? withoutTime(earlier) : earlier}, ${later}`
}

/** Returns the header names for `Access-Control-Expose-Headers`. */
export function exposedHeaders(formats: HeadersOption = 'draft-11'): readonly string[] {
  const names = formatsOf(formats).flatMap((format) => HEADER_FORMATS[format].names)
  return [...new Set(names), 'Retry-After']
}

const LOWER_CASE = new Map<string, string>()

/** Lowercases a header name. Cached, because a new string is a slow object key. */
export function lowerCase(name: string): string {
  let lower = LOWER_CASE.get(name)
  if (lower === undefined) {
    lower = name.toLowerCase()
    LOWER_CASE.set(name, lower)
  }
  return lower
}

/** One format, an array of `legacy` and another format, or `false` for none. */
export type HeadersOption = HeaderFormat | readonly HeaderFormat[] | false

/** @throws {SlidegateError} `invalid_option`, including for two formats that use the same header names */
export function formatsOf(headers: HeadersOption): readonly HeaderFormat[] {
  const formats = headers === false ? [] : typeof headers === 'string' ? [headers] : headers
  const isValid =
    Array.isArray(formats) &&
    formats.every((each) => typeof each === 'string' && Object.hasOwn(HEADER_FORMATS, each)) &&
    formats.filter((each) => each !== 'legacy').length < 2 &&
    new Set(formats).size === formats.length
  const one = "'draft-11' (also for draft-8 to draft-10), 'draft-7', 'draft-6', 'legacy'"
  checkThat(isValid, 'headers', headers, `${one}, an array of 'legacy' and one of the others, or false`)
  return formats
}

/**
 * Returns `RateLimit-Policy` and `RateLimit` as in draft-ietf-httpapi-ratelimit-headers-11.
 *
 * Both are structured lists of all enforced limits, in declared order. For example, on a denial:
 *
 *     RateLimit-Policy: "burst";q=100;w=60, "hourly";q=1000;w=3600
 *     RateLimit: "burst";r=0;t=12, "hourly";r=480
 *
 * `t` is the number of seconds until a limit's full quota is available. On a denial, only the limits that denied
 * the request have a `t`: the seconds until they would allow the same request, never more than `Retry-After`. An
 * active ban is listed before the limits, as a policy with a quota of 0:
 *
 *     RateLimit-Policy: "ip.ban";q=0, "ip.burst";q=100;w=60
 *     RateLimit: "ip.ban";r=0;t=600, "ip.burst";r=100
 */
export function draft11Headers(decision: Decision): readonly Header[] {
  const policies = policiesOf(decision.limits)
  if (policies === undefined) return []
  let states = ''
  for (const limit of decision.limits) {
    if (limit.shadow) continue
    states += `${states && ', '}"${limit.name}";r=${limit.remaining}${timeParameter(decision, limit)}`
  }
  const bans = bansIn(decision)
  if (bans.length === 0) return [policies, { name: 'RateLimit', value: states }]
  const banned = bans.map((ban) => `"${ban}";r=0${banTime(decision)}`)
  return [
    { name: policies.name, value: [...bans.map(policyOfBan), policies.value].join(', ') },
    { name: 'RateLimit', value: [...banned, states].join(', ') },
  ]
}

function policyOfBan(ban: string): string {
  return `"${ban}";q=0`
}

/** A one-entry cache: most requests have the same limits as the previous request. */
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
    // Limit names contain no characters that need escaping.
    .map(({ name, limit, windowMs }) => `"${name}";q=${limit}${windowParameter(windowMs)}`)
  if (policies.length === 0) return undefined
  return { name: 'RateLimit-Policy', value: policies.join(', ') }
}

function banTime({ retryAfterMs, blockedMs = 0 }: Decision): string {
  return retryAfterMs === Number.POSITIVE_INFINITY ? '' : `;t=${seconds(blockedMs)}`
}

function timeParameter(decision: Decision, limit: LimitDecision): string {
  if (decision.allowed) return `;t=${seconds(limit.resetAfterMs)}`
  // A wait time would be misleading if another limit will never admit the request.
  if (limit.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY) return ''
  return `;t=${seconds(limit.retryAfterMs)}`
}

/** Removes `t` from each limit. Leaves quoted names as they are. */
function withoutTime(states: string): string {
  return states.replace(/("(?:[^"\\]|\\.)*")|; *t=\d+/g, '$1')
}

/**
 * Returns `RateLimit-Policy` and `RateLimit` as in draft-ietf-httpapi-ratelimit-headers-07.
 *
 * This draft can describe only one limit. On a denial, that is the denying limit with the longest wait.
 * Otherwise, it is the limit with the fewest units remaining. `reset` is in seconds. On a denial, `reset`
 * equals `Retry-After`. Otherwise, or if waiting doesn't help, it is the time until the full quota is
 * available. A window shorter than one second has no `RateLimit-Policy`, since this draft requires `w`.
 *
 *     RateLimit-Policy: 100;w=60
 *     RateLimit: limit=100, remaining=50, reset=30
 */
export function draft7Headers(decision: Decision): readonly Header[] {
  const limit = tightest(decision)
  if (limit === undefined) return []
  const state = `limit=${limit.limit}, remaining=${limit.remaining}, reset=${seconds(waitMs(decision, limit))}`
  return [...draft7Policy(limit), { name: 'RateLimit', value: state }]
}

/**
 * Returns `RateLimit-Limit`, `-Remaining` and `-Reset` as in draft-ietf-httpapi-ratelimit-headers-06. The values match
 * {@link draft7Headers}.
 */
export function draft6Headers(decision: Decision): readonly Header[] {
  const limit = tightest(decision)
  if (limit === undefined) return []
  return [
    ...draft7Policy(limit),
    { name: 'RateLimit-Limit', value: `${limit.limit}` },
    { name: 'RateLimit-Remaining', value: `${limit.remaining}` },
    { name: 'RateLimit-Reset', value: `${seconds(waitMs(decision, limit))}` },
  ]
}

function draft7Policy({ limit, windowMs }: LimitDecision): readonly Header[] {
  const window = windowParameter(windowMs)
  return window === '' ? [] : [{ name: 'RateLimit-Policy', value: `${limit}${window}` }]
}

/**
 * Returns `X-RateLimit-Limit`, `-Remaining` and `-Reset` for the same limit as {@link draft7Headers}.
 *
 * As in express-rate-limit and on GitHub, `X-RateLimit-Reset` is in whole seconds since the epoch. It uses the store's clock.
 */
export function legacyHeaders(decision: Decision): readonly Header[] {
  const limit = tightest(decision)
  if (limit === undefined) return []
  return [
    { name: 'X-RateLimit-Limit', value: `${limit.limit}` },
    { name: 'X-RateLimit-Remaining', value: `${limit.remaining}` },
    { name: 'X-RateLimit-Reset', value: `${seconds(decision.atMs + waitMs(decision, limit))}` },
  ]
}

/** Returns `Retry-After` in whole seconds, rounded up. Returns no header if the request is allowed or waiting doesn't help. */
export function retryAfterHeaders(decision: Decision): readonly Header[] {
  if (decision.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY) return []
  return [{ name: 'Retry-After', value: `${seconds(decision.retryAfterMs)}` }]
}

/** The denying limit with the longest wait. If no limit denies, the limit with the fewest units remaining. */
function tightest(decision: Decision): LimitDecision | undefined {
  const limits = decision.limits.filter((limit) => !limit.shadow)
  const [denying] = limits.filter((limit) => !limit.allowed).sort((a, b) => b.retryAfterMs - a.retryAfterMs)
  return denying ?? limits.toSorted((a, b) => a.remaining - b.remaining)[0]
}

/** Milliseconds until the request fits. If it fits now or never will, milliseconds until the full quota is available. */
function waitMs(decision: Decision, { allowed, retryAfterMs, resetAfterMs }: LimitDecision): number {
  // A ban may last longer than the wait for any limit.
  if (decision.blockedMs !== undefined && decision.retryAfterMs !== Number.POSITIVE_INFINITY) {
    return decision.retryAfterMs
  }
  return allowed || retryAfterMs === Number.POSITIVE_INFINITY ? resetAfterMs : retryAfterMs
}

/** Returns `;w=` in whole seconds, or '' for a window shorter than one second. */
function windowParameter(windowMs: number): string {
  return windowMs < 1000 ? '' : `;w=${seconds(windowMs)}`
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000)
}
