// The limiter as its users see it: its options and methods.
import type { Decision } from './decision.ts'
import type { LimiterEvent, LimiterListener, LimiterStats, Logger } from './events.ts'
import type { AnyKey, KeyOptions } from './key.ts'
import type { LimitsOption } from './limiter/dimensions.ts'
import type { Explanation } from './limiter/explanation.ts'
import type { Overrides } from './limiter/overrides.ts'
import type { Permit } from './limiter/permit.ts'
import type { RequestNames } from './limiter/request.ts'
import type { Reservation, Settlement } from './limiter/reservation.ts'
import type { WaitingState } from './limiter/waiting/room.ts'
import type { WaitOptions } from './limiter/waiting/waiter.ts'
import type { BanOptions } from './limits/ban.ts'
import type { Entry, Limit } from './limits/limit.ts'
import type { Duration } from './runtime/duration.ts'
import type { BreakerOptions, OnStoreError, Store } from './stores/store.ts'

/** Options of every limiter. */
export interface CommonOptions {
  /** Namespace of the keys and label of the metrics: 1 to 64 of `A-Z a-z 0-9 . _ -`. Default: `default`. */
  readonly name?: string
  /** Where the state lives. Default: a memory store of its own. */
  readonly store?: Store
  /**
   * Timeout of a call to the store in milliseconds, from 1 to 2^31 - 1. Starts when the first connection is there, which may take
   * 2 s. Default: 50.
   */
  readonly timeoutMs?: number
  /**
   * The answer to a request if the store gives none: `throw` a `StoreUnavailableError`, `deny`, `allow`, or `local`, where this
   * process decides by its share of the limits. Default: `throw`.
   *
   * Other calls fail in any case. A key that is flooded while the store answers is denied, never allowed.
   */
  readonly onStoreError?: OnStoreError
  /**
   * How many processes share the limits, from 1 to 2^20. With `onStoreError: 'local'` each admits `limit / instances` units,
   * rounded down, at least 1. Default: 1.
   */
  readonly instances?: number
  /** When the circuit breaker opens. */
  readonly breaker?: BreakerOptions
  /** Logs a line when the store goes down or comes back. `false` logs nothing. Default: `console`. */
  readonly logger?: Logger | false
  /** Whether keys can have {@link Limiter.overrides} and be blocked. Each decision reads them then. Default: false. */
  readonly overrides?: boolean
  /** The most waiting requests, from 1 to 2^20; of one key nine tenths of it. See {@link Limiter.wait}. Default: 10,000. */
  readonly maxWaiting?: number
  /** For how long a reservation can be settled, from 10 ms to 366 days. See {@link Limiter.reserve}. Default: 1 hour. */
  readonly reservationTtl?: Duration
  /**
   * A secret of 16 bytes or more, the same in all processes. Keys, request ids and values are stored as 132 bits of their
   * HMAC-SHA-256. Default: stored as they are if they are short and printable.
   *
   * Readers of the store can't see the keys, and callers can't choose their place in a Cluster. A new secret resets every count.
   */
  readonly hashKeys?: string | Uint8Array
}

/** Options of a limiter with one key per request. */
export interface LimiterOptions extends CommonOptions {
  /**
   * The limits of each key, 1 to 64, or a function that returns them from the key and the caller's `request`.
   *
   * A function must be synchronous. It should return the same array instance for the same limits, never one that was changed.
   * If only numbers change (`limit`, the window of a sliding window, capacity and refill of a bucket), a key keeps its usage. A
   * limit of another kind or precision starts with an empty log.
   */
  readonly limits: LimitsOption
  /** Blocks a key that is denied too often. Default: never. */
  readonly ban?: BanOptions
  readonly dimensions?: never
}

/** Options of a limiter with several keys per request. All have room, or none is charged. */
export interface DimensionOptions<Dimension extends string> extends CommonOptions {
  /**
   * The limits by dimension: `{ user: [...], ip: [...] }`, up to 16. Names are 1 to 64 of `A-Z a-z 0-9 _ -`. Decisions name a
   * limit like `user.100-per-1m`.
   */
  readonly dimensions: Readonly<Record<Dimension, LimitsOption>>
  /** Bans by dimension. Denials by its limits count, and only its key is banned. */
  readonly ban?: Readonly<Partial<Record<Dimension, BanOptions>>>
  readonly limits?: never
}

/** Options of a request. */
export interface ConsumeOptions extends RequestNames {
  /** Units that the request takes, an integer from 1. Default: 1. */
  readonly cost?: number
  /** Passed to `limits` when it is a function. */
  readonly request?: unknown
}

/** Options of `explain`. `cost` is the cost of the request. */
export interface ExplainOptions extends Pick<ConsumeOptions, 'cost' | 'request'> {
  /** Whether to list the charges that count, for charts. Reads some 500 records. Default: false. */
  readonly charges?: boolean
}

/** The entries that one limit keeps. */
export interface LimitEntries {
  /** The limit's name. */
  readonly limit: string
  /** Those that count, oldest first. */
  readonly entries: readonly Entry[]
}

/**
 * Holds keys to limits. A denial is a value, see {@link Decision}. Methods reject with a {@link SlidegateError} for bad input,
 * and with a `StoreUnavailableError` if the store doesn't respond.
 *
 * A key is a string. With `dimensions` it is an object with a key of each, or `null` if a request has none.
 */
