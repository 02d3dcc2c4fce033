// Rate limit headers, one function per generation, and how several limiters of one response merge theirs.
import { bansIn, type Decision, type LimitDecision } from '../decision.ts'
import { invalidOption, show } from '../errors.ts'

/** A header field of a response. */
export interface Header {
  readonly name: string
  readonly value: string
}

/** A generation of headers: a draft of the IETF by its number, or `X-RateLimit-*`. */
export type HeaderGeneration = 'draft-11' | 'draft-7' | 'draft-6' | 'legacy'

/** How a generation is spelt, and how several limiters of one response merge theirs. */
interface Generation {
  readonly spell: (decision: Decision) => readonly Header[]
  /** In a generation that isn't of lists, which has room for one limiter only: where its remaining units are. */
  readonly remaining?: { readonly name: string; readonly pattern: RegExp }
}

/** One function per generation of rate limit headers, so that none changes when the next one comes. */
export const HEADER_GENERATIONS: Readonly<Record<HeaderGeneration, Generation>> = {
  'draft-11': { spell: draft11Headers },
  'draft-7': { spell: draft7Headers, remaining: { name: 'RateLimit', pattern: /remaining=(\d+)/ } },
  'draft-6': { spell: draft6Headers, remaining: { name: 'RateLimit-Remaining', pattern: /^(\d+)$/ } },
  legacy: { spell: legacyHeaders, remaining: { name: 'X-RateLimit-Remaining', pattern: /^(\d+)$/ } },
}

/** The fields of one generation that a limiter adds to a response. */
export interface HeaderSet {
  readonly generation: HeaderGeneration
  readonly isDenial: boolean
  readonly headers: readonly Header[]
}

/** The fields of a response, whoever writes it. */
export interface HeaderAccess {
  /** The field as it is now. */
  get(name: string): string | undefined
  /** In place of what it was. */
  set(name: string, value: string): void
}

/** Sets headers on a response that may have those of earlier limiters: lists are joined, else the tighter limit stays. */
export function placeHeaders(sets: readonly HeaderSet[], on: HeaderAccess): void {
  for (const set of sets) place(set, on, false, false)
}

/** The same for a response that comes from limiters behind this one; `isDenial` if they have denied it. */
export function placeHeadersBefore(sets: readonly HeaderSet[], on: HeaderAccess, isDenial: boolean): void {
  for (const set of sets) place(set, on, true, isDenial)
}

function place(set: HeaderSet, on: HeaderAccess, isBefore: boolean, othersDeny: boolean): void {
  const { remaining } = HEADER_GENERATIONS[set.generation]
  const isLater = !isBefore
  const laterDenies = isLater ? set.isDenial : othersDeny
  if (remaining !== undefined && !laterDenies) {
    const others = remainingIn(on.get(remaining.name), remaining.pattern)
    const ours = remainingIn(fieldIn(set, remaining.name), remaining.pattern)
    // Of limits that are as tight the first stays.
    if (others !== undefined && ours !== undefined && (isLater ? others <= ours : others < ours)) return
  } else if (remaining !== undefined && isBefore) return
  for (const { name, value } of set.headers) {
    const others = remaining === undefined ? on.get(name) : undefined
    if (others === undefined) on.set(name, value)
    else on.set(name, isLater ? joined(others, value, laterDenies) : joined(value, others, laterDenies))
  }
}

/** Two lists as one. If the later limiter denied, the times of the earlier one no longer matter. */
function joined(earlier: string, later: string, laterDenies: boolean): string {
  return `${laterDenies ? withoutTime(earlier) : earlier}, ${later}`
}

function fieldIn({ headers }: HeaderSet, name: string): string | undefined {
  return headers.find((header) => header.name === name)?.value
}

function remainingIn(value: string | undefined, pattern: RegExp): number | undefined {
  const found = value === undefined ? null : pattern.exec(value)
  return found === null ? undefined : Number(found[1])
}

/** The header names to list in `Access-Control-Expose-Headers`. */
export function exposedHeaders(generations: HeaderGenerations = 'draft-11'): readonly string[] {
  return [...new Set(generationsOf(generations).flatMap((generation) => NAMES[generation])), 'Retry-After']
}

const NAMES: Readonly<Record<HeaderGeneration, readonly string[]>> = {
  'draft-11': ['RateLimit-Policy', 'RateLimit'],
  'draft-7': ['RateLimit-Policy', 'RateLimit'],
  'draft-6': ['RateLimit-Policy', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'],
  legacy: ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
}

/** One generation, `legacy` beside a draft, or none. */
export type HeaderGenerations = HeaderGeneration | readonly HeaderGeneration[] | false

/** @throws {SlidegateError} `invalid_option`, also for two generations that give one name two meanings */
export function generationsOf(headers: HeaderGenerations): readonly HeaderGeneration[] {
  const generations = headers === false ? [] : typeof headers === 'string' ? [headers] : headers
  const isRight =
    Array.isArray(generations) &&
    generations.every((each) => typeof each === 'string' && Object.hasOwn(HEADER_GENERATIONS, each)) &&
    generations.filter((each) => each !== 'legacy').length < 2 &&
    new Set(generations).size === generations.length
  if (isRight) return generations
  throw invalidOption(
    `headers is ${show(headers)}; it must be 'draft-11', 'draft-7', 'draft-6', 'legacy', an array of 'legacy' and one of the others, or false`,
    headers,
  )
}

/**
 * `RateLimit-Policy` and `RateLimit` after draft-ietf-httpapi-ratelimit-headers-11: structured field lists
 * over all enforced limits, in declared order. Of a denial, for instance:
 *
 *     RateLimit-Policy: "burst";q=100;w=60, "hourly";q=1000;w=3600
 *     RateLimit: "burst";r=0;t=12, "hourly";r=480
 *
 * `t`, in seconds, is when all quota of a limit is back; on a denial it is when the same request fits a limit
 * that denied it, stands on no other, and never exceeds `Retry-After`. A ban in force is a policy without quota, before
 * the limits, which keep the room that they have:
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

/** The policies spelt last: most requests meet the same limits as the one before. */
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
  // A wait would mislead where another limit never admits the request.
  if (limit.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY) return ''
  return `;t=${seconds(limit.retryAfterMs)}`
}

/** Leaves quoted names alone. */
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
  const state = `limit=${limit.limit}, remaining=${limit.remaining}, reset=${seconds(waitMs(decision, limit))}`
  return [...draft7Policy(limit), { name: 'RateLimit', value: state }]
}

/**
 * `RateLimit-Limit`, `-Remaining` and `-Reset` after draft-ietf-httpapi-ratelimit-headers-06, of the limit that
 * {@link draft7Headers} names and with its meanings.
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
    { name: 'X-RateLimit-Reset', value: `${seconds(decision.atMs + waitMs(decision, limit))}` },
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
function waitMs(decision: Decision, { allowed, retryAfterMs, resetAfterMs }: LimitDecision): number {
  // A ban may be over later than any limit has room.
  if (decision.blockedMs !== undefined && decision.retryAfterMs !== Number.POSITIVE_INFINITY) {
    return decision.retryAfterMs
  }
  return allowed || retryAfterMs === Number.POSITIVE_INFINITY ? resetAfterMs : retryAfterMs
}

/** `;w=` in whole seconds; nothing for a window below one second, which they cannot express. */
function windowParameter(windowMs: number): string {
  return windowMs < 1000 ? '' : `;w=${seconds(windowMs)}`
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000)
}
