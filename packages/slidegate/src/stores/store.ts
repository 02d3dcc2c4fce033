// THE contract of a store: apply(ops, call).
//
// All operations go through it. A store calls back instead of returning a promise, which would be most of the cost of a decision in a
// full batch. A call knows whether it was settled, so a batch can leave it out.

import type { FailureReports } from '../events.ts'
import type { KeyEncoding } from '../key.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import type { ConsumeOutcome } from '../ops/request.ts'
import type { Op, Outcome } from '../ops/table.ts'

export type * from '../ops/all.ts'
export * from '../ops/request.ts'
export type { Op, Outcome } from '../ops/table.ts'

/** The connection of a store. */
export interface StoreConnection {
  /** Resolves when the first connection is over, after up to 2 s; `undefined` after that. Deadlines begin then. */
  whenStarted(): Promise<void> | undefined
  /** Why a request wasn't answered in time. */
  diagnose(): { readonly message: string; readonly cause?: Error | undefined }
}

/**
 * Receives the outcomes of ops.
 *
 * The store or a deadline settles it, whichever is first. After that, ops that weren't sent need not be. If they were, the store
 * still resolves the call: they may have been charged.
 */
export interface Call {
  readonly isSettled: boolean
  /**
   * Takes the outcomes of its ops, in their order.
   *
   * @param position the place of this request among those that were decided together, from 0: a store may join equal ops of
   * several calls into one with a count
   */
  resolve(outcomes: readonly Outcome[], position: number): void
  /** The ops may have been decided, or not. */
  reject(error: unknown): void
}

/**
 * The answer to a request if the store gives none:
 * - `throw`: a `StoreUnavailableError`
 * - `deny`: it is denied, with the source `failClosed`
 * - `allow`: it is allowed, uncounted, with the source `failOpen`
 * - `local`: this process decides by an equal share of the limits, with the source `fallback`
 *
 * If a key had so many requests that they waited for each other while the store was answering, all but `throw` deny.
 */
export type OnStoreError = 'throw' | 'deny' | 'allow' | 'local'

/** When a failing store is no longer asked, and when it is asked again. */
export interface BreakerOptions {
  /** Opens at this share of requests without an answer, above 0 and up to 1. Default: 0.5. */
  readonly failureRate?: number
  /** Among at least this many requests, from 1 to 2^20. Default: 5. */
  readonly minRequests?: number
  /**
   * The longest pause between attempts in milliseconds, from 10 to 60,000. The first is 100, and each doubles. Pauses are
   * random, so that processes don't all ask at once. Default: 500.
   */
  readonly maxBackoffMs?: number
}

/** How a limiter wants failures of its store answered, checked and completed. */
export interface FailureSettings {
  readonly timeoutMs: number
  readonly onStoreError: OnStoreError
  /** `undefined` if the caller didn't say. */
  readonly instances: number | undefined
  readonly breaker: Required<BreakerOptions>
}

/** Returns the store with an answer in time for each call. */
export type FailurePolicy = (store: Store, settings: FailureSettings, reports: FailureReports) => Store

/**
 * Decides one request for a key as given, without an op.
 *
 * Returns nothing, and has charged nothing, if the request needs an op. The outcome is good until the next call.
 *
 * @throws {SlidegateError} `invalid_key`
 */
export type FastPath = (key: unknown, cost: number, encoding: KeyEncoding) => ConsumeOutcome | undefined

/**
 * Keeps the state, and has the clock that counts. Stores know no kind of limit, and kinds know no store.
 *
 * Outcomes are in the order of the ops. A store that can't decide rejects with `StoreUnavailableError`. Each op of the call may then
 * have been charged, or not.
 */
export interface Store {
  /** Calls back with the outcomes of ops. */
  apply(ops: readonly Op[], call: Call): void
  /** Only if the state is in this process. The outcomes are good until the next call. */
  applySync?(ops: readonly Op[]): readonly Outcome[]
  /**
   * Returns the fast path for these limits, if there is one. Only stores in this process have any.
   *
   * @internal
   */
  fastPath?(set: LimitSet): FastPath | undefined
  /** The number of the server that has the op's keys. Each may be down on its own. Left out if there is one. */
  shardOf?(op: Op): number
  /**
   * Whether requests for the op's keys had to wait for each other at some time since then, while the store was answering. A timeout
   * is then not the store's fault. Left out if nothing waits.
   *
   * @param sinceMs by `performance.now()`
   */
  isOverloaded?(op: Op, sinceMs: number): boolean
  /** How calls that fail or hang are answered: `failurePolicy` of `slidegate`. Needed unless there is `applySync`. */
  readonly failurePolicy?: FailurePolicy | undefined
  /** Left out by stores in this process. */
  readonly connection?: StoreConnection | undefined
  /** Closes what the store opened, never a client that it was given. */
  close(): void | Promise<void>
}
