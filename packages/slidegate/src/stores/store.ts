import type { Source } from '../decision.ts'
import type { Spelling } from '../key.ts'
import type { BanState, Charged, Entry } from '../limits/limit.ts'
import type { LimitSet, Log } from '../limits/limit-set.ts'
import { FOREVER, type InForce, type Rule, setInForce } from '../limits/override.ts'

/** A key and the limits that it is held to. */
export interface Part {
  /** As stored: see `storedKey`. */
  readonly key: string
  readonly set: LimitSet
}

/** By what an op is known in logs that keep entries. An op that has a name is one of its own: it never joins others. */
export interface Named {
  /** Of the request, or the value that it brings, as stored; where a log keeps entries. */
  readonly requestId?: string | undefined
  /** Whether the id was chosen by the caller, who may ask again with it, perhaps because an answer was lost. */
  readonly mayRepeat?: boolean | undefined
}

/** Whether what an op takes of a log may be other than its cost, so that its outcome says it. */
export function takesOnce({ kind, shadow, role }: Log, { mayRepeat }: Named): boolean {
  const are = role === 'count' ? kind.entries?.are : undefined
  return shadow && mayRepeat === true && (are === 'request' || are === 'holder')
}

/**
 * Decide `count` requests of `cost` units, the first to ask first; each is charged if no part is blocked, and all enforced
 * limits of all parts have room.
 */
export interface ConsumeOp extends Named {
  readonly type: 'consume'
  readonly parts: readonly Part[]
  readonly cost: number
  readonly count: number
  /** For so long the units may be spent by the process that took them; 0 where they are spent at once. */
  readonly leaseMs: number
  /** Whether the caller waits: then its denials don't count towards bans. */
  readonly isWaiting?: boolean | undefined
  /** The name under which it may be settled once. Needs logs for reservations. */
  readonly reservation?: string | undefined
}

/**
 * The ban of an outcome whose parts were blocked before the op.
 *
 * @param banned milliseconds per part, 0 for parts that are not blocked
 */
export function banOf(banned: readonly number[], overrides: ConsumeOutcome['overrides']): Ban | undefined {
  const blocked = banned.map((ms, part) => Math.max(ms, overrides?.[part]?.blockedMs ?? 0))
  const parts = blocked.flatMap((ms, part) => (ms > 0 ? [part] : []))
  if (parts.length === 0) return undefined
  const ms = Math.max(...blocked)
  return { ms: ms === FOREVER ? Number.POSITIVE_INFINITY : ms, parts }
}

/** What `consume` would answer. Writes nothing. */
export interface PeekOp extends Named {
  readonly type: 'peek'
  readonly parts: readonly Part[]
  readonly cost: number
  readonly count: 1
}

/** Charge every log without asking. */
export interface ChargeOp extends Named {
  readonly type: 'charge'
  readonly parts: readonly Part[]
  readonly units: number
}

/** Take back units of a charge made at `atMs`. */
export interface RefundOp extends Named {
  readonly type: 'refund'
  readonly parts: readonly Part[]
  readonly units: number
  readonly atMs: number
  /** Per log, over all parts in order: whether it was charged then (a shadow limit without room was not). */
  readonly charged: readonly boolean[]
  /** Who has charged it, where that was not the store. */
  readonly source?: 'fallback'
  /** See {@link ConsumeOutcome.debits}: in place of `atMs` and `source`. */
  readonly debits?: readonly Debit[] | undefined
}

/** Lets what is held under this id count for as long again, or no longer. */
export interface HoldOp extends Named {
  readonly type: 'extend' | 'release'
  readonly parts: readonly Part[]
  readonly requestId: string
  readonly units: number
  readonly source?: 'fallback'
  /** See {@link ConsumeOutcome.debits}: in place of `source`. */
  readonly debits?: readonly Debit[] | undefined
}

/** What the logs keep one by one. Writes nothing. */
export interface ListOp {
  readonly type: 'list'
  readonly parts: readonly Part[]
}

/** Forget every log. */
export interface ResetOp {
  readonly type: 'reset'
  readonly parts: readonly Part[]
}

