// Reads the rate limit headers in an upstream's responses, in all formats.
import {
  type BareItem,
  type Item,
  type Parameters,
  parseDictionary,
  parseList,
  Token,
} from 'structured-headers'

/** One of the upstream's limits, as reported in its headers. */
export interface Quota {
  readonly name?: string | undefined
  /** Units per window. */
  readonly limit?: number | undefined
  readonly windowMs?: number | undefined
  readonly remaining?: number | undefined
  /** Milliseconds until some or all of the quota is available again, depending on the upstream. */
  readonly resetMs?: number | undefined
}

/** The rate limits in the headers of a response. All numbers are finite and not negative. */
export interface ResponseHeaders {
  readonly quotas: readonly Quota[]
  /** Milliseconds to wait before another request. */
  readonly retryAfterMs: number | undefined
}

/** Returns a header by its lowercase name. The values of a repeated header are joined with commas. */
export type ReadHeader = (name: string) => string | null | undefined

/** Longer headers are ignored, and longer lists are truncated. */
const MAX_LENGTH = 4096
const MAX_QUOTAS = 16

/** Longer times are capped at this value. */
const MAX_MS = 366 * 86_400_000

/**
 * Reads rate limit headers: drafts 6, 7, 8 and later, `X-RateLimit-*` and `X-Rate-Limit-*`. Ignores invalid headers.
 *
 * @param nowMs the current time. Absolute times are relative to it if the response has no `Date`
 */
export function readResponseHeaders(header: ReadHeader, nowMs: number): ResponseHeaders {
  const read = (name: string) => {
    const value = header(name)
    return typeof value === 'string' && value.length <= MAX_LENGTH ? value : undefined
  }
  const clockMs = dateIn(read('date')) ?? nowMs
  const formats = [structuredQuotas, ...PREFIXES.map((prefix) => fieldQuotas(prefix))]
  let quotas: readonly Quota[] = []
  for (const format of formats) {
    quotas = format(read, clockMs)
    if (quotas.length > 0) break
  }
  return { quotas: quotas.slice(0, MAX_QUOTAS), retryAfterMs: retryAfterIn(read('retry-after'), clockMs) }
}

type Read = (name: string) => string | undefined

const PREFIXES = ['ratelimit-', 'x-ratelimit-', 'x-rate-limit-']

/** Reads `RateLimit-Policy` and `RateLimit`. They're lists in draft 8 and later, and dictionaries in draft 7. */
function structuredQuotas(read: Read): readonly Quota[] {
  const policies = policiesIn(read('ratelimit-policy'))
  const field = read('ratelimit')
  const listed = membersOf(field).flatMap(([name, parameters]): Quota[] => {
    const remaining = count(parameters.get('r'))
    if (remaining === undefined) return []
    return [{ name: textOf(name), remaining, resetMs: seconds(count(parameters.get('t'))) }]
  })
  const states = listed.length > 0 ? listed : dictionaryQuota(field)
  if (states.length === 0 && read('ratelimit-remaining') !== undefined) return []
  return joined(policies, states)
}

function dictionaryQuota(field: string | undefined): readonly Quota[] {
  const found = parsed(parseDictionary, field)
  if (found === undefined) return []
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) => count(found.get(name)?.[0]))
  if (limit === undefined && remaining === undefined) return []
  return [{ limit, remaining, resetMs: seconds(reset) }]
}

/** Reads separate headers for the limit, the remaining units and the reset. */
function fieldQuotas(prefix: string) {
  return (read: Read, clockMs: number): readonly Quota[] => {
    const limits = read(`${prefix}limit`)
    const limit = leading(limits)
    const remaining = leading(read(`${prefix}remaining`))
    if (limit === undefined && remaining === undefined) return []
    const resetMs = resetIn(read(`${prefix}reset`), clockMs)
    const policies = [...policiesIn(limits), ...policiesIn(read('ratelimit-policy'))]
    return joined(
      policies.filter(({ windowMs }) => windowMs !== undefined),
      [{ limit, remaining, resetMs }],
    )
  }
}

