// Answers of the API as types, besides those in `admin/api-types.ts` of the server, and the keys sent to it.

export type { AuditEntry, SpanUsage, TailDecision, TopKey } from '../../server/src/admin/api-types.ts'

import type { TopKey } from '../../server/src/admin/api-types.ts'

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

/** The keys that came most often. */
export interface TopKeyList {
  readonly spanMs: number
  /** Different callers in that time, estimated. */
  readonly distinct?: number
  readonly keys: readonly TopKey[]
}

/** What was set for a key by the API. */
export interface Override {
  readonly key: string
  readonly dimension?: string
  /** By the name of their limit; those of an only limit by an empty one. */
  readonly limits?: Readonly<Record<string, LimitNumbers>>
  readonly exempt?: true
  /** Left out: never. */
  readonly expiresInMs?: number
  /** Left out: not blocked; `null`: until it is unblocked. */
  readonly blockedMs?: number | null
  /** Names that change none of the key's limits now. */
  readonly unused?: readonly string[]
}

export interface LimitNumbers {
  readonly limit?: number
  readonly windowMs?: number
  readonly capacity?: number
  readonly refill?: number
}

/** Whether it changes or exempts limits: it may only block. */
export function hasRule({ limits, exempt }: Override): boolean {
  return limits !== undefined || exempt === true
}

/** What /v1/explain answers, with charges. Times are by the clock of the store; `null` is for ever. */
export interface Explanation {
  readonly atMs: number
  readonly allowed: boolean
  readonly cost: number
  readonly deniedBy: readonly string[]
  readonly retryAfterMs: number | null
  /** 0: not blocked; `null`: until it is unblocked. */
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
  /** Only of kinds that keep the times of charges. */
  readonly charges?: readonly Charge[]
  readonly olderUnits?: number
  readonly declared?: DeclaredLimit
}

export interface Charge {
  readonly atMs: number
  readonly units: number
}

interface ExplainedBan {
  readonly level: number
  readonly denials: number
}

/** Whose page it is. */
export interface OneKey {
  readonly limiter: string
  readonly key: string
  /** Of limiters with dimensions. */
  readonly dimension: string | undefined
}

/** The key as the service is told it. */
export function keyOf({ key, dimension }: OneKey): string | Readonly<Record<string, string>> {
  return dimension === undefined ? key : { [dimension]: key }
}

/** The name that the configuration has for a limit: in decisions it begins with the dimension. */
export function declaredName({ dimension }: OneKey, { name }: ExplainedLimit): string {
  return dimension === undefined ? name : name.slice(dimension.length + 1)
}
