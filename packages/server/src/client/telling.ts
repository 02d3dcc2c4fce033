import { formatDuration } from '../duration.ts'
import { alignColumns, formatCount, printable } from '../text.ts'
import { EXIT } from './exit-codes.ts'

/** What the service tells of one limit. `null` is never. */
export interface LimitTold {
  readonly name: string
  readonly limit: number
  readonly shadow: boolean
  readonly allowed: boolean
  readonly remaining: number
  readonly retryAfterMs: number | null
  readonly resetAfterMs: number | null
}

export interface DecisionTold {
  readonly allowed: boolean
  readonly cost: number
  readonly remaining: number | null
  readonly retryAfterMs: number | null
  readonly resetAfterMs: number | null
  readonly deniedBy: readonly string[]
  readonly limits: readonly LimitTold[]
  readonly source: string
  readonly blockedMs?: number | null
}

/** An override. Numbers are by the name of their limit; those of an only limit by an empty one. */
export interface OverrideTold {
  readonly key: string
  readonly dimension?: string
  readonly limits?: Readonly<Record<string, NumbersTold>>
  readonly exempt?: true
  /** Left out: never. */
  readonly expiresInMs?: number
  readonly blockedMs?: number | null
  readonly unused?: readonly string[]
}

export interface NumbersTold {
  readonly limit?: number
  /** In milliseconds, or as it was typed. */
  readonly window?: number | string
  readonly windowMs?: number
  readonly capacity?: number
  readonly refill?: number
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
export function decisionLines(decision: DecisionTold): string[] {
  const rows = decision.limits.map((limit) => [
    nameOf(limit),
    `${formatCount(limit.remaining)} of ${formatCount(limit.limit)} left`,
    limit.allowed ? '' : `fits ${after(limit.retryAfterMs)}`,
  ])
  return [headOf(decision), ...alignColumns(rows)]
}

function headOf({ allowed, remaining, retryAfterMs, deniedBy, source, blockedMs }: DecisionTold): string {
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
export function overrideText(override: OverrideTold): string {
  const { expiresInMs, blockedMs } = override
  const rule = ruleText(override)
  const end = expiresInMs === undefined ? 'until it is deleted' : `for ${lasting(expiresInMs)}`
  return [
    ...(rule === '' ? [] : [rule, end]),
    ...(blockedMs === undefined ? [] : [blockedText(blockedMs)]),
  ].join(', ')
}

export function ruleText({ limits = {}, exempt, unused = [] }: Omit<OverrideTold, 'key'>): string {
  if (exempt) return 'exempt'
  return Object.entries(limits)
    .map(([name, numbers]) => `${numbersText(name, numbers)}${unused.includes(name) ? ' (unused)' : ''}`)
    .join(', ')
}

function numbersText(name: string, { limit, window, windowMs, capacity, refill }: NumbersTold): string {
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
