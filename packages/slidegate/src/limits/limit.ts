// THE contract of a kind of limit: `check` and `commit` over a log. Read token-bucket.ts and token-bucket.lua for an example.

/** Numbers that replace the declared ones of a limit. */
export interface LimitNumbers {
  /** The limit, except of token buckets. */
  readonly limit?: number
  /** Length of a sliding window in milliseconds. */
  readonly windowMs?: number
  /** Tokens that a token bucket holds. */
  readonly capacity?: number
  /** Tokens that come back per interval of a token bucket. */
  readonly refill?: number
}

/** A limit, checked and completed. Made by {@link slidingWindow} and the like. */
export interface Limit {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  readonly precisionMs: number
  readonly shadow: boolean
  readonly kind: Kind
  /** Options of its kind besides limit and window. */
  readonly rule?: unknown
}

/** What a log needs to know of the limits that share it. Arrays have one value per limit. Kinds extend it. */
export interface LogParams {
  /** Milliseconds in a grain. A stamp is the start of its grain. */
  readonly precision: number
  /** Records that these limits can fill. A log may have more. */
  readonly records: number
  /** How long a charge counts, in milliseconds. */
  readonly windows: readonly number[]
  /** Units admitted per window. */
  readonly limits: readonly number[]
}

/**
 * The kinds of entries that logs keep one by one. Ops with an id are never joined, leased, or answered by the deny cache.
 *
 * - `record`: an admitted request, in order.
 * - `request`: the same, found by the id of its op. While the log has an id that a caller chose (`mayRepeat`), an op with it gets
 *   the first answer and charges no log. A refund returns a whole entry. A missing entry was returned by another decision of the
 *   same request.
 * - `holder`: a request under way, found by its id. It counts from its last renewal. A release refunds only these logs.
 * - `value`: a distinct value, which is the id of its op and takes one unit. `check` doesn't count it as used, and `commit`
 *   moves it to now.
 */
export type Entries = 'record' | 'request' | 'holder' | 'value'

/** A charge to a log. */
export interface Charge {
  readonly units: number
  /** Milliseconds for which the units may be spent elsewhere; 0 if they are spent now. */
  readonly leaseMs: number
  /** The name of its entry, or '' if the log keeps no entries. */
  readonly entry: string
}

/** The units charged at one instant. */
export interface ListedCharge {
  /** The stamp: the start of its grain. For entries, that of the last renewal. */
  readonly atMs: number
  readonly units: number
}

/** An entry of a log. */
export interface Entry {
  /** The id of the request or the value, as stored: see `storedKey`. */
  readonly name: string
  readonly units: number
  /** When it was charged, or last renewed. */
  readonly atMs: number
}

/**
 * A kind of limit: two steps, `check` and `commit`, over its own state, a log.
 *
 * A decision runs `check` on every log. Only if every enforced limit has room does it run `commit` on every log. So a request is
 * charged to all of its limits or to none, and a denial is free. The memory store runs these functions, Redis their twins in the
 * .lua file of the same name.
 *
 * Stores make sure that `nowMs` is never below {@link newest}.
 */