/** What was reserved turns out to be so many units: the rest is returned, or charged. Once, if at all. */
export interface SettleOp {
  readonly type: 'settle'
  readonly parts: readonly Part[]
  /** See {@link ConsumeOp.reservation}. */
  readonly reservation: string
  /** Units that were charged. */
  readonly units: number
  /** Units that it turned out to be, from 0. */
  readonly actual: number
  /** Per log, over all parts in order: whether it was charged then. */
  readonly charged: readonly boolean[]
  /** Per part, when it was charged: what was counted anew since, for the clock was set back, is not returned. */
  readonly instants: readonly number[]
}

/** Writes overrides. Fields left out stay. With `blockMs` 0 and no rule, bans of the keys are forgotten, too. */
export interface OverrideOp {
  readonly type: 'override'
  readonly parts: readonly Part[]
  /** `''` for none. */
  readonly rule?: Rule | undefined
  /** With a rule: milliseconds until it ends, `FOREVER` for never. */
  readonly ruleMs?: number | undefined
  /** Milliseconds for which the key is blocked, `FOREVER` for never to end; 0 to let it go. */
  readonly blockMs?: number | undefined
  /** Per part, the key as it was given, `''` if that is how it is stored. Left out if all are. */
  readonly given?: readonly string[] | undefined
}

/** A page of all overrides of a limiter, or of a dimension. Writes nothing. */
export interface OverridesOp {
  readonly type: 'overrides'
  /** One, of any key. */
  readonly parts: readonly Part[]
  /** Of which bucket of the store, from 0. */
  readonly bucket: number
  /** Where the page before it ended: its `next`; `''` for the first. */
  readonly after: string
}

/** What `consume` would answer, and more about each limit. Writes nothing. */
export interface ExplainOp extends Named {
  readonly type: 'explain'
  readonly parts: readonly Part[]
  readonly cost: number
  readonly count: 1
  /** Of each limit the latest of the charges that count are told, so many at most; left out: none. */
  readonly charges?: number | undefined
}

/** What is asked of a store, told apart by `type`. */
export type Op =
  | ConsumeOp
  | PeekOp
  | ChargeOp
  | RefundOp
  | HoldOp
  | ListOp
  | ResetOp
  | SettleOp
  | ExplainOp
  | OverrideOp
  | OverridesOp

/** Ops that ask what a request would be, or is, told. */
export type RequestOp = ConsumeOp | PeekOp | ExplainOp