/** Reads members like `"burst";q=100;w=60`, or `100;w=60` in older drafts. Skips quotas in units other than requests. */
function policiesIn(field: string | undefined): readonly Quota[] {
  return membersOf(field).flatMap(([value, parameters]): Quota[] => {
    const unit = parameters.get('qu')
    if (unit !== undefined && textOf(unit as BareItem) !== 'requests') return []
    const limit = count(parameters.get('q')) ?? count(value)
    if (limit === undefined) return []
    return [{ name: textOf(value), limit, windowMs: seconds(count(parameters.get('w'))) }]
  })
}

/** Joins policies with their states. They are matched by name, or by limit if there are no names. */
function joined(policies: readonly Quota[], states: readonly Quota[]): readonly Quota[] {
  const left = [...states]
  const quotas = policies.map((policy) => {
    const place = left.findIndex((state) =>
      state.name === undefined
        ? state.limit === undefined
          ? policies.length === 1
          : state.limit === policy.limit
        : state.name === policy.name,
    )
    if (place < 0) return policy
    const [{ remaining, resetMs }] = left.splice(place, 1) as [Quota]
    return { ...policy, remaining, resetMs }
  })
  return [...quotas, ...left]
}

function membersOf(field: string | undefined): readonly [BareItem, Parameters][] {
  const members = parsed(parseList, field) ?? []
  return members.slice(0, MAX_QUOTAS).filter((member): member is Item => !Array.isArray(member[0]))
}

function parsed<T>(parse: (field: string) => T, field: string | undefined): T | undefined {
  try {
    return field === undefined ? undefined : parse(field)
  } catch {
    return undefined
  }
}

/** Returns a number of units or seconds, or `undefined` if the value is invalid. */
function count(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? Math.floor(value) : undefined
}

/** Returns the name of a policy, or `undefined` for a number. */
function textOf(value: BareItem): string | undefined {
  return typeof value === 'string' || value instanceof Token ? `${value}` : undefined
}

function seconds(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.min(value * 1000, MAX_MS)
}

/** Returns the number at the start of a header. */
function leading(field: string | undefined): number | undefined {
  const digits = /^\s*"?(\d{1,15})(?![\d:-])/.exec(field ?? '')?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/** Reads a time in seconds from now. Numbers of 1e9 (about 32 years) or more are seconds or milliseconds since the epoch. */
function resetIn(field: string | undefined, clockMs: number): number | undefined {
  const value = /^\s*"?(\d{1,15}(?:\.\d{1,9})?)"?\s*$/.exec(field ?? '')?.[1]
  if (value === undefined) return until(dateIn(field), clockMs)
  const number = Number(value)
  if (number >= 1e11) return until(number, clockMs)
  return number >= 1e9 ? until(number * 1000, clockMs) : bounded(number * 1000)
}

/** Reads a number of seconds, or a date. */
function retryAfterIn(field: string | undefined, clockMs: number): number | undefined {
  const value = /^\s*(\d{1,15}(?:\.\d{1,9})?)\s*$/.exec(field ?? '')?.[1]
  return value === undefined ? until(dateIn(field), clockMs) : bounded(Number(value) * 1000)
}

const DATE =
  /^\s*([A-Za-z]{3,9}, \d{2}[ -][A-Za-z]{3}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT|\d{4}-\d{2}-\d{2}T[\d:.]+(Z|[+-]\d{2}:?\d{2}))\s*$/

/** Reads an HTTP or ISO 8601 date. Returns milliseconds since the epoch. */
function dateIn(field: string | undefined): number | undefined {
  if (field === undefined || !DATE.test(field)) return undefined
  const ms = Date.parse(field)
  return Number.isNaN(ms) ? undefined : ms
}

function until(atMs: number | undefined, clockMs: number): number | undefined {
  return atMs === undefined ? undefined : bounded(atMs - clockMs)
}

function bounded(ms: number): number {
  return Math.min(Math.max(0, Math.ceil(ms)), MAX_MS)
}
