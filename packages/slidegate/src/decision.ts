// The decision on a request.
/**
 * The origin of a decision:
 * - `store`: the store
 * - `lease`, `denyCache`: this process, based on an earlier answer from the store
 * - `fallback`: this process, based on its share of the limits, while the store was unavailable
 * - `failOpen`, `failClosed`: no limit was checked; `onStoreError` allowed or denied the request
 */
export type Source = 'store' | 'lease' | 'denyCache' | 'fallback' | 'failOpen' | 'failClosed'

/** The result for one limit. Times are in milliseconds after the decision's `atMs`. */
export interface LimitDecision {
  readonly name: string
  /** Units allowed per window. */
  readonly limit: number
  readonly windowMs: number
  /** The window slides in steps of this length. For a fixed window: the window's length. */
  readonly precisionMs: number
  /** Whether this is a shadow limit, which is counted and reported but never denies. */
  readonly shadow: boolean
  /** Whether this limit had room for the cost. */
  readonly allowed: boolean
  /** Whole units left after this decision, never below 0. */
  readonly remaining: number
  /** Milliseconds until this limit has room for the same cost. 0 if it has room now, `Infinity` if it never will. */
  readonly retryAfterMs: number
  /** Milliseconds until the limit is unused again. 0 if it is unused now. */
  readonly resetAfterMs: number
}

/**
 * The decision on one request: plain data.
 *
 * Example: `slidingWindow({ limit: 10, window: '1s' })`, with ten requests of cost 1 that start at 0 ms and are 50 ms apart. The
 * tenth, at 450 ms, is allowed with `remaining` 0 and `resetAfterMs` 1000. Another at 500 ms is denied. Its `retryAfterMs` is
 * 500, because the first request leaves the window at 1000 ms. Its `resetAfterMs` is 950, because the tenth leaves at 1450 ms.
 */
export interface Decision {
  readonly allowed: boolean
  /** Units that the request costs. If the request repeats a `requestId`: the units charged the first time. */
  readonly cost: number
  /**
   * Whole units left after this decision: the minimum over all enforced limits.
   *
   * `Infinity` if no limit is enforced. 0 if `source` is `failClosed`, or if a ban or block denied the request.
   */
  readonly remaining: number
  /**
   * Milliseconds until the same request would be allowed, unless another request is charged first.
   *
   * Exact to the millisecond. 0 if allowed, `Infinity` if the cost exceeds a limit. For a banned or blocked key, this is the
   * time until the ban or block is over and the limits have room.
   */
  readonly retryAfterMs: number
  /** Milliseconds until all enforced limits are unused again. */
  readonly resetAfterMs: number
  /**
   * The names of active bans and blocks, then those of enforced limits without room.
   *
   * Limits are in declared order. Bans and blocks have names such as `ban` or, with dimensions, `ip.ban`.
   */
  readonly deniedBy: readonly string[]
  /**
   * One entry per limit, including shadow limits, in declared order. With `failOpen` and `failClosed`, the entries describe an
   * unused key.
   */
  readonly limits: readonly LimitDecision[]
  readonly source: Source
  /**
   * Milliseconds until the ban or block ends. Only set if a key has one. If several keys do, this is the longest time.
   *
   * If this denial caused the ban, `deniedBy` names only limits, not the ban.
   */
  readonly blockedMs?: number
  /**
   * When the store made the decision, in epoch milliseconds by the store's clock.
   *
   * On a Redis Cluster, each server has its own clock. `atMs` is the latest of their times.
   */
  readonly atMs: number
}

export const NO_NAMES: readonly string[] = Object.freeze([])

/**
 * The name in `deniedBy` for a ban or block on this limiter's keys.
 *
 * @param limiter the limiter's name, followed by `/` and the dimension if there is one
 */
export function banName(limiter: string, type: 'ban' | 'block'): string {
  const slash = limiter.indexOf('/')
  return slash < 0 ? type : `${limiter.slice(slash + 1)}.${type}`
}

/** The bans and blocks that denied the request. Empty if this denial caused the ban. */
export function bansIn({ blockedMs, deniedBy, limits }: Decision): readonly string[] {
  if (blockedMs === undefined) return NO_NAMES
  return deniedBy.filter((name) => limits.every((limit) => limit.name !== name))
}

/** Whether requests allowed by this source are charged anywhere. */
export function isCounted(source: Source): boolean {
  return source === 'store' || source === 'lease' || source === 'fallback'
}

/** Whether the decision is based on the key's usage. */
export function isDecided(source: Source): boolean {
  return source !== 'failOpen' && source !== 'failClosed'
}
