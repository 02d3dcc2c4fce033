// THE contract of a kind: `check` and `commit` over a log.

/** Numbers that replace the declared ones of a limit. */
export interface LimitNumbers {
  /** The limit, of all kinds but token buckets. */
  readonly limit?: number
  /** Length of a sliding window in milliseconds. */
  readonly windowMs?: number
  /** Tokens that a token bucket holds. */
  readonly capacity?: number
  /** Tokens that come back per interval of a token bucket. */
  readonly refill?: number
}

/** One limit as the user declared it, checked and completed. Made by {@link slidingWindow} and its like. */
export interface Limit {
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  readonly precisionMs: number
  readonly shadow: boolean
  readonly kind: Kind
  /** What else its kind was told, by kinds that have more to tell than a limit and a window. */
  readonly rule?: unknown
}

/**
 * What a kind of limit reads of its limits. Several limits of one kind may share a log; then each array has one entry per limit. A kind that needs more
 * extends it.
 */
export interface LogParams {
  /** Milliseconds in a grain; stamps are the start of theirs. */
  readonly precision: number
  /** Records that these limits can fill: what a log is enlarged to, not a hard bound. */
  readonly records: number
  /** For how long a charge counts, per limit, in milliseconds. */
  readonly windows: readonly number[]
  /** Units admitted per window, per limit. */
  readonly limits: readonly number[]
}

/**
 * What the entries of a log are, if it keeps them one by one. Ops with an id are never joined, leased, or answered by the deny
 * cache.
 *
 * - `record`: an admitted request, in order.
 * - `request`: the same, found by the id of its op. If the log still holds an id that a caller chose (`mayRepeat`), the op is
 *   answered as the first time and charges no log. A refund is of a whole entry; an entry that is missing was returned by another
 *   decision of the same request.
 * - `holder`: a request under way, found by its id. It counts from when it was last renewed. A release concerns these logs only and
 *   refunds no window.
 * - `value`: a distinct value, which is the id of its op and takes one unit. `check` leaves it out of what is used, and `commit`
 *   moves it to now.
 */
export type Entries = 'record' | 'request' | 'holder' | 'value'

/** What is charged to a log. */
export interface Charge {
  readonly units: number
  /** For so long from now the units may be spent elsewhere; 0 where they are spent now. */
  readonly leaseMs: number
  /** The name of its entry, in logs that keep entries; else ''. */
  readonly entry: string
}

