// The types that the service shares with the live page.

import type { Decision } from 'slidegate'
import type * as schemas from '../http/admin-schemas.ts'
import type { Static } from '../json-schema.ts'

/** The last whole second, of all instances together; and what is in it. */
export type Overview = Static<typeof schemas.Overview>
/** A process of the service on the same store. */
export type InstanceStatus = Overview['instances'][number]
export type StoreStatus = Overview['store']
export type RedisServerStatus = StoreStatus['servers'][number]
/** Of one second. */
export type LimiterRates = Overview['limiters'][number]

/** The last five minutes by the second, of all instances together: columns of equal length, the oldest first. */
export type History = Static<typeof schemas.History>

/** What a limit has said, on all instances since they were started. */
export type LimitTotals = Static<typeof schemas.LimitsAnswer>['limits'][number]

/** The configuration: as it is in force, and as it stands in the file. */
export type ConfigurationState = Static<typeof schemas.Configuration>
export type DiffLine = ConfigurationState['diff'][number]
export type ConfigurationProblem = ConfigurationState['problems'][number]

/** Decisions over a span of time. */
export type SpanUsage = Static<typeof schemas.UsageAnswer>['usage'][number]

/** How often a key came: `count` at most, and `count - error` at least. */
export type TopKey = Static<typeof schemas.TopAnswer>['keys'][number]

/** Something that somebody has done to the service. */
export type AuditEntry = Static<typeof schemas.AuditAnswer>['entries'][number]

/** A decision as readers see it. */
export interface TailDecision extends Pick<Decision, 'atMs' | 'allowed' | 'cost' | 'deniedBy' | 'source'> {
  readonly limiter: string
  readonly key: string | Readonly<Record<string, string>>
  /** `null` where no limit is enforced. */
  readonly remaining: number | null
  /** `null` where it will never be admitted. */
  readonly retryAfterMs: number | null
  /** `null`: until it is unblocked. */
  readonly blockedMs?: number | null
  /** Shadow limits that had no room. */
  readonly shadowDeniedBy?: readonly string[]
}
