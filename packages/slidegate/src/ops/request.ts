// Types that several operations share, and functions for the outcomes of requests.

import type { Source } from '../decision.ts'
import type { BanState, ListedCharge } from '../limits/limit.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import { FOREVER, type InForce, type Rule, setInForce } from '../limits/override.ts'

export interface Part {
  /** The stored key: see `storedKey`. */
  readonly key: string
  readonly set: LimitSet
}

export interface AnyOp {
  readonly type: string
  readonly parts: readonly Part[]
}

/** Identifies an op in logs that keep entries. Such an op is never merged with identical ops. */
export interface Named {
  /** The stored id of the request, or its value, if a log keeps entries. */
  readonly requestId?: string | undefined
  /** Whether the caller chose the id and may repeat the request with it. */
  readonly mayRepeat?: boolean | undefined
}

/** An op that decides requests, or previews a decision. */
export interface RequestOp extends AnyOp, Named {
  readonly cost: number
  /** Number of requests to decide. */
  readonly count: number
}

export interface Debit {
  readonly source: Source
  /** When the part was charged, by the clock of its key's server. */
  readonly atMs: number
  /** Units per limit of the part. Omitted if each limit is charged the request's cost. */
  readonly costs?: readonly number[] | undefined
}

export interface Ban {
  /** Milliseconds for which a key is blocked: the maximum over all parts. `Infinity` if the block never ends. */
  readonly ms: number
  /** The indices of the parts that were blocked before this op. Empty if the op caused the ban. */
  readonly parts: readonly number[]
}

export interface ConsumeOutcome {
  /** With `debits`, the least certain of their sources. */
  readonly source: Source
  /** With `debits`, the latest of their times. */
  readonly atMs: number
  /** How many of the op's `count` requests were admitted. For a peek: how many would be. */
  readonly admitted: number
  /**
   * Three numbers per limit, across all parts, in order:
   *
   * - the units used within the limit's window before this op
   * - milliseconds until the limit has room for the cost: 0 if it has room, `Infinity` if it never will
   * - milliseconds until the limit's window is empty
   */
  readonly limits: readonly number[]
  /** Set for a repeated request: the units charged at `atMs`. */
  readonly repeats?: number
  /** With the source `failClosed`: the expected milliseconds until requests are decided again. Otherwise 0. */
  readonly waitMs: number
  /** Set if a key is blocked. */
  readonly ban?: Ban | undefined
  /** The charge of each part. Set if a charge differs from the cost, or if parts were decided separately. */
  readonly debits?: readonly Debit[]
  /** For each part, the override in force. Omitted if no part has one. */
  readonly overrides?: readonly (InForce | undefined)[]
}

export type Overrides = ConsumeOutcome['overrides']

/** Returns the ban, if parts were blocked before the op. `banned` has the milliseconds left in each part's ban. */
export function banOf(banned: readonly number[], overrides: Overrides): Ban | undefined {
  const blocked = banned.map((ms, part) => Math.max(ms, overrides?.[part]?.blockedMs ?? 0))
  const parts = blocked.flatMap((ms, part) => (ms > 0 ? [part] : []))
  if (parts.length === 0) return undefined
  const ms = Math.max(...blocked)
  return { ms: ms === FOREVER ? Number.POSITIVE_INFINITY : ms, parts }
}

/** Returns the parts of an op with their limits changed by the overrides. */
export function partsInForce(parts: readonly Part[], overrides: Overrides): readonly Part[] {
  if (overrides === undefined) return parts
  return parts.map(({ key, set }, i) => ({ key, set: setInForce(set, overrides[i]?.rule ?? '') }))
}

export interface ExplainOutcome extends ConsumeOutcome {
  /** Milliseconds until used units are free. Per limit: for one unit, then for 10%, 20% and so on. Empty if none is used. */
  readonly frees: readonly (readonly number[])[]
  /** The state of each part's ban. `undefined` for parts without bans. */
  readonly bans: readonly (BanState | undefined)[]
  /** If requested: charges per limit, oldest first, for kinds that store them. */
  readonly charges?: readonly (readonly ListedCharge[] | undefined)[]
}

export interface ListedOverride extends InForce {
  /** The stored key. */
  readonly key: string
  /** The caller's key, if it differs from the stored key. */
  readonly given?: string
}

export interface OverridesOutcome {
  /** The overrides in force, in the store's own order. */
  readonly overrides: readonly ListedOverride[]
  /** Where the next page begins. Omitted on the last page of the bucket. */
  readonly next?: string
  /** The number of buckets into which the store divides its keys. */
  readonly buckets: number
}

/** A change to an override. Omitted fields stay unchanged. With `blockMs` 0 and no rule, the keys' bans are also deleted. */
export interface OverrideChange {
  /** The new rule. `''` removes the current one. */
  readonly rule?: Rule | undefined
  /** With a rule: milliseconds until it ends, or `FOREVER` if it never does. */
  readonly ruleMs?: number | undefined
  /** Milliseconds for which to block the key: `FOREVER` blocks indefinitely, and 0 unblocks. */
  readonly blockMs?: number | undefined
  /** Per part: the caller's key, or `''` if it is stored unchanged. Omitted if all keys are stored unchanged. */
  readonly given?: readonly string[] | undefined
}