/** What was charged at one instant. */
export interface Charged {
  /** The stamp: the start of its grain. What is held, or was brought again, has that of when it was renewed. */
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
 * A kind of limit: a pair of small steps, `check` and `commit`, over its own state (a log). A decision runs
 * `check` on every log, and only if every enforced limit has room, `commit` on every log; that makes "all or
 * nothing" and "a denial is free" true by construction. The memory store runs these; the driver script runs
 * their twins in the .lua file of the same name.
 *
 * `nowMs` is never below {@link newest}: the store sees to that.
 */
export interface Kind<State = unknown, Params extends LogParams = LogParams> {
  /** Names the kind in the driver script. */
  readonly tag: string
  /**
   * Whether requests of a key are decided one by one. Set if the `resetAfter` of each depends on those before it. Else a
   * store may decide equal ones together.
   */
  readonly isOneByOne?: boolean
  /** Whether each of its limits has a log of its own. */
  readonly isUnshared?: boolean
  /**
   * Whether each charge counts for the window's length from its own time on. The log can then report the use of any
   * window.
   */
  readonly keepsTimes?: boolean
  /** The part of a log's name that comes before any shadow limit's name: `w1`, `f60000`. */
  logName(limit: Limit): string
  /** What the log shared by these limits needs to know of them. */
  params(limits: readonly Limit[]): Params
  /** The greatest that an override may make of this limit. Left out: 2^40. */
  most?(limit: Limit): number
  /**
   * Returns the limit with the numbers of an override. Returns nothing if they aren't for this kind or don't fit. Left
   * out: only `limit` changes.
   */
  renumber?(limit: Limit, numbers: LimitNumbers): Limit | undefined
  /** The limit of each process if this many decide alone. Left out: `limit / processes` units, 1 at least. */
  share?(limit: Limit, processes: number): Limit
  /** The words of a log for its twin in the driver script, for an op at about this time. */
  words(params: Params, nowMs: number): readonly number[]
  /** Whether they change with time. */
  readonly hasTimedWords?: boolean
  /**
   * The log before the op, as the driver script answers it. Left out by kinds whose twin answers units and times itself.
   *
   * @param next reads a number of the answer
   */
  read?(next: () => number, params: Params, nowMs: number): State
  /** Where a store in this process keeps its logs of this kind. */
  createLogs(): Logs<State>
  /** The stamp of the newest charge; 0 in an empty log. */
  newest(state: State): number
  /** After the clock was set back: what the log holds counts from `nowMs` on. */
  restamp(state: State, params: Params, nowMs: number): void
  /**
   * Writes the units used within each limit's window into `used`, besides those of a value of this name. Changes nothing.
   */
  check(state: State, params: Params, nowMs: number, used: number[], entry?: string): void
  commit(state: State, params: Params, nowMs: number, charge: Charge): void
  /**
   * `check`, and if all limits have room, `commit` without a lease: the usual request in one piece, for speed. Returns whether
   * they had room, or nothing if this log needs the two apart. Left out by kinds that are as fast with the two.
   */
  admit?(state: State, params: Params, nowMs: number, cost: number, used: number[]): boolean | undefined
  /** Milliseconds until limit `i` has room for `cost`; `Infinity` for a cost above the limit. Only asked where it has none. */
  retryAfter(state: State, params: Params, i: number, nowMs: number, cost: number): number
  /** Milliseconds until all of limit `i` is free. */
  resetAfter(state: State, params: Params, i: number, nowMs: number): number
  /** Takes back up to `units` of what was charged at `atMs`, by this entry; answers how many. Mints nothing. */
  refund(state: State, params: Params, nowMs: number, atMs: number, units: number, entry: string): number
  /** From when on the log holds nothing that counts, in the store's time. */
  expiresAt(state: State, params: Params): number
  /**
   * The latest charges that limit `i` counts, oldest first. Up to `most` records, or units if each is kept alone. Called
   * after `check`.
   */
  charges?(state: State, params: Params, i: number, nowMs: number, most: number): readonly Charged[]
  /** The entries that a log of this kind keeps. Left out: it keeps sums. */
  readonly entries?: EntryKeeping<State, Params>
  /** What a kind does that is no limit: see `Log.role`. */
  readonly ban?: BanKeeping<State, Params>
}

export interface BanState {
  /** Milliseconds until the block ends; 0 if there is none. */
  readonly blockedMs: number
  /** How many bans in a row are remembered. */
  readonly level: number
  /** Denials that count towards the next. */
  readonly denials: number
}

/** Blocks a key for some time after too many denials. */
interface BanKeeping<State, Params extends LogParams> {
  look(state: State, params: Params, nowMs: number): BanState
  /** So many requests were denied. Answers for how many milliseconds the key is blocked by that; 0 for not. */
  denied(state: State, params: Params, nowMs: number, count: number): number
  /** Lets it go, and forgets all denials and bans. */
  unblock(state: State): void
}

/** What a kind does that keeps entries. Only those that count are found. */
interface EntryKeeping<State, Params extends LogParams> {
  readonly are: Entries
  find(state: State, params: Params, nowMs: number, entry: string): Entry | undefined
  /** Lets it count from `nowMs` on, for as long again; answers whether it still did, with so many units. */
  renew(state: State, params: Params, nowMs: number, entry: string, units: number): boolean
  /** Oldest first. */
  list(state: State, params: Params, nowMs: number): readonly Entry[]
}

/** The logs of one kind in one store. Each is known by a number; what is written to it stays there. */
export interface Logs<State = unknown> {
  /** Roughly how many bytes they hold. */
  readonly bytes: number
  /** A new log, empty: a number from 1. */
  create(): number
  /** The log of this number, until the next one is asked for. Number 0 is an empty log that is never written to. */
  at(log: number): State
  /** A new log that holds the same. */
  copy(log: number): number
  /** Forgets a log. Its number is then given to another. */
  delete(log: number): void
}
