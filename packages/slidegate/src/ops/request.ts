// Types that several operations share, and functions for the outcomes of requests.

import type { Source } from '../decision.ts'
import type { BanState, Charged } from '../limits/limit.ts'
import { entriesOf, type LimitSet, type Log } from '../limits/limit-set.ts'
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
  /** Of the request, or the value that it brings, as stored; where a log keeps entries. */
  readonly requestId?: string | undefined
  /** Whether the id was chosen by the caller, who may ask again with it, perhaps because an answer was lost. */
  readonly mayRepeat?: boolean | undefined
}

/** An op that decides requests, or would. */
export interface RequestOp extends AnyOp, Named {
  readonly cost: number
  /** Requests to be decided. */
  readonly count: number
}

/** Whether what an op takes of a log may be other than its cost, so that its outcome says it. */
export function takesOnce(log: Log, { mayRepeat }: Named): boolean {
  if (!log.shadow || mayRepeat !== true) return false
  const are = entriesOf(log)
  return are === 'request' || are === 'holder'
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
  /** For so many milliseconds a key is blocked, the most over all parts; `Infinity` for ever. */
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
   * Three numbers per limit, over the limits of all parts in order: the units used within its window before
   * this op; the milliseconds until it has room for the cost once more after it (0 where it has,
   * `Infinity` where it never will); the milliseconds until its window is empty after it.
   */
  readonly limits: readonly number[]
  /** The request was admitted before, at `atMs`, and charged so many units; nothing was charged now. */
  readonly repeats?: number
  /** With the source `failClosed`: for how many milliseconds the refusal is expected to last. Else 0. */
  readonly waitMs: number
  /** If a key is blocked. */
  readonly ban?: Ban | undefined
  /**
   * Per part, what it was charged. Only if parts were decided apart, so that `atMs` is the latest of them and `source` the
   * one that knows least, or if some limit takes other units than the cost.
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

/** The charges of one decision, by the units per limit over all parts. */
export function debitsOf(
  parts: readonly Part[],
  { source, atMs }: ConsumeOutcome,
  costs: readonly number[],
): readonly Debit[] {
  let first = 0
  return parts.map(({ set }) => {
    const end = first + set.limits.length
    const debit = { source, atMs, costs: costs.slice(first, end) }
    first = end
    return debit
  })
}

/** A decision, and more about each limit. */
export interface ExplainOutcome extends ConsumeOutcome {
  /**
   * Per limit, in how many milliseconds one unit of what is used is free again, then one tenth of it (rounded up), two, and
   * so on to all of it; none where nothing is used.
   */
  readonly frees: readonly (readonly number[])[]
  /** Per part, where it has a log of bans. */
  readonly bans: readonly (BanState | undefined)[]
  /** If requested: charges per limit, oldest first, for kinds that know them. */
  readonly charges?: readonly (readonly Charged[] | undefined)[]
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
  /** Milliseconds for which the key is blocked, `FOREVER` for never to end; 0 to let it go. */
  readonly blockMs?: number | undefined
  /** Per part, the key as it was given, `''` if that is how it is stored. Left out if all are. */
  readonly given?: readonly string[] | undefined
}
