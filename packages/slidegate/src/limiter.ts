import type { Decision } from './decision.ts'
import type { LimiterEvent, LimiterListener, Logger } from './events.ts'
import type { AnyKey, KeyOptions } from './key.ts'
import type { LimitsOf } from './limiter/dimensions.ts'
import type { Explanation } from './limiter/explanation.ts'
import type { RequestNames } from './limiter/names.ts'
import type { Overrides } from './limiter/overrides.ts'
import type { Permit } from './limiter/permit.ts'
import type { Reservation, Settlement } from './limiter/reservation.ts'
import type { WaitOptions } from './limiter/waiting/wait-options.ts'
import type { WaitingState } from './limiter/waiting/waiting.ts'
import type { BanOptions } from './limits/ban.ts'
import type { Entry, Limit } from './limits/limit.ts'
import type { OnStoreError } from './resilience/answers.ts'
import type { BreakerOptions } from './resilience/breaker.ts'
import type { Duration } from './runtime/duration.ts'
import type { LimiterStats } from './stats.ts'
import type { Store } from './stores/store.ts'

/** The options of every limiter. */
export interface CommonOptions {
  /** Namespace of the keys and label of the metrics: 1 to 64 of `A-Z a-z 0-9 . _ -`. Default: `default`. */
  readonly name?: string
  /** Where the state lives. Default: a memory store of its own. */
  readonly store?: Store
  /**
   * Milliseconds, from 1 to 2^31 - 1, after which a call to the store fails. They begin with the store's first connection,
   * which may take 2 s. Default: 50.
   */
  readonly timeoutMs?: number
  /**
   * What a request is told when the store gives no answer: `throw` a `StoreUnavailableError`, `deny`, `allow`, or `local`:
   * this process decides, by its share of the limits. All but requests fail in any case. A key for which so much was asked
   * that it waited for itself, while the store was answering, is denied rather than let pass. Default: `throw`.
   */
  readonly onStoreError?: OnStoreError
  /**
   * How many processes share the limits, from 1 to 2^20: with `onStoreError: 'local'` each holds callers to `limit /
   * instances` units, rounded down, 1 at least. Default: 1.
   */
  readonly instances?: number
  /** When a store that fails is no longer asked for a moment. */
  readonly breaker?: BreakerOptions
  /** Where a line is written when the store goes down or comes back; `false` for nowhere. Default: `console`. */
  readonly logger?: Logger | false
  /**
   * Whether keys can have {@link Limiter.overrides} and be blocked. Default: false.
   *
   * If true, each decision reads the override of its key.
   */
  readonly overrides?: boolean
  /**
   * Requests that may wait at a time, of all keys, from 1 to 2^20; of one key nine tenths of it, so that there is room for
   * others: see {@link Limiter.wait}. Default: 10,000.
   */
  readonly maxWaiting?: number
  /** For how long a reservation can be settled, from 10 ms to 366 days: see {@link Limiter.reserve}. Default: 1 hour. */
  readonly reservationTtl?: Duration
  /**
   * A secret of 16 bytes or more, the same in all processes: keys, ids of requests and values are stored as 132 bits of
   * their HMAC-SHA-256, so that nobody who reads the store can tell whom it is about, and no caller can choose where in a
   * Cluster he is counted. With another secret every count begins anew. Default: they are stored as they are where that
   * is short and printable.
   */
  readonly hashKeys?: string | Uint8Array
}

/** What a limiter counts, where, and what happens while its store cannot answer. */
export interface LimiterOptions extends CommonOptions {
  /**
   * What each key is held to, all of it: 1 to 64 limits. Or a function that tells it, by the plan of a tenant for
   * instance: from the key, and from what was handed in as `request`. It should tell the same array for the same
   * limits, never one that was changed in place, and must not wait for anything. What a key has used counts on when
   * only the numbers of its limits change: `limit`, the window of a sliding window, the capacity and the refill of a
   * bucket. A limit of another kind or precision begins with an empty log.
   */
  readonly limits: LimitsOf
  /** Blocks a key that is denied too often. Default: never. */
  readonly ban?: BanOptions
  readonly dimensions?: never
}

