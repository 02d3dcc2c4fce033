// The contract that every store implements: apply(ops, call).
//
// Stores call back instead of returning promises, which would make up most of the cost of a decision in a full batch.

import type { FailureReports } from '../events.ts'
import type { KeyEncoding } from '../key.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import type { ConsumeOutcome } from '../ops/request.ts'
import type { Op, Outcome } from '../ops/table.ts'

export type * from '../ops/all.ts'
export * from '../ops/request.ts'
export type { Op, Outcome } from '../ops/table.ts'

/** A store's connection to its server. */
export interface StoreConnection {
  /** Resolves when the first connection is open or has failed, within 2 s. Deadlines start then. `undefined` afterwards. */
  whenStarted(): Promise<void> | undefined
  /** Returns the reason why a request wasn't answered in time. */
  diagnose(): { readonly message: string; readonly cause?: Error | undefined }
}

/**
 * Receives the outcomes of ops.
 *
 * The store or a deadline settles the call, whichever comes first. After a deadline, the store can drop ops that it
 * hasn't sent. If it has sent them, it still calls `resolve` with their outcomes, so that late charges can be refunded.
 */
export interface Call {
  readonly isSettled: boolean
  /**
   * Receives the outcomes of the call's ops, in order.
   *
   * @param position index of this request among the identical requests that the store merged into one op, starting at 0
   */
  resolve(outcomes: readonly Outcome[], position: number): void
  /** Reports a failure. The ops may or may not have been decided. */
  reject(error: unknown): void
}

/**
 * The result of a request if the store doesn't answer:
 * - `throw`: a `StoreUnavailableError`
 * - `deny`: a denial, with the source `failClosed`
 * - `allow`: allowed without being counted, with the source `failOpen`
 * - `local`: a decision by this process, within an equal share of the limits, with the source `fallback`
 *
 * With any option except `throw`, a request is denied if it times out only because its key gets too many requests.
 */
export type OnStoreError = 'throw' | 'deny' | 'allow' | 'local'

/** When the circuit breaker opens, and when it tries again. */
export interface BreakerOptions {
  /** The breaker opens at this share of unanswered requests, above 0 and up to 1. Default: 0.5. */
  readonly failureRate?: number
  /** The minimum number of requests before the breaker can open, from 1 to 2^20. Default: 5. */
  readonly minRequests?: number
  /**
   * Maximum pause between attempts in milliseconds, from 10 to 60,000. Default: 500.
   *
   * The first pause is 100 ms, and each further pause is twice as long. All are randomized.
   */
  readonly maxBackoffMs?: number
}

/** How a limiter handles failures of its store. All options have been checked, and omitted ones have defaults. */
export interface FailureSettings {
  readonly timeoutMs: number
  readonly onStoreError: OnStoreError
  /** `undefined` if the option isn't set. */
  readonly instances: number | undefined
  readonly breaker: Required<BreakerOptions>
  /** Whether likely mistakes cause process warnings. */
  readonly warnings: boolean
  /** The limiter's name. */
  readonly limiter: string
  /** The limiter's limits by dimension, except limits that a function returns. */
  readonly sets: readonly LimitSet[]
}

/** Wraps a store so that each call is answered in time. */
export type FailurePolicy = (store: Store, settings: FailureSettings, reports: FailureReports) => Store

/**
 * Decides on a request. The key is as the caller passed it, not yet checked or encoded.
 *
 * Returns `undefined` and charges nothing if the request needs an op. The outcome is valid until the next call.
 *
 * @throws {SlidegateError} `invalid_key`
 */
export type FastPath = (key: unknown, cost: number, encoding: KeyEncoding) => ConsumeOutcome | undefined

/**
 * Stores the state, and provides the time.
 *
 * Outcomes are in the order of the ops. A store that can't decide rejects the call with a `StoreUnavailableError`, but
 * may already have charged some of its ops.
 */
export interface Store {
  /** Applies ops, and calls back with their outcomes. */
  apply(ops: readonly Op[], call: Call): void
  /** Applies ops synchronously, if the state is in this process. The outcomes are valid until the next call. */
  applySync?(ops: readonly Op[]): readonly Outcome[]
  /** The fast path for these limits. @internal */
  fastPath?(set: LimitSet): FastPath | undefined
  /** Returns the index of the op's shard. Each shard, such as a server, can fail separately. Omitted if there is only one. */
  shardOf?(op: Op): number
  /**
   * Whether requests for the op's keys waited for each other while the store was answering.
   *
   * If so, a timeout isn't the store's fault. Omitted if requests never wait. `sinceMs` is a `performance.now()` time.
   */
  isOverloaded?(op: Op, sinceMs: number): boolean
  /** Answers calls that fail or hang. Use `failurePolicy` from `slidegate`. Required unless `applySync` is set. */
  readonly failurePolicy?: FailurePolicy | undefined
  /** Omitted if the store is in this process. */
  readonly connection?: StoreConnection | undefined
  /** Closes what the store opened, but never a client that you passed. */
  close(): void | Promise<void>
}