export interface Kind<State = unknown, Params extends LogParams = LogParams> {
  /** Names the kind in the script. */
  readonly tag: string
  /**
   * Whether requests of a key are decided one by one. Set if the `resetAfter` of each depends on those before it. Else a
   * store may decide equal ones together.
   */
  readonly isOneByOne?: boolean
  /** Whether each of its limits has a log of its own. */
  readonly isUnshared?: boolean
  /** The part of a log's name that comes before any shadow limit's name: `w1`, `f60000`. */
  logName(limit: Limit): string
  /** What the log shared by these limits needs to know of them. */
  params(limits: readonly Limit[]): Params
  /** The largest limit that an override may set. Default: 2^40. */
  most?(limit: Limit): number
  /**
   * Returns the limit with the numbers of an override, or nothing if they aren't for this kind or don't fit. Default:
   * only `limit` changes.
   */
  renumber?(limit: Limit, numbers: LimitNumbers): Limit | undefined
  /** The limit of each process if this many decide alone. Default: `limit / processes` units, at least 1. */
  share?(limit: Limit, processes: number): Limit
  /** The numbers that the twin gets, for an op at about this time. */
  words(params: Params, nowMs: number): readonly number[]
  /** Whether the words change with time. */
  readonly hasTimedWords?: boolean
  /**
   * Reads the log before the op from the twin's answer. Left out if the twin answers units and times itself.
   *
   * @param next returns the next number of the answer
   */
  read?(next: () => number, params: Params, nowMs: number): State
  /** The logs of this kind in a memory store. */
  createLogs(): Logs<State>
  /** The stamp of the newest charge; 0 in an empty log. */
  newest(state: State): number
  /** Called after the clock was set back: all units count from `nowMs` on. */
  restamp(state: State, params: Params, nowMs: number): void
  /** Writes the units used within each limit's window into `used`, without those of the value `entry`. Changes nothing. */
  check(state: State, params: Params, nowMs: number, used: number[], entry?: string): void
  commit(state: State, params: Params, nowMs: number, charge: Charge): void
  /**
   * `check`, and if all limits have room, `commit` without a lease: for speed. Returns whether they had room, or nothing if this
   * log needs the two steps. Left out by kinds that gain nothing by it.
   */
  admit?(state: State, params: Params, nowMs: number, cost: number, used: number[]): boolean | undefined
  /** Milliseconds until limit `i` has room for `cost`; `Infinity` for a cost above the limit. Called if it has no room. */
  retryAfter(state: State, params: Params, i: number, nowMs: number, cost: number): number
  /** Milliseconds until all of limit `i` is free. */
  resetAfter(state: State, params: Params, i: number, nowMs: number): number
  /** Takes back up to `units` of a charge at `atMs`, by this entry. Returns how many: never more than the log still holds. */
  refund(state: State, params: Params, nowMs: number, atMs: number, units: number, entry: string): number
  /** When nothing in the log counts any longer, in the store's time. */
  expiresAt(state: State, params: Params): number
  /**
   * The latest charges that limit `i` counts, oldest first. Up to `most` records, or units if each is kept alone. Called
   * after `check`. Left out if charges lose their times.
   */
  charges?(state: State, params: Params, i: number, nowMs: number, most: number): readonly ListedCharge[]
  /** Set if its logs keep entries. */
  readonly entries?: EntryKeeping<State, Params>
  /** Set if it isn't a limit, but bans: see `Log.role`. */
  readonly ban?: BanKeeping<State, Params>
}

export interface BanState {
  /** Milliseconds until the block ends; 0 if there is none. */
  readonly blockedMs: number
  /** The number of bans in a row that are remembered. */
  readonly level: number
  /** Denials that count towards the next ban. */
  readonly denials: number
}

/** Blocks a key for some time after too many denials. */
interface BanKeeping<State, Params extends LogParams> {
  look(state: State, params: Params, nowMs: number): BanState
  /** Counts denied requests. Returns the milliseconds for which they block the key, or 0. */
  denied(state: State, params: Params, nowMs: number, count: number): number
  /** Unblocks the key, and forgets its denials and bans. */
  unblock(state: State): void
}

/** What a kind does that keeps entries. Only entries that count are found. */
interface EntryKeeping<State, Params extends LogParams> {
  readonly are: Entries
  find(state: State, params: Params, nowMs: number, entry: string): Entry | undefined
  /** Makes an entry of these units count from `nowMs` on. Returns whether it still counted. */
  renew(state: State, params: Params, nowMs: number, entry: string, units: number): boolean
  /** Oldest first. */
  list(state: State, params: Params, nowMs: number): readonly Entry[]
}

/** The logs of one kind in a memory store, by their numbers. */
export interface Logs<State = unknown> {
  /** Roughly how many bytes they hold. */
  readonly bytes: number
  /** Makes an empty log. Returns its number, from 1. */
  create(): number
  /** The log of this number, valid until the next call. Number 0 is an empty log that is never written to. */
  at(log: number): State
  /** Makes a log with the same content. */
  copy(log: number): number
  /** Deletes a log. Its number will be used again. */
  delete(log: number): void
}
