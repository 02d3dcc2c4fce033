// The limiter's public interface: its options and methods.
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

/** Options that every limiter takes. */
export interface CommonOptions {
  /** Namespace for the keys and metrics: 1 to 64 characters, `A-Z a-z 0-9 . _ -`. Default: `default`. */
  readonly name?: string
  /** Where the state is stored. Default: a new memory store. */
  readonly store?: Store
  /**
   * Timeout for a store call in milliseconds, from 1 to 2^31 - 1. Default: 50.
   *
   * The first call also waits up to 2 s for the connection, before the timeout starts.
   */
  readonly timeoutMs?: number
  /**
   * How requests are decided if the store doesn't answer. Default: `throw`.
   * - `throw`: reject with a `StoreUnavailableError`
   * - `deny`, `allow`: fail closed or fail open
   * - `local`: this process decides, based on its share of the limits
   *
   * Applies only to requests. Other calls, such as `refund`, always reject. If requests time out only because their key
   * is flooded, they are denied, even with `allow`.
   */
  readonly onStoreError?: OnStoreError
  /**
   * How many processes share the limits, from 1 to 2^20. Default: 1.
   *
   * With `onStoreError: 'local'`, each process allows `limit / instances` units, rounded down, but at least 1.
   */
  readonly instances?: number
  /** When the circuit breaker opens. */
  readonly breaker?: BreakerOptions
  /** Receives a line when the store goes down or comes back. `false` turns logging off. Default: `console`. */
  readonly logger?: Logger | false
  /** `false` turns off process warnings about likely mistakes. Each is emitted once. Default: true. */
  readonly warnings?: boolean
  /** Enables {@link Limiter.overrides} and `block`. Each decision also reads the key's override. Default: false. */
  readonly overrides?: boolean
  /** Maximum number of waiting requests, 1 to 2^20. One key can have up to nine tenths of these. Default: 10,000. */
  readonly maxWaiting?: number
  /** How long a reservation stays open, from 10 ms to 366 days. See {@link Limiter.reserve}. Default: 1 hour. */
  readonly reservationTtl?: Duration
  /**
   * A secret that hides keys, ids and values in the store. At least 16 bytes.
   *
   * Each is stored as 132 bits of its HMAC-SHA-256. By default, short printable text is stored unchanged. With a secret,
   * readers of the store can't see the keys, and callers can't choose a key that is in a particular hash slot of a Redis
   * Cluster. Use the same secret in all processes: a new one resets every count.
   */
  readonly hashKeys?: string | Uint8Array
}

/** Options for a limiter with one key per request. */
export interface LimiterOptions extends CommonOptions {
  /**
   * The limits for each key (1 to 64), or a function that returns them.
   *
   * The function gets the key and the caller's `request`, and must be synchronous. Return the same array instance for the same
   * limits, and never modify an array that you returned.
   *
   * If only numbers change (`limit`, a sliding window's `window`, a token bucket's capacity and refill), a key keeps its usage. A
   * limit of a different kind or precision starts at zero.
   */
  readonly limits: LimitsOption
  /** Blocks a key that is denied too often. Default: never. */
  readonly ban?: BanOptions
  readonly dimensions?: never
}

/** Options for a limiter with several keys per request. If one key has no room, none is charged. */
export interface DimensionOptions<Dimension extends string> extends CommonOptions {
  /**
   * The limits for up to 16 dimensions, such as `{ user: [...], ip: [...] }`.
   *
   * Names are 1 to 64 characters from `A-Z a-z 0-9 _ -`. In decisions, limit names start with the dimension: `user.100-per-1m`.
   */
  readonly dimensions: Readonly<Record<Dimension, LimitsOption>>
  /** Bans by dimension. A dimension's ban counts only denials by its own limits, and blocks only its own key. */
  readonly ban?: Readonly<Partial<Record<Dimension, BanOptions>>>
  readonly limits?: never
}

/** Options for a request. */
export interface ConsumeOptions extends RequestNames, KeyOptions {
  /** Units that the request costs, a positive integer. Default: 1. */
  readonly cost?: number
}

/** Options for `explain`. `cost` is the cost of the request to explain. */
export interface ExplainOptions extends Pick<ConsumeOptions, 'cost' | 'request'> {
  /** Also lists the charges in the window, for charts. Reads about 500 records. Default: false. */
  readonly charges?: boolean
}

/** The entries of one limit. */
export interface LimitEntries {
  /** The limit's name. */
  readonly limit: string
  /** The entries that the limit currently counts, oldest first. */
  readonly entries: readonly Entry[]
}

/**
 * Checks keys against limits.
 *
 * A denial isn't an error; see {@link Decision}. Methods reject with a {@link SlidegateError} for invalid input,
 * and with a `StoreUnavailableError` if the store doesn't answer.
 *
 * A key is a string. With `dimensions`, it is an object that has a key or `null` per dimension.
 */