/** The options of a limiter that counts several keys of each request: all of them have room, or none is charged. */
export interface DimensionOptions<Dimension extends string> extends CommonOptions {
  /**
   * The limits of each key of a request, by what it tells: `{ user: [...], ip: [...] }`, up to 16. Names are 1 to 64 of
   * `A-Z a-z 0-9 _ -`. In decisions a limit is called like `user.100-per-1m`.
   */
  readonly dimensions: Readonly<Record<Dimension, LimitsOf>>
  /** Denials by the limits of a dimension count towards a ban of its key, and of no other. */
  readonly ban?: Readonly<Partial<Record<Dimension, BanOptions>>>
  readonly limits?: never
}

/** What a request takes, and what is known of it. */
export interface ConsumeOptions extends RequestNames {
  /** Units that the request takes, an integer from 1. Default: 1. */
  readonly cost?: number
  /** Handed to functions that tell limits. */
  readonly request?: unknown
}

/** Of which request it is asked whether it would be admitted, and how much is to be told. */
export interface ExplainOptions extends Pick<ConsumeOptions, 'cost' | 'request'> {
  /** Whether the charges that count are told one by one: for pictures, at the price of some 500 records read. Default: false. */
  readonly charges?: boolean
}

/** What one limit keeps one by one. */
export interface LimitEntries {
  /** The limit's name. */
  readonly limit: string
  /** Those that count, oldest first. */
  readonly entries: readonly Entry[]
}

/**
 * Holds keys to limits. All methods reject with a {@link SlidegateError} for bad input, and with a
 * `StoreUnavailableError` where the store gave no answer; being denied is a value.
 *
 * A key is a string; with `dimensions` it is an object with a key of each, or `null` where a request has none.
 */