/** What a part was charged. */
export interface Debit {
  /** Who has decided it. */
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

/** The outcome of a consume or peek op. */
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

/** The parts of an op by the numbers that were in force. */
export function partsInForce(
  parts: readonly Part[],
  overrides: readonly (InForce | undefined)[] | undefined,
): readonly Part[] {
  if (overrides === undefined) return parts
  return parts.map(({ key, set }, i) => ({ key, set: setInForce(set, overrides[i]?.rule ?? '') }))
}

/** What each part was charged by one decision, by the units per limit over all parts. */
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

/** The outcome of an explain op. */
export interface ExplainOutcome extends ConsumeOutcome {
  /**
   * Per limit, in how many milliseconds one unit of what is used is free again, then one tenth of it (rounded up), two, and
   * so on to all of it; none where nothing is used.
   */
  readonly frees: readonly (readonly number[])[]
  /** Per part, where it has a log of bans. */
  readonly bans: readonly (BanState | undefined)[]
  /** Where they are asked for: per limit, oldest first, of kinds that know them. */
  readonly charges?: readonly (readonly Charged[] | undefined)[]
}

/** The outcome of a settle op. */
export interface SettleOutcome {
  /** Whether it was still to be settled; else nothing was done. */
  readonly settled: boolean
  /** Per log, over all parts in order: the units returned. */
  readonly returned: readonly number[]
}

/** The outcome of a refund op. */
export interface RefundOutcome {
  /** Per log, over all parts in order: the units returned. */
  readonly returned: readonly number[]
}

/** The outcome of an op about what is held. */
export interface HoldOutcome {
  /** Whether all enforced logs that keep holders still counted it. */
  readonly held: boolean
}

/** The outcome of a list op. */
export interface ListOutcome {
  /** Per log, over all parts in order: its entries, oldest first; none in a log that keeps sums. */
  readonly lists: readonly (readonly Entry[])[]
}

/** The outcome of an override op. */
export interface OverrideOutcome {
  /** Whether anything was in force before. */
  readonly existed: boolean
}

/** An override, as a page of them has it. */
export interface ListedOverride extends InForce {
  /** As stored. */
  readonly key: string
  /** As it was given, if that is another. */
  readonly given?: string
}

/** The outcome of an overrides op. */
export interface OverridesOutcome {
  /** Those in force, in an order of the store's own. */
  readonly overrides: readonly ListedOverride[]
  /** Where the next page begins; left out with the last of the bucket. */
  readonly next?: string
  /** How many buckets the store has. */
  readonly buckets: number
}

/** What an op answers. Those that have nothing to say answer nothing. */
export type Outcome =
  | ConsumeOutcome
  | ExplainOutcome
  | RefundOutcome
  | HoldOutcome
  | ListOutcome
  | SettleOutcome
  | OverrideOutcome
  | OverridesOutcome
  | undefined

/** The connection of a store. */
export interface StoreConnection {
  /** Resolves when the first connection is over, after up to 2 s; `undefined` after that. Deadlines begin then. */
  whenStarted(): Promise<void> | undefined
  /** Why a request was not answered in time. */
  silence(): { readonly message: string; readonly cause?: Error | undefined }
}

/**
 * One who waits for the outcomes of ops. Whoever comes first settles it: the store, or a deadline. After that
 * nobody waits any more, and what has not been sent by then need not be. What is decided all the same is told, by
 * `resolve`, to a call that is settled already: it may have been charged.
 */
export interface Call {
  readonly isSettled: boolean
  /**
   * The outcomes of its ops, in their order.
   *
   * @param position which of the requests that were decided together this one was, from 0: a store may join
   * equal ops of several calls into one with a count
   */
  resolve(outcomes: readonly Outcome[], position: number): void
  /** Nothing is known of any op of the call. */
  reject(error: unknown): void
}

/**
 * Decides one request for a key as given, without an op.
 *
 * Returns nothing, and has charged nothing, if the request needs an op. The outcome is good until the next call.
 *
 * @throws {SlidegateError} `invalid_key`
 */
export type FastPath = (key: unknown, cost: number, spelling: Spelling) => ConsumeOutcome | undefined

/**
 * Where the state lives and whose clock counts. Stores know no kind of limit, kinds know no store; every
 * present and later need of a limiter is an op, so that there is one door.
 *
 * Outcomes stand in the order of the ops. A store that cannot decide rejects with `StoreUnavailableError`; no op of the call
 * has then been charged for certain, and none is certain not to have been.
 */
export interface Store {
  /** Calls back rather than answering with a promise: at full load, promises are what a decision costs. */
  apply(ops: readonly Op[], call: Call): void
  /** Only where the state is in this process. What it answers is good until its next call. */
  applySync?(ops: readonly Op[]): readonly Outcome[]
  /**
   * Returns the fast path for these limits, if there is one. Only stores in this process have any.
   *
   * @internal
   */
  fastPath?(set: LimitSet): FastPath | undefined
  /**
   * Where the op's keys live, as a number: what lives elsewhere may be down on its own. Left out where all share one
   * fate.
   */
  domainOf?(op: Op): number
  /**
   * Whether, at some time since then, so much was asked for the op's keys that it waited for itself, while the store was
   * answering: what was not answered in time then says nothing of the store. Left out where nothing waits.
   *
   * @param sinceMs by `performance.now()`
   */
  isCrowded?(op: Op, sinceMs: number): boolean
  /** Left out by stores in this process. */
  readonly connection?: StoreConnection | undefined
  /** Ends what the store started, never what it was given; a promise where that takes time. */
  close(): void | Promise<void>
}