export interface Limiter<Key extends AnyKey = string> {
  readonly name: string
  /** The limits for every key. Empty if a function returns them. */
  readonly limits: readonly Limit[]
  /** Charges the request to all limits if all have room, otherwise to none. */
  consume(key: Key, options?: ConsumeOptions): Promise<Decision>
  /** Like `consume`, but synchronous. Throws `sync_unsupported` if the store isn't in this process. */
  consumeSync(key: Key, options?: ConsumeOptions): Decision
  /**
   * Consumes up to 10,000 requests in one batch.
   *
   * Each request is decided individually. Requests for the same key are decided in order. All requests are
   * validated before any is sent. If a request fails, the call rejects after all requests are settled, and the other
   * requests' charges are refunded. Requests with a `requestId` aren't refunded, because you can repeat them.
   */
  consumeMany(requests: readonly BulkRequest<Key>[]): Promise<readonly Decision[]>
  /** Returns what `consume` would return, but `remaining` and `resetAfterMs` don't include the charge. Writes nothing. */
  peek(key: Key, options?: ConsumeOptions): Promise<Decision>
  /**
   * Waits until the request is admitted, and resolves to the decision.
   *
   * Each process has a queue per key, ordered by `priority` and arrival. A cheaper request never overtakes a more
   * expensive one. The queue sends its next request when the store expects to have room for it, or after 5 s
   * at the latest. If another process is faster, the queue sends earlier next time, so that all processes get their turn.
   * Calls to `consume` bypass the queue.
   *
   * Rejects with a `WaitError` and charges nothing:
   * - `full`: too many requests are waiting
   * - `timeout`: the wait would be too long
   * - `impossible`: the cost exceeds a limit
   * - `aborted`: `signal` was aborted
   */
  wait(key: Key, options?: WaitOptions): Promise<Decision>
  /** Waits, then runs the task while holding a slot of each `concurrency` limit. Resolves to the task's result. */
  schedule<T>(key: Key, task: (decision: Decision) => T | PromiseLike<T>, options?: WaitOptions): Promise<T>
  /** Returns how many requests are waiting in this process, and an estimate of the wait. */
  waiting(key?: Key): WaitingState
  /**
   * Charges an estimate, to be settled when you know the actual cost.
   *
   * Use it for the tokens of a language model or the bytes of a response. An estimate that is never settled stays charged. Any
   * process with the same `reservationTtl` can settle it. A reservation can't be refunded. Not available for limits that store
   * each request separately.
   */
  reserve(key: Key, estimate: number, options?: KeyOptions): Promise<Reservation>
  /** Settles a reservation made by any process. See {@link Reservation.settle}. */
  settle(token: string, actual: number, options?: KeyOptions): Promise<Settlement>
  /** The same as `settle(token, 0)`. */
  cancel(token: string, options?: KeyOptions): Promise<Settlement>
  /**
   * Charges units after the fact, even beyond the limits.
   *
   * Charges every limit, including shadow limits.
   *
   * @param units a positive integer; at most 2^46 are counted
   */
  charge(key: Key, units: number, options?: Pick<ConsumeOptions, 'value' | 'request'>): Promise<void>
  /** Charges a request and holds a slot of each `concurrency` limit. Other limits are only charged. */
  acquire(key: Key, options?: Pick<ConsumeOptions, 'cost' | 'request'>): Promise<Permit>
  /**
   * Releases a request's slot, given its `requestId` and `cost`.
   *
   * The request may have been consumed in another process. Resolves to whether the slot was still held. A {@link Permit} has its
   * own `release`.
   */
  release(key: Key, requestId: string, options?: Pick<ConsumeOptions, 'cost' | 'request'>): Promise<boolean>
  /** Renews a request's slot. Takes the same arguments as `release`. Resolves to whether the slot was still held. */
  extend(key: Key, requestId: string, options?: Pick<ConsumeOptions, 'cost' | 'request'>): Promise<boolean>
  /**
   * Lists the requests, holders or values that currently count.
   *
   * Only for limits that store them separately: sliding windows with `log: 'zset'` or `'stream'`, `concurrency` and `distinct`.
   */
  list(key: Partial<Key>, options?: KeyOptions): Promise<readonly LimitEntries[]>
  /** Explains a key's state and how a request would be decided. Writes nothing. */
  explain(key: Partial<Key>, options?: ExplainOptions): Promise<Explanation>
  /**
   * Refunds units of an admitted request, each unit at most once.
   *
   * Resolves to the number of units refunded, the minimum over all enforced limits. Units that have already left the
   * window aren't refunded. After a `StoreUnavailableError`, it is unknown whether units were refunded. A retry only
   * has an effect if the first refund was never sent.
   *
   * Rejects with `invalid_refund` if the decision was a denial or a peek, if it belongs to another limiter or
   * key, or if you refund more units than were charged. Limits that store each request separately can only
   * refund whole requests.
   */
  refund(key: Key, decision: Decision, units?: number): Promise<number>
  /** Deletes the key's usage, bans and reservations. Keeps its override and block. */
  reset(key: Partial<Key>, options?: KeyOptions): Promise<void>
  /**
   * Denies all of the key's requests for this long, from 10 ms to 366 days.
   *
   * Needs `overrides: true`. The block is stored in the key's override and doesn't change the limits in it.
   */
  block(key: Partial<Key>, duration: Duration): Promise<void>
  /** Ends the key's block and ban, and forgets its denials and earlier bans. */
  unblock(key: Partial<Key>): Promise<void>
  /** Whether the key is blocked or banned. With `dimensions`: whether any of the keys is. */
  isBlocked(key: Partial<Key>): Promise<boolean>
  /** Changes the limits for individual keys, exempts keys, or blocks them. Throws `invalid_option` without `overrides: true`. */
  readonly overrides: Overrides<Partial<Key>>
  /** Adds a listener, called synchronously. Its first error is logged. */
  on<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, Key>): this
  /** Removes a listener. */
  off<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, Key>): this
  /** Returns statistics since the limiter was created. They don't contain keys. */
  stats(): LimiterStats
  /** Stops timers and renewals, and rejects waiters and later calls with `closed`. Never closes the store or its client. */
  close(): void
}

/** A request for `consumeMany`. */
export interface BulkRequest<Key extends AnyKey = string> extends ConsumeOptions {
  readonly key: Key
}
