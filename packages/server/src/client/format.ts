// Formats the service's responses as text.

import {
  alignColumns,
  formatCount,
  formatDuration,
  formatRoughDuration,
  printable,
} from '../../../replay/src/text.ts'
import type { SHARED } from '../http/schemas.ts'
import type { Static } from '../json-schema.ts'
import { EXIT } from './service-client.ts'

/** Response bodies of the service. */
export type DecisionBody = Static<typeof SHARED.Decision>
export type ExplanationBody = Static<typeof SHARED.Explanation>
export type LimitBody = DecisionBody['limits'][number]
export type OverrideBody = ExplanationBody['overrides'][number]

/** The numbers of a limit, from an override or from the command line. */
export interface Numbers {
  readonly limit?: number
  readonly window?: number | string
  readonly windowMs?: number
  readonly capacity?: number
  readonly refill?: number
}

/** An override to print. `limits` maps limit names to numbers; the name `""` stands for the only limit. */
export interface Rule extends Pick<OverrideBody, 'exempt' | 'unused'> {
  readonly limits?: Readonly<Record<string, Numbers>>
}

const NO_RETRY = "retrying won't help"

export function after(ms: number | null): string {
  if (ms === null) return 'never'
  return ms === 0 ? 'now' : `in ${formatRoughDuration(ms)}`
}

/** Formats a decision: a summary line, then a line per limit. */
export function decisionLines(decision: DecisionBody): string[] {
  const rows = decision.limits.map((limit) => [
    nameOf(limit),
    `${formatCount(limit.remaining)} of ${formatCount(limit.limit)} left`,
    limit.allowed ? '' : limit.retryAfterMs === null ? NO_RETRY : `retry ${after(limit.retryAfterMs)}`,
  ])
  return [headOf(decision), ...alignColumns(rows)]
}

function headOf({ allowed, remaining, retryAfterMs, deniedBy, source, blockedMs }: DecisionBody): string {
  const by = source === 'store' ? '' : `, decided by ${printable(source)}`
  if (allowed) return `allowed${remaining === null ? '' : `, ${formatCount(remaining)} left`}${by}`
  const blocked = blockedMs === undefined ? '' : `, ${blockedText(blockedMs)}`
  const retry = retryAfterMs === null ? NO_RETRY : `try again ${after(retryAfterMs)}`
  return `denied${byWhat(deniedBy)}${blocked}; ${retry}${by}`
}

/** Formats the names of the bans and limits that denied a request. Returns an empty string if they are unknown. */
export function byWhat(deniedBy: readonly string[]): string {
  return deniedBy.length === 0 ? '' : ` by ${deniedBy.map((name) => printable(name)).join(', ')}`
}

export function nameOf({ name, shadow }: { readonly name: string; readonly shadow: boolean }): string {
  return `${printable(name)}${shadow ? ' (shadow)' : ''}`
}

/** Sets the exit code for a decision. */
export function endWith({ allowed }: { readonly allowed: boolean }): void {
  if (!allowed) process.exitCode = EXIT.denied
}

export function blockedText(ms: number | null): string {
  return ms === null ? 'blocked until unblocked' : `blocked for ${formatRoughDuration(ms)}`
}

/** Formats an override: `minute 300 per 1m, hourly 5,000, for 1h`. */
export function overrideText(override: OverrideBody): string {
  const { expiresInMs, blockedMs } = override
  const rule = ruleText(override)
  const end = expiresInMs === undefined ? 'until deleted' : `for ${formatRoughDuration(expiresInMs)}`
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

/** Formats a limit from the configuration: `100 per 1m`. */
export function limitText(limit: Readonly<Record<string, unknown>>): string {
  const { kind, window, interval, ttl, unit } = limit
  const units = limit.limit ?? limit.capacity
  const length = window ?? interval ?? ttl
  const per = typeof length === 'number' ? formatDuration(length) : (length ?? unit ?? '')
  const kindly = kind === 'slidingWindow' ? '' : ` (${String(kind)})`
  return printable(`${formatCount(Number(units))}${per === '' ? '' : ` per ${String(per)}`}${kindly}`)
}
