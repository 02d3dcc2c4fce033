import type { TopKey } from '../../server/src/admin/overview.ts'
import { duration, roundDuration } from './format.ts'

export type {
  AuditEntry as AuditTold,
  SpanUsage as UsageTold,
  TailLine as DecisionTold,
  TopKey as TopKeyTold,
} from '../../server/src/admin/overview.ts'

/** What the service answers besides what `admin/overview.ts` of the server has. */

export type Role = 'check' | 'read' | 'admin'

export interface Whoami {
  readonly name: string
  readonly role: Role
  /** `null`: all. */
  readonly limiters: readonly string[] | null
  /** Whether the configuration has tokens. */
  readonly hasTokens: boolean
}

/** A limit as a configuration has it: a kind with its numbers. */
export interface LimitTold {
  readonly kind: string
  readonly name?: string
  readonly shadow?: boolean
  readonly dimension?: string
  readonly [option: string]: unknown
}

export interface LimiterTold {
  readonly name: string
  readonly config: Readonly<Record<string, unknown>>
  readonly hashesKeys: boolean
  readonly limits: readonly LimitTold[]
  readonly shadowByWord: Readonly<Record<string, boolean>>
}

export interface TopTold {
  readonly overMs: number
  /** Different callers in that time, estimated. */
  readonly distinct?: number
  readonly keys: readonly TopKey[]
}

/** What was set for a key by the API. */
export interface OverrideTold {
  readonly key: string
  readonly dimension?: string
  /** By the name of their limit; those of an only limit by an empty one. */
  readonly limits?: Readonly<Record<string, NumbersTold>>
  readonly exempt?: true
  /** Left out: never. */
  readonly expiresInMs?: number
  /** Left out: not blocked; `null`: until it is unblocked. */
  readonly blockedMs?: number | null
  /** Names that change none of the key's limits now. */
  readonly unused?: readonly string[]
}

export interface NumbersTold {
  readonly limit?: number
  readonly windowMs?: number
  readonly capacity?: number
  readonly refill?: number
}

/** Whether it changes or exempts limits: it may only block. */
export function hasRule({ limits, exempt }: OverrideTold): boolean {
  return limits !== undefined || exempt === true
}

/** An override in words, without its end: `minute 300 per 1 min, hourly 5000`. */
export function ruleInWords({ limits = {}, exempt, unused = [] }: OverrideTold): string {
  if (exempt) return 'exempt: its limits only count'
  return Object.entries(limits)
    .map(([name, { limit, windowMs, capacity, refill }]) =>
      [
        name,
        limit,
        windowMs !== undefined && `per ${duration(windowMs)}`,
        capacity !== undefined && `capacity ${capacity}`,
        refill !== undefined && `refill ${refill}`,
        unused.includes(name) && '(unused)',
      ]
        .filter((word) => word !== undefined && word !== false && word !== '')
        .join(' '),
    )
    .join(', ')
}

export function blockInWords(ms: number | null): string {
  return ms === null ? 'blocked until it is unblocked' : `blocked for ${roundDuration(ms)}`
}

/** A limit in words: `100 in any 1 min`. */
export function limitInWords(limit: LimitTold): string {
  const { kind, limit: most, window, capacity, refill, interval, ttl, unit, approximate } = limit
  switch (kind) {
    case 'slidingWindow':
      return `${most} in any ${spanOf(window)}`
    case 'fixedWindow':
      return `${most} per ${spanOf(window)}, by the clock`
    case 'calendarWindow':
      return `${most} per ${unit}, by the calendar`
    case 'slidingCounter':
      return `about ${most} in any ${spanOf(window)}`
    case 'tokenBucket':
      return `bucket of ${capacity}, ${refill} back each ${spanOf(interval)}`
    case 'concurrency':
      return `${most} at the same time, held ${spanOf(ttl)} at most`
    case 'distinct':
      return `${approximate ? 'about ' : ''}${most} different values in any ${spanOf(window)}`
    default:
      return kind
  }
}

function spanOf(span: unknown): string {
  if (typeof span === 'number') return duration(span)
  const [, count, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(String(span)) ?? []
  return unit === undefined ? String(span) : `${count} ${unit === 'm' ? 'min' : unit}`
}
