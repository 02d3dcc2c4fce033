// Types that several operations share, and functions for the outcomes of requests.

import type { Source } from '../decision.ts'
import type { BanState, ListedCharge } from '../limits/limit.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import { FOREVER, type InForce, type Rule, setInForce } from '../limits/override.ts'

/** A key and the limits that it is held to. */
export interface Part {
  /** As stored: see `storedKey`. */
  readonly key: string
  readonly set: LimitSet
}

/** The fields of every op. */
export interface AnyOp {
  readonly type: string
  readonly parts: readonly Part[]
}

/** By what an op is known in logs that keep entries. An op that has a name is one of its own: it never joins others. */
export interface Named {
  /** The stored id of the request, or its value, if a log keeps entries. */
  readonly requestId?: string | undefined
  /** Whether the caller chose the id, and may repeat the request with it. */
  readonly mayRepeat?: boolean | undefined
}

/** An op that decides requests, or would. */
export interface RequestOp extends AnyOp, Named {
  readonly cost: number
  /** Requests to be decided. */
  readonly count: number
}

/** The charge of a part. */
export interface Debit {
  /** The source of its decision. */
  readonly source: Source
  /** When, by the clock of where its key lives. */
  readonly atMs: number
  /** Units per limit of the part. Left out if each is the cost of the request. */
  readonly costs?: readonly number[] | undefined
}

export interface Ban {
  /** Milliseconds for which a key is blocked, the most over all parts; `Infinity` for ever. */
  readonly ms: number
  /** The parts that were blocked before the op, which deny every request. None if this op brought the ban about. */
  readonly parts: readonly number[]
}

/** The outcome of a request op. */
export interface ConsumeOutcome {
  readonly source: Source
  readonly atMs: number
  /** How many of `count` were admitted (for a peek: would be). */
  readonly admitted: number
  /**
   * Three numbers per limit, for the limits of all parts in order.
   *
   * - The units used within its window before this op.
   * - Milliseconds until it has room for the cost once more after this op. 0 if it has room, `Infinity` if it never will.
   * - Milliseconds until its window is empty after this op.
   */
  readonly limits: readonly number[]
  /** The units that a repeated request was charged at `atMs`. Nothing was charged now. */
  readonly repeats?: number
  /** With the source `failClosed`: for how many milliseconds the refusal is expected to last. Else 0. */
  readonly waitMs: number
  /** If a key is blocked. */
  readonly ban?: Ban | undefined
  /**
   * Per part, what it was charged. Only if some limit takes other units than the cost, or if parts were decided apart. Then
   * `atMs` is the latest of them, and `source` the one that knows least.
   */
  readonly debits?: readonly Debit[]
  /** Per part, what was in force of its override. Only if there was any. */
  readonly overrides?: readonly (InForce | undefined)[]
}

/** The overrides in force per part, if there are any. */
export type Overrides = ConsumeOutcome['overrides']

/**
 * The ban of an outcome whose parts were blocked before the op.
 *
 * @param banned milliseconds per part, 0 for parts that are not blocked
 */
export function banOf(banned: readonly number[], overrides: Overrides): Ban | undefined {
  const blocked = banned.map((ms, part) => Math.max(ms, overrides?.[part]?.blockedMs ?? 0))
  const parts = blocked.flatMap((ms, part) => (ms > 0 ? [part] : []))
  if (parts.length === 0) return undefined
  const ms = Math.max(...blocked)
  return { ms: ms === FOREVER ? Number.POSITIVE_INFINITY : ms, parts }
}

/** The parts of an op by the numbers that were in force. */
export function partsInForce(parts: readonly Part[], overrides: Overrides): readonly Part[] {
  if (overrides === undefined) return parts
  return parts.map(({ key, set }, i) => ({ key, set: setInForce(set, overrides[i]?.rule ?? '') }))
}

/** A decision, and more about each limit. */
export interface ExplainOutcome extends ConsumeOutcome {
  /**
   * Per limit, milliseconds until used units are free again. First one unit, then one tenth (rounded up), two tenths, and so on.
   * Empty if nothing is used.
   */
  readonly frees: readonly (readonly number[])[]
  /** Per part, where it has a log of bans. */
  readonly bans: readonly (BanState | undefined)[]
  /** If requested: charges per limit, oldest first, for kinds that know them. */
  readonly charges?: readonly (readonly ListedCharge[] | undefined)[]
}

/** An override, as a page of them has it. */
export interface ListedOverride extends InForce {
  /** As stored. */
  readonly key: string
  /** As it was given, if that is another. */
  readonly given?: string
}

/** A page of overrides. */
export interface OverridesOutcome {
  /** Those in force, in an order of the store's own. */
  readonly overrides: readonly ListedOverride[]
  /** Where the next page begins; left out with the last of the bucket. */
  readonly next?: string
  /** How many buckets the store has. */
  readonly buckets: number
}

/** A change of an override. Fields left out stay. With `blockMs` 0 and no rule, bans of the keys are forgotten, too. */
export interface OverrideChange {
  /** `''` for none. */
  readonly rule?: Rule | undefined
  /** With a rule: milliseconds until it ends, `FOREVER` for never. */
  readonly ruleMs?: number | undefined
  /** Milliseconds for which the key is blocked: `FOREVER` has no end, 0 unblocks. */
  readonly blockMs?: number | undefined
  /** Per part, the key as it was given; `''` if it is stored as given. Left out if all are. */
  readonly given?: readonly string[] | undefined
}
