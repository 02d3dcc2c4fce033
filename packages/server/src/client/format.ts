// Answers of the service as text for people.

import { alignColumns, formatCount, formatDuration, printable } from '#replay/text.js'
import type { SHARED } from '../http/schemas.ts'
import type { Static } from '../json-schema.ts'
import { EXIT } from './service-client.ts'

/** The answers of the service. */
export type DecisionBody = Static<typeof SHARED.Decision>
export type ExplanationBody = Static<typeof SHARED.Explanation>
export type LimitBody = DecisionBody['limits'][number]
export type OverrideBody = ExplanationBody['overrides'][number]

/** The numbers of a limit, as an override has them or as they were typed. */
export interface Numbers {
  readonly limit?: number
  readonly window?: number | string
  readonly windowMs?: number
  readonly capacity?: number
  readonly refill?: number
}

/** What an override says. Numbers are by the name of their limit; those of an only limit by an empty one. */
export interface Rule extends Pick<OverrideBody, 'exempt' | 'unused'> {
  readonly limits?: Readonly<Record<string, Numbers>>
}

const SECOND_MS = 1000

/** Above that nobody counts milliseconds. */
const COARSE_MS = 10 * SECOND_MS

export function lasting(ms: number): string {
  return formatDuration(ms > COARSE_MS ? Math.ceil(ms / SECOND_MS) * SECOND_MS : Math.ceil(ms))
}

export function after(ms: number | null): string {
  if (ms === null) return 'never'
  return ms === 0 ? 'now' : `in ${lasting(ms)}`
}

/** A decision in a line, and one for each limit. */
export function decisionLines(decision: DecisionBody): string[] {
  const rows = decision.limits.map((limit) => [
    nameOf(limit),
    `${formatCount(limit.remaining)} of ${formatCount(limit.limit)} left`,
    limit.allowed ? '' : `fits ${after(limit.retryAfterMs)}`,
  ])
  return [headOf(decision), ...alignColumns(rows)]
}

function headOf({ allowed, remaining, retryAfterMs, deniedBy, source, blockedMs }: DecisionBody): string {
  const by = source === 'store' ? '' : `, decided by ${printable(source)}`
  if (allowed) return `allowed${remaining === null ? '' : `, ${formatCount(remaining)} left`}${by}`
  const blocked = blockedMs === undefined ? '' : `, ${blockedText(blockedMs)}`
  return `denied${byWhat(deniedBy)}${blocked}; try again ${after(retryAfterMs)}${by}`
}

/** The bans and limits that deny a request, if they are known. */
export function byWhat(deniedBy: readonly string[]): string {
  return deniedBy.length === 0 ? '' : ` by ${deniedBy.map((name) => printable(name)).join(', ')}`
}

export function nameOf({ name, shadow }: { readonly name: string; readonly shadow: boolean }): string {
  return `${printable(name)}${shadow ? ' (shadow)' : ''}`
}

/** The exit code is the decision. */
export function endWith({ allowed }: { readonly allowed: boolean }): void {
  if (!allowed) process.exitCode = EXIT.denied
}

export function blockedText(ms: number | null): string {
  return ms === null ? 'blocked until it is unblocked' : `blocked for ${lasting(ms)}`
}

/** `minute 300 per 1m, hourly 5,000, for 1h` */
export function overrideText(override: OverrideBody): string {
  const { expiresInMs, blockedMs } = override
  const rule = ruleText(override)
  const end = expiresInMs === undefined ? 'until it is deleted' : `for ${lasting(expiresInMs)}`
  return [
    ...(rule === '' ? [] : [rule, end]),
    ...(blockedMs === undefined ? [] : [blockedText(blockedMs)]),
  ].join(', ')
}

export function ruleText({ limits = {}, exempt, unused = [] }: Rule): string {
  if (exempt) return 'exempt'
  return Object.entries(limits)
    .map(([name, numbers]) => `${numbersText(name, numbers)}${unused.includes(name) ? ' (unused)' : ''}`)
    .join(', ')
}

function numbersText(name: string, { limit, window, windowMs, capacity, refill }: Numbers): string {
  const length = windowMs === undefined ? window : formatDuration(windowMs)
  const words = [
    ...(name === '' ? [] : [name]),
    ...(limit === undefined ? [] : [formatCount(limit)]),
    ...(length === undefined ? [] : [`per ${typeof length === 'number' ? formatDuration(length) : length}`]),
    ...(capacity === undefined ? [] : [`capacity ${formatCount(capacity)}`]),
    ...(refill === undefined ? [] : [`refill ${formatCount(refill)}`]),
  ]
  return printable(words.join(' '))
}

/** A limit as a configuration has it, in a few words: `100 per 1m`. */
export function limitText(limit: Readonly<Record<string, unknown>>): string {
  const { kind, window, interval, ttl, unit } = limit
  const units = limit.limit ?? limit.capacity
  const length = window ?? interval ?? ttl
  const per = typeof length === 'number' ? formatDuration(length) : (length ?? unit ?? '')
  const kindly = kind === 'slidingWindow' ? '' : ` (${String(kind)})`
  return printable(`${formatCount(Number(units))}${per === '' ? '' : ` per ${String(per)}`}${kindly}`)
}
