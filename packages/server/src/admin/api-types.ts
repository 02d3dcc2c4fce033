// Types that the service shares with the dashboard.

import type { Decision } from 'slidegate'
import type * as schemas from '../http/admin-schemas.ts'
import type { Static } from '../json-schema.ts'

/** The service's state in the last full second, across all instances. */
export type Overview = Static<typeof schemas.Overview>
/** An instance that shares the store. */
export type InstanceStatus = Overview['instances'][number]
/** An instance that disappeared without signing off. */
export type GoneInstance = Overview['gone'][number]
export type StoreStatus = Overview['store']
export type RedisServerStatus = StoreStatus['servers'][number]
/** A limiter's rates in one second. */
export type LimiterRates = Overview['limiters'][number]

/** The last five minutes by second, across all instances. Columns have equal length and start with the oldest value. */
export type History = Static<typeof schemas.History>

/** Counts for a limiter or a key over an hour or a week. Columns have equal length and start with the oldest value. */
export type CountSeries = Static<typeof schemas.CountSeries>

/** Counts for a limit, across all instances since they started. */
export type LimitTotals = Static<typeof schemas.LimitsAnswer>['limits'][number]

/** The configuration in force, and how the file differs from it. */
export type ConfigurationState = Static<typeof schemas.Configuration>
export type DiffLine = ConfigurationState['diff'][number]
export type ConfigurationProblem = ConfigurationState['problems'][number]

/** Decisions within a time span. */
export type SpanUsage = Static<typeof schemas.UsageAnswer>['usage'][number]

/** How often a key has occurred: between `count - error` and `count` times. */
export type TopKey = Static<typeof schemas.TopAnswer>['keys'][number]

/** A key that is banned or blocked now. */
export type BanStatus = Static<typeof schemas.BansAnswer>['bans'][number]

/** The state of a key in one limiter. */
export type FoundKey = Static<typeof schemas.KeysAnswer>['found'][number]

/** An entry in the audit log. */
export type AuditEntry = Static<typeof schemas.AuditAnswer>['entries'][number]

/** A decision in the tail. */
export interface TailDecision extends Pick<Decision, 'atMs' | 'allowed' | 'cost' | 'deniedBy' | 'source'> {
  readonly limiter: string
  readonly key: string | Readonly<Record<string, string>>
  /** `null` if no limit is enforced. */
  readonly remaining: number | null
  /** `null` if the request would never be admitted. */
  readonly retryAfterMs: number | null
  /** `null` if the key is blocked until an operator unblocks it. */
  readonly blockedMs?: number | null
  /** Shadow limits that would have denied the request. */
  readonly shadowDeniedBy?: readonly string[]
}
