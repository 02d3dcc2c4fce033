// The decision on a request.
/**
 * Where a decision came from:
 * - `store`: the store
 * - `lease`, `denyCache`: this process, based on an earlier answer of the store
 * - `fallback`: this process, by its share of the limits, while the store was unavailable
 * - `failOpen`, `failClosed`: no limit was checked; `onStoreError` allowed or denied the request
 */
export type Source = 'store' | 'lease' | 'denyCache' | 'fallback' | 'failOpen' | 'failClosed'

/** The result for one limit. Times are milliseconds from the decision's `atMs`. */
export interface LimitDecision {
  readonly name: string
  /** Units allowed per window. */
  readonly limit: number
  readonly windowMs: number
  /** The step in which the window slides. For a fixed window: its length. */
  readonly precisionMs: number
  /** A shadow limit is counted and reported, but never denies. */
  readonly shadow: boolean
  /** Whether this limit had room for the cost. */
  readonly allowed: boolean
  /** Whole units left after this decision, never below 0. */
  readonly remaining: number
  /** Milliseconds until the same cost fits this limit. 0 if it fits now, `Infinity` if it never does. */
  readonly retryAfterMs: number
  /** Milliseconds until the limit is unused again. 0 if it is unused now. */
  readonly resetAfterMs: number
}

/**
 * The decision on one request: plain data.
 *
 * Example: `slidingWindow({ limit: 10, window: '1s' })`, with ten requests of cost 1 that start at 0 ms and are 50 ms apart. The
 * tenth, at 450 ms, is allowed with `remaining` 0 and `resetAfterMs` 1000. Another at 500 ms is denied with `retryAfterMs` 500,
 * because the first leaves the window at 1000 ms, and with `resetAfterMs` 950.
 */
export interface Decision {
  readonly allowed: boolean
  /** Units that the request costs. If it repeats a `requestId`: the units charged the first time. */
  readonly cost: number
  /**
   * Whole units left after this decision: the minimum of all enforced limits.
   *
   * `Infinity` if no limit is enforced. 0 with `failClosed`, or if a ban denies.
   */
  readonly remaining: number
  /**
   * Milliseconds until the same request would be allowed, if no other is charged until then.
   *
   * Exact to the millisecond. 0 if allowed, `Infinity` if the cost exceeds a limit. For a blocked key: until its ban is over and
   * its limits have room.
   */
  readonly retryAfterMs: number
  /** Milliseconds until all enforced limits are unused again. */
  readonly resetAfterMs: number
  /**
   * Active bans, then enforced limits without room, by name and in declared order. A ban is named `ban`, or like `ip.ban` with
   * dimensions.
   */
  readonly deniedBy: readonly string[]
  /**
   * One entry per limit, including shadow limits, in declared order. With `failOpen` and `failClosed`, they look like those of an
   * unused key.
   */
  readonly limits: readonly LimitDecision[]
  readonly source: Source
  /**
   * Milliseconds until the ban is over, the maximum of all keys. Only set if a key is blocked.
   *
   * If this denial caused the ban, `deniedBy` names only limits.
   */
  readonly blockedMs?: number
  /**
   * When the store charged the request, in epoch milliseconds by its clock.
   *
   * On a Cluster, each server has its own clock. This is the latest of their times.
   */
  readonly atMs: number
}

export const NO_NAMES: readonly string[] = Object.freeze([])

/**
 * The name in `deniedBy` for a ban of this limiter's keys.
 *
 * @param limiter the limiter's name, followed by `/` and the dimension if there is one
 */
export function banName(limiter: string): string {
  const slash = limiter.indexOf('/')
  return slash < 0 ? 'ban' : `${limiter.slice(slash + 1)}.ban`
}

/** The bans that denied the request. Empty if this denial caused the ban. */
export function bansIn({ blockedMs, deniedBy, limits }: Decision): readonly string[] {
  if (blockedMs === undefined) return NO_NAMES
  return deniedBy.filter((name) => limits.every((limit) => limit.name !== name))
}

/** Whether requests allowed by this source are charged anywhere. */
export function isCounted(source: Source): boolean {
  return source === 'store' || source === 'lease' || source === 'fallback'
}

/** Whether the usage was known when the decision was made. */
export function isDecided(source: Source): boolean {
  return source !== 'failOpen' && source !== 'failClosed'
}