export interface Limiter<Key extends AnyKey = string> {
  readonly name: string
  /** The limits of every key. None if a function returns them. */
  readonly limits: readonly Limit[]
  /** Charges the request to all limits if all have room, else to none. */
  consume(key: Key, options?: ConsumeOptions): Promise<Decision>
  /** The same, synchronously. Throws. Throws `sync_unsupported` unless the store is in this process. */
  consumeSync(key: Key, options?: ConsumeOptions): Decision
  /**
   * Consumes up to 10,000 requests that travel together. Each is decided on its own, those of a key in their order.
   *
   * All are checked before any is sent. If one fails, it rejects once all are settled. The charges of the others are returned
   * then, unless they have a `requestId` and so can be repeated.
   */
  consumeMany(requests: readonly BulkRequest<Key>[]): Promise<readonly Decision[]>
  /** Returns what `consume` would, with `remaining` and `resetAfterMs` before the charge. Writes nothing. */
  peek(key: Key, options?: ConsumeOptions): Promise<Decision>
  /**
   * Waits until the request is admitted, and resolves to the decision.
   *
   * Each process has a queue per key, by `priority` and arrival. No waiter is overtaken by one of lower cost. A queue sends
   * its next request at the time that the store named, or after 5 s. A process that got no room sends earlier next time, so all
   * get their turn. `consume` doesn't queue.
   *
   * Rejects with a `WaitError`, and charges nothing, if too many wait (`full`), the wait would be too long (`timeout`), the cost is
   * above a limit (`impossible`), or `signal` is aborted (`aborted`).
   */
  wait(key: Key, options?: WaitOptions): Promise<Decision>
  /** Waits, then calls the function and resolves to its result. Holds the slot of a `concurrency` limit meanwhile. */
  schedule<T>(key: Key, task: (decision: Decision) => T | PromiseLike<T>, options?: WaitOptions): Promise<T>
  /** Returns how many requests wait in this process, for a key or in all, and an estimate of the wait. */
  waiting(key?: Key): WaitingState
  /**
   * Charges an estimate, to be settled when the cost is known: tokens of a language model, bytes of a response.
   *
   * It stays charged if it is never settled. It can be settled in every process with the same `reservationTtl`, but not refunded.
   * Not for limits that keep requests one by one.
   */
  reserve(key: Key, estimate: number, options?: KeyOptions): Promise<Reservation>
  /** Settles a reservation of any process. See {@link Reservation.settle}. */
  settle(token: string, actual: number, options?: KeyOptions): Promise<Settlement>
  /** The same as `settle(token, 0)`. */
  cancel(token: string, options?: KeyOptions): Promise<Settlement>
  /**
   * Charges every limit of the key, shadow limits too, for what has already happened. May exceed the limits.
   *
   * @param units an integer from 1, of which 2^46 are counted at most
   */
  charge(key: Key, units: number, options?: Pick<ConsumeOptions, 'value' | 'request'>): Promise<void>
  /** Consumes a request and holds its slots of `concurrency` limits until they are released. Other limits are charged only. */
  acquire(key: Key, options?: Pick<ConsumeOptions, 'cost' | 'request'>): Promise<Permit>
  /**
   * Releases the slot of a request, consumed in any process, by its `requestId` and `cost`. Resolves to whether it was still
   * held. A {@link Permit} has a method of its own.
   */
  release(key: Key, requestId: string, options?: Pick<ConsumeOptions, 'cost' | 'request'>): Promise<boolean>
  /** Renews the slot of a request in the same way. Resolves to whether it was still held. */
  extend(key: Key, requestId: string, options?: Pick<ConsumeOptions, 'cost' | 'request'>): Promise<boolean>
  /**
   * Lists the requests, holders or values that count now, of each limit that keeps them one by one: sliding windows with
   * `log: 'zset'` or `'stream'`, `concurrency`, `distinct`.
   */
  list(key: Partial<Key>, options?: KeyOptions): Promise<readonly LimitEntries[]>
  /** Explains the state of a key, and what a request would get. Writes nothing. */
  explain(key: Partial<Key>, options?: ExplainOptions): Promise<Explanation>
  /**
   * Returns units of an admitted request, at most once. Resolves to how many were returned, the least over the enforced limits:
   * fewer if a log no longer holds them. After a `StoreUnavailableError` they may have been returned, and aren't again.
   *
   * Rejects with `invalid_refund` for a denied, peeked or foreign decision, another key, or more units than were charged. Limits
   * that keep requests one by one return the whole only.
   */
  refund(key: Key, decision: Decision, units?: number): Promise<number>
  /** Forgets the usage, bans and reservations of the key. Keeps its override and block. */
  reset(key: Partial<Key>, options?: KeyOptions): Promise<void>
  /**
   * Denies all requests of the key for this long, from 10 ms to 366 days. Needs `overrides: true`.
   *
   * The block is a part of the key's override, and leaves its numbers.
   */
  block(key: Partial<Key>, duration: Duration): Promise<void>
  /** Ends the key's block and ban. Forgets its denials and earlier bans. */
  unblock(key: Partial<Key>): Promise<void>
  /** Whether the key, or any of its dimensions, is blocked or banned. */
  isBlocked(key: Partial<Key>): Promise<boolean>
  /** Sets other numbers, exemptions and blocks for single keys. Throws `invalid_option` without `overrides: true`. */
  readonly overrides: Overrides<Partial<Key>>
  /** Adds a listener, called synchronously. Its errors are logged, once. */
  on<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, Key>): this
  /** Removes a listener. */
  off<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, Key>): this
  /** Counts since the limiter was made: numbers, never keys. */
  stats(): LimiterStats
  /** Ends timers and renewals, and rejects waiters and later calls with `closed`. Never closes the store or its client. */
  close(): void
}

/** A request of `consumeMany`. */
export interface BulkRequest<Key extends AnyKey = string> extends ConsumeOptions {
  readonly key: Key
}
