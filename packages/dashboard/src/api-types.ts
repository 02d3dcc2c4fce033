// Types of the API's requests and responses that aren't in the server's `admin/api-types.ts`.

export type {
  AuditEntry,
  BanStatus,
  FoundKey,
  SpanUsage,
  TailDecision,
  TopKey,
} from '../../server/src/admin/api-types.ts'

import type { TopKey } from '../../server/src/admin/api-types.ts'

export type Role = 'check' | 'read' | 'admin'

export interface Whoami {
  readonly name: string
  readonly role: Role
  /** `null` means all limiters. */
  readonly limiters: readonly string[] | null
  /** Whether the configuration has tokens. */
  readonly hasTokens: boolean
}

/** A limit as declared in the configuration: its kind and its options. */
export interface DeclaredLimit {
  readonly kind: string
  readonly name?: string
  readonly shadow?: boolean
  readonly dimension?: string
  readonly [option: string]: unknown
}

export interface DeclaredLimiter {
  readonly name: string
  readonly config: Readonly<Record<string, unknown>>
  readonly hashesKeys: boolean
  readonly limits: readonly DeclaredLimit[]
  readonly shadowSettings: Readonly<Record<string, boolean>>
}

/** The most frequent keys. */
export interface TopKeyList {
  readonly spanMs: number
  /** The estimated number of distinct keys in this span. */
  readonly distinct?: number
  readonly keys: readonly TopKey[]
  /** Upper bound on the count of any key that isn't listed. */
  readonly unlisted: number
}

/** A key's override, set through the API. */
export interface Override {
  readonly key: string
  readonly dimension?: string
  /** The new numbers by limit name. The name is empty if the key has a single limit. */
  readonly limits?: Readonly<Record<string, LimitNumbers>>
  readonly exempt?: true
  /** Absent if the override never expires. */
  readonly expiresInMs?: number
  /** Absent if the key isn't blocked, `null` if the block never expires. */
  readonly blockedMs?: number | null
  /** Names in `limits` that match none of the key's current limits. */
  readonly unused?: readonly string[]
}

export interface LimitNumbers {
  readonly limit?: number
  readonly windowMs?: number
  readonly capacity?: number
  readonly refill?: number
}

/** Whether an override changes limits or exempts the key. Some overrides only block the key. */
export function hasRule({ limits, exempt }: Override): boolean {
  return limits !== undefined || exempt === true
}

/** The response of /v1/explain. Times are on the store's clock. A duration is `null` if it never ends. */
export interface Explanation {
  readonly atMs: number
  readonly allowed: boolean
  readonly cost: number
  readonly deniedBy: readonly string[]
  readonly retryAfterMs: number | null
  /** 0 if the key isn't blocked, `null` if the block never expires. */
  readonly blockedMs: number | null
  readonly limits: readonly ExplainedLimit[]
  readonly bans: readonly ExplainedBan[]
  readonly overrides: readonly Override[]
}

export interface ExplainedLimit {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  readonly precisionMs: number
  readonly shadow: boolean
  readonly allowed: boolean
  readonly used: number
  readonly remaining: number
  readonly resetAfterMs: number | null
  readonly frees: readonly { readonly afterMs: number; readonly units: number }[]
  /** Present only for kinds of limits that store the time of each charge. */
  readonly charges?: readonly Charge[]
  readonly olderUnits?: number
  readonly declared?: DeclaredLimit
}

export interface Charge {
  readonly atMs: number
  readonly units: number
}

interface ExplainedBan {
  /** 0 if the key isn't banned now. */
  readonly blockedMs: number
  readonly sinceMs?: number
  readonly level: number
  readonly denials: number
}

/** The key that a page shows. */
export interface OneKey {
  readonly limiter: string
  readonly key: string
  /** Only set for limiters with dimensions. */
  readonly dimension: string | undefined
}

/** The key in the form that the API expects. */
export function keyOf({ key, dimension }: OneKey): string | Readonly<Record<string, string>> {
  return dimension === undefined ? key : { [dimension]: key }
}

/** A limit's name in the configuration. In decisions, it has the dimension as a prefix. */
export function declaredName({ dimension }: OneKey, { name }: ExplainedLimit): string {
  return dimension === undefined ? name : name.slice(dimension.length + 1)
}
