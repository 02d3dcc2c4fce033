// The contract of a kind of limit: `check` and `commit` on a log. For an example, read token-bucket.ts and token-bucket.lua.

/** Numbers that replace a limit's declared numbers. */
export interface LimitNumbers {
  /** Units per window, for all limits except token buckets. */
  readonly limit?: number
  /** Length of a sliding window in milliseconds. */
  readonly windowMs?: number
  /** Capacity of a token bucket, in tokens. */
  readonly capacity?: number
  /** Tokens refilled per interval of a token bucket. */
  readonly refill?: number
}

/** A limit that was created by {@link slidingWindow} or a similar function. */
export interface Limit {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  readonly precisionMs: number
  readonly shadow: boolean
  readonly kind: Kind
  /** Options that only this kind of limit has. */
  readonly rule?: unknown
}

/** Parameters of a log. Arrays have one value per limit that shares the log. */
export interface LogParams {
  /** Time is divided into grains of this many milliseconds. A charge's stamp is the start of its grain. */
  readonly precision: number
  /** The number of records that these limits can fill. */
  readonly records: number
  /** How long a charge counts, in milliseconds. */
  readonly windows: readonly number[]
  readonly limits: readonly number[]
}

/**
 * The entries that a log keeps. Ops with an id are never merged, leased or answered by the deny cache.
 *
 * - `record`: an admitted request, which can't be found by id.
 * - `request`: an admitted request, found by id. While the log holds an id that the caller chose (`mayRepeat`), an op with that id
 *   gets the first answer and isn't charged. A refund returns a whole entry, once.
 * - `holder`: a request in flight, found by id. It counts until one window after its last renewal. A release affects
 *   only logs of holders.
 * - `value`: a distinct value, which is the op's id and costs one unit. If the log already has it, `check` doesn't
 *   count it, and `commit` sets its time to now.
 */
export type Entries = 'record' | 'request' | 'holder' | 'value'

export interface Charge {
  readonly units: number
  /** Another process may spend the units within this many milliseconds. 0 if they are spent now. */
  readonly leaseMs: number
  /** The name of the charge's entry, or `''` if the log keeps no entries. */
  readonly entry: string
}

/** The units charged at one instant. */
export interface ListedCharge {
  /** The charge's stamp. For an entry, the stamp of its last renewal. */
  readonly atMs: number
  readonly units: number
}

export interface Entry extends ListedCharge {
  /** The stored id of the request, or the stored value: see `storedKey`. */
  readonly name: string
}

/**
 * A decision runs `check` on every log. If every enforced limit has room, it then runs `commit` on every log.
 *
 * Redis runs the .lua file of the same name instead. `nowMs` is never below {@link newest}.
 */
export interface Kind<State = unknown, Params extends LogParams = LogParams> {
  readonly tag: string
  /** Whether identical requests must be decided one by one. True if each may change the answer to the next. */
  readonly isOneByOne?: boolean
  /** Whether each limit has its own log. */
  readonly isUnshared?: boolean
  /** A log's name: `w1`, `f60000`. For a shadow limit, the limit's name is appended to it. */
  logName(limit: Limit): string
  params(limits: readonly Limit[]): Params
  /** The maximum `limit` in an override. Default: 2^40. */
  most?(limit: Limit): number
  /** Returns the limit with an override's numbers. `undefined` if it can't have them. Default: only `limit` can change. */
  renumber?(limit: Limit, numbers: LimitNumbers): Limit | undefined
  /** Returns one process's share of the limit. Default: `limit / processes` units, at least 1. */
  share?(limit: Limit, processes: number): Limit
  /** Returns the numbers passed to the kind's .lua file. `nowMs` is approximately when the op is applied. */
  words(params: Params, nowMs: number): readonly number[]
  /** Whether the result of `words` depends on the time. */
  readonly hasTimedWords?: boolean
  /** Converts the script's answer to the state before the op. Omitted if the answer has only used units and times. */
  read?(next: () => number, params: Params, nowMs: number): State
  createLogs(): Logs<State>
  /** The newest stamp. 0 for an empty log. */
  newest(state: State): number
  /** Makes all units count as if they had been charged at `nowMs`. Called after the clock was set back. */
  restamp(state: State, params: Params, nowMs: number): void
  /** Writes the units in each limit's window to `used`. Leaves out the entry with the id `entry`. Changes nothing else. */
  check(state: State, params: Params, nowMs: number, used: number[], entry?: string): void
  commit(state: State, params: Params, nowMs: number, charge: Charge): void
  /** Runs `check` and `commit`. Returns whether all limits had room, or `undefined` if the caller must run both instead. */
  admit?(state: State, params: Params, nowMs: number, cost: number, used: number[]): boolean | undefined
  /** Milliseconds until limit `i` has room for `cost`; `Infinity` if it never will. Called only if there is no room. */
  retryAfter(state: State, params: Params, i: number, nowMs: number, cost: number): number
  /** Milliseconds until limit `i` is unused. */
  resetAfter(state: State, params: Params, i: number, nowMs: number): number
  /** Removes up to `units` of the charge made at `atMs`. Returns how many of them the log still held. */
  refund(state: State, params: Params, nowMs: number, atMs: number, units: number, entry: string): number
  /** The time from which nothing in the log counts, by the store's clock. */
  expiresAt(state: State, params: Params): number
  /** Up to `most` of the latest charges that limit `i` counts, oldest first. Omitted by kinds that don't store times. */
  charges?(state: State, params: Params, i: number, nowMs: number, most: number): readonly ListedCharge[]
  readonly entries?: EntryKeeping<State, Params>
  /** Set if the kind is a ban instead of a limit: see `Log.role`. */
  readonly ban?: BanKeeping<State, Params>
}

export interface BanState {
  /** Milliseconds until the ban ends; 0 if the key isn't banned. */
  readonly blockedMs: number
  /** When the ban began, in epoch milliseconds by the store's clock. Only set during a ban. */
  readonly sinceMs?: number
  /** The current number of bans in a row. */
  readonly level: number
  /** Denials that count toward the next ban. */
  readonly denials: number
}

interface BanKeeping<State, Params extends LogParams> {
  look(state: State, params: Params, nowMs: number): BanState
  /** Counts denied requests. Returns the milliseconds for which they block the key, or 0. */
  denied(state: State, params: Params, nowMs: number, count: number): number
  unblock(state: State): void
}

/** Access to a log's entries. Entries that no longer count are ignored. */
interface EntryKeeping<State, Params extends LogParams> {
  readonly are: Entries
  find(state: State, params: Params, nowMs: number, entry: string): Entry | undefined
  /** Sets the time of an entry with this many units to `nowMs`. Returns whether the entry still counted. */
  renew(state: State, params: Params, nowMs: number, entry: string, units: number): boolean
  list(state: State, params: Params, nowMs: number): readonly Entry[]
}

/** The logs of one kind in a memory store. */
export interface Logs<State = unknown> {
  readonly bytes: number
  /** Creates an empty log. Returns the log's number, starting at 1. */
  create(): number
  /** The log with this number. The object is valid until the next call. Number 0 is an empty log that is never written to. */
  at(log: number): State
  copy(log: number): number
  delete(log: number): void
}
