// THE contract of a store: apply(ops, call).
//
// There is one door, so a new operation needs no second one. A store calls back instead of returning a promise: in a full batch promises
// are most of what a decision costs, and a call knows whether it was settled, so a batch can leave it out.

import type { Spelling } from '../key.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import type { ConsumeOutcome } from '../ops/request.ts'
import type { Op, Outcome } from '../ops/table.ts'

export type { ChargeOp } from '../ops/charge.ts'
export type { ConsumeOp } from '../ops/consume.ts'
export type { ExplainOp } from '../ops/explain.ts'
export type { HoldOp, HoldOutcome } from '../ops/hold.ts'
export type { ListOp, ListOutcome } from '../ops/list.ts'
export type { OverrideOp, OverrideOutcome } from '../ops/override.ts'
export type { PeekOp } from '../ops/peek.ts'
export type { RefundOp, RefundOutcome } from '../ops/refund.ts'
export * from '../ops/request.ts'
export type { SettleOp, SettleOutcome } from '../ops/settle.ts'
export type { Op, Outcome } from '../ops/table.ts'

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