export interface Limiter<Key extends AnyKey = string> {
  readonly name: string
  /** Those that hold for every key: none that functions tell. */
  readonly limits: readonly Limit[]
  /** Charges the request to all limits if all have room, else to none. */
  consume(key: Key, options?: ConsumeOptions): Promise<Decision>
  /** The same at once; throws. Only on a store in this process, else `sync_unsupported`. */
  consumeSync(key: Key, options?: ConsumeOptions): Decision
  /**
   * Many requests, up to 10,000, each decided on its own, those of a key in their order; they travel together. All are
   * checked before any is sent. If the store fails for some, or one is refused as `reused_request_id`, it rejects as
   * `consume` does, once all are settled. The charges of the others are then returned, except those with a
   * `requestId`, which can be repeated.
   */
  consumeMany(requests: readonly BulkRequest<Key>[]): Promise<readonly Decision[]>
  /** What `consume` would answer; `remaining` and `resetAfterMs` are those before any charge. Writes nothing. */
  peek(key: Key, options?: ConsumeOptions): Promise<Decision>
  /**
   * Waits until the request is admitted, and resolves to the decision. First come, first served: of all that wait for a key
   * in this process, those of a higher `priority` first; whoever comes first is not overtaken by those who cost less.
   * Each process has its own queue, and asks when the store has said that there is room, or after 5 s. A process that went
   * without asks earlier next time, so all get their turn. `consume` passes those who wait.
   *
   * Rejects with a `WaitError`, and nothing is charged, when too many wait (`full`), when it would be too late (`late`),
   * when the cost is above a limit (`never`), or when `signal` is aborted (`aborted`).
   */
  wait(key: Key, options?: WaitOptions): Promise<Decision>
  /** Waits, and then calls the function; resolves to what it does. What a `concurrency` limit has given is held meanwhile. */
  schedule<T>(key: Key, task: (decision: Decision) => T | PromiseLike<T>, options?: WaitOptions): Promise<T>
  /** How many wait in this process, for a key or all in all, and for how long one more would have to, by estimate. */
  waiting(key?: Key): WaitingState
  /**
   * Charges an estimate that is settled when the cost is known: tokens of a language model, bytes of a response. What is
   * never settled stays charged. Its decision cannot be refunded: it is settled, in every process with the same
   * `reservationTtl`. Not for limits that keep requests one by one.
   */
  reserve(key: Key, estimate: number, options?: KeyOptions): Promise<Reservation>
  /** Settles what was reserved in this process or any other. See {@link Reservation.settle}. */
  settle(token: string, actual: number, options?: KeyOptions): Promise<Settlement>
  /** The same as `settle(token, 0)`. */
  cancel(token: string, options?: KeyOptions): Promise<Settlement>
  /**
   * Charges every limit of the key, shadow ones too, without asking: for what has already happened. May pass
   * the limits. `units` is an integer from 1, of which 2^46 are counted at most.
   */
  charge(key: Key, units: number, options?: Pick<ConsumeOptions, 'value' | 'request'>): Promise<void>
  /**
   * For limiters with a `concurrency` limit: `consume`, and what it takes of that limit is held until it is released,
   * renewed meanwhile. Other limits are charged as ever, and a release gives nothing of them back.
   */
  acquire(key: Key, options?: Pick<ConsumeOptions, 'cost' | 'request'>): Promise<Permit>
  /**
   * Frees what a request has taken of a `concurrency` limit, by the `requestId` that it was consumed with, in whatever
   * process; whether it was still held. `cost` is that of the request, 1 unless told. Whoever has a {@link Permit} releases
   * that.
   */
  release(key: Key, requestId: string, options?: Pick<ConsumeOptions, 'cost' | 'request'>): Promise<boolean>
  /** Renews it in the same way: it is held for as long again from now; whether it was still held. */
  extend(key: Key, requestId: string, options?: Pick<ConsumeOptions, 'cost' | 'request'>): Promise<boolean>
  /**
   * For audits: the requests, holders or values that count now, for each limit that keeps them one by one: sliding
   * windows with `log: 'zset'` or `'stream'`, `concurrency`, `distinct`.
   */
  list(key: Partial<Key>, options?: KeyOptions): Promise<readonly LimitEntries[]>
  /** All that is known of a key, and what a request of some cost would be told. Writes nothing. */
  explain(key: Partial<Key>, options?: ExplainOptions): Promise<Explanation>
  /**
   * Returns units of an admitted request, exactly and at most once. Resolves to how many were, the least over
   * the enforced limits: fewer than asked where a log no longer holds them.
   *
   * Where the store gave no answer, what may have been returned is not returned again.
   *
   * `invalid_refund` for a denied, peeked or foreign decision, another key, or more units than were charged; also for
   * less than the whole where a limit keeps requests one by one.
   */
  refund(key: Key, decision: Decision, units?: number): Promise<number>
  /** Forgets what the key has used, its bans and reservations. Keeps its override and block. */
  reset(key: Partial<Key>, options?: KeyOptions): Promise<void>
  /**
   * Denies all requests of the key for this long, from 10 ms to 366 days.
   *
   * The block is a part of the key's override; numbers in it stay. Needs `overrides: true`.
   */
  block(key: Partial<Key>, duration: Duration): Promise<void>
  /** Ends a block and a ban of the key, and forgets its denials and earlier bans. */
  unblock(key: Partial<Key>): Promise<void>
  /** Whether the key, or any of its dimensions, is blocked or banned. */
  isBlocked(key: Partial<Key>): Promise<boolean>
  /**
   * Sets other numbers, exemptions and blocks for single keys.
   *
   * They are in force at the next request in every process. Throws `invalid_option` without `overrides: true`.
   */
  readonly overrides: Overrides<Partial<Key>>
  /** Calls the listener at each such event, at once: it should be quick. What it throws is logged, once. */
  on<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, Key>): this
  /** Ends what `on` with this very listener has begun. */
  off<Event extends LimiterEvent>(event: Event, listener: LimiterListener<Event, Key>): this
  /** What has gone wrong since the limiter was made: numbers, never keys. */
  stats(): LimiterStats
  /**
   * Ends timers, so that permits are not renewed any more, and whoever waits is rejected; every later call is refused with
   * `closed`. Never closes the store or its client.
   */
  close(): void
}

/** One of several requests that are decided in one call. */
export interface BulkRequest<Key extends AnyKey = string> extends ConsumeOptions {
  readonly key: Key
}
