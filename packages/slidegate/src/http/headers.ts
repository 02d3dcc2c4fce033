// Rate limit headers, one function per format, and how several limiters of one response merge theirs.
import { bansIn, type Decision, type LimitDecision } from '../decision.ts'
import { invalidOption, show } from '../errors.ts'

/** A header field of a response. */
export interface Header {
  readonly name: string
  readonly value: string
}

/** A format of headers: a draft of the IETF by its number, or `X-RateLimit-*`. */
export type HeaderFormat = 'draft-11' | 'draft-7' | 'draft-6' | 'legacy'

interface Format {
  readonly names: readonly string[]
  readonly write: (decision: Decision) => readonly Header[]
  /** Where a format without lists has its remaining units: it has room for one limiter only. */
  readonly remaining?: { readonly name: string; readonly pattern: RegExp }
}

/** One function per format, so that none changes when the next one comes. */
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

/** The fields of one format that a limiter adds to a response. */
export interface HeaderSet {
  readonly format: HeaderFormat
  readonly isDenial: boolean
  readonly headers: readonly Header[]
}

/** Reads and writes the header fields of a response. */
export interface HeaderAccess {
  /** The value of the field, if it is set. */
  get(name: string): string | undefined
  /** Replaces the field. */
  set(name: string, value: string): void
}

/** Sets headers on a response that may have those of earlier limiters: lists are joined, else the tighter limit stays. */
export function placeHeaders(sets: readonly HeaderSet[], on: HeaderAccess): void {
  for (const set of sets) place(set, on, set.isDenial, false)
}

/** The same for a response that has headers of later limiters; `isDenial` if those denied the request. */
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

/** Whether the response has a tighter limit. Of limits that are as tight, the earlier one stays. */
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

/** Two lists as one. If the later limiter denied, the times of the earlier one no longer matter. */
function joined(earlier: string, later: string, laterDenies: boolean): string {
  return `${laterDenies ? withoutTime(earlier) : earlier}, ${later}`
}

/** The header names to list in `Access-Control-Expose-Headers`. */
export function exposedHeaders(formats: HeadersOption = 'draft-11'): readonly string[] {
  const names = formatsOf(formats).flatMap((format) => HEADER_FORMATS[format].names)
  return [...new Set(names), 'Retry-After']
}

const LOWER_CASE = new Map<string, string>()

/** A name of one of our fields in lower case. Cached, since a new string is slow as the key of an object. */
export function lowerCase(name: string): string {
  let lower = LOWER_CASE.get(name)
  if (lower === undefined) {
    lower = name.toLowerCase()
    LOWER_CASE.set(name, lower)
  }
  return lower
}

/** One format, an array of `legacy` and another one, or `false` for none. */
export type HeadersOption = HeaderFormat | readonly HeaderFormat[] | false

/** @throws {SlidegateError} `invalid_option`, also for two formats that give one name two meanings */
export function formatsOf(headers: HeadersOption): readonly HeaderFormat[] {
  const formats = headers === false ? [] : typeof headers === 'string' ? [headers] : headers
  const isValid =
    Array.isArray(formats) &&
    formats.every((each) => typeof each === 'string' && Object.hasOwn(HEADER_FORMATS, each)) &&
    formats.filter((each) => each !== 'legacy').length < 2 &&
    new Set(formats).size === formats.length
  if (isValid) return formats
  throw invalidOption(
    `headers is ${show(headers)}; it must be 'draft-11', 'draft-7', 'draft-6', 'legacy', an array of 'legacy' and one of the others, or false`,
    headers,
  )
}

/**
 * `RateLimit-Policy` and `RateLimit` after draft-ietf-httpapi-ratelimit-headers-11.
 *
 * Both are structured lists of all enforced limits, in declared order. For example, for a denial:
 *
 *     RateLimit-Policy: "burst";q=100;w=60, "hourly";q=1000;w=3600
 *     RateLimit: "burst";r=0;t=12, "hourly";r=480
 *
 * `t`, in seconds, is when all quota of a limit is back. On a denial only limits that denied the request have it: when the same
 * request fits, never later than `Retry-After`. A ban in force is a policy without quota, listed before the limits:
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

/** A cache of one: most requests have the same limits as the request before. */
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
  return { name: 'RateLimit-Policy', value: policies.join(', ') }
}

function banTime({ retryAfterMs, blockedMs = 0 }: Decision): string {
  return retryAfterMs === Number.POSITIVE_INFINITY ? '' : `;t=${seconds(blockedMs)}`
}

function timeParameter(decision: Decision, limit: LimitDecision): string {
  if (decision.allowed) return `;t=${seconds(limit.resetAfterMs)}`
  // A wait would mislead if another limit never admits the request.
  if (limit.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY) return ''
  return `;t=${seconds(limit.retryAfterMs)}`
}

/** Leaves quoted names alone. */
function withoutTime(states: string): string {
  return states.replace(/("(?:[^"\\]|\\.)*")|; *t=\d+/g, '$1')
}

/**
 * `RateLimit-Policy` and `RateLimit` after draft-ietf-httpapi-ratelimit-headers-07.
 *
 * That draft has one limit: on a denial the one that denies for longest, else the one with the least remaining. `reset`, in
 * seconds, is `Retry-After` on a denial; else, or if waiting doesn't help, it's when all quota is back. A window below one second
 * has no `RateLimit-Policy`, since that draft requires a `w`.
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

/** `RateLimit-Limit`, `-Remaining` and `-Reset` after draft-ietf-httpapi-ratelimit-headers-06, as in {@link draft7Headers}. */
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
 * `X-RateLimit-Limit`, `-Remaining` and `-Reset`, of the same limit as {@link draft7Headers}.
 *
 * `X-RateLimit-Reset` is in whole seconds since the epoch by the store's clock, as in express-rate-limit and GitHub.
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

/** `Retry-After` in whole seconds, rounded up. None for a request that is allowed, or never will be. */
export function retryAfterHeaders(decision: Decision): readonly Header[] {
  if (decision.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY) return []
  return [{ name: 'Retry-After', value: `${seconds(decision.retryAfterMs)}` }]
}

/** On a denial the denying limit with the longest wait, else the limit with the least remaining. */
function tightest(decision: Decision): LimitDecision | undefined {
  const limits = decision.limits.filter((limit) => !limit.shadow)
  const [denying] = limits.filter((limit) => !limit.allowed).sort((a, b) => b.retryAfterMs - a.retryAfterMs)
  return denying ?? limits.toSorted((a, b) => a.remaining - b.remaining)[0]
}

/** Milliseconds until the request fits, or, if it does now or never will, until all quota is back. */
function waitMs(decision: Decision, { allowed, retryAfterMs, resetAfterMs }: LimitDecision): number {
  // A ban may end after all limits have room.
  if (decision.blockedMs !== undefined && decision.retryAfterMs !== Number.POSITIVE_INFINITY) {
    return decision.retryAfterMs
  }
  return allowed || retryAfterMs === Number.POSITIVE_INFINITY ? resetAfterMs : retryAfterMs
}

/** `;w=` in whole seconds; nothing for a window below one second, which can't be expressed. */
function windowParameter(windowMs: number): string {
  return windowMs < 1000 ? '' : `;w=${seconds(windowMs)}`
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000)
}
