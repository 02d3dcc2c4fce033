// The answer to a request.
/**
 * What decided a request:
 * - `store`: the store
 * - `lease`, `denyCache`: this process, by an earlier answer of the store
 * - `fallback`: this process, by a share of the limits, while the store gave no answer
 * - `failOpen`, `failClosed`: nothing; it is allowed or denied by `onStoreError`
 */
export type Source = 'store' | 'lease' | 'denyCache' | 'fallback' | 'failOpen' | 'failClosed'

/** The answer of one limit. Times are milliseconds from the decision's `atMs`. */
export interface LimitDecision {
  readonly name: string
  /** Units that the window admits. */
  readonly limit: number
  readonly windowMs: number
  /** The step in which the window slides; a fixed window's own length. */
  readonly precisionMs: number
  /** A shadow limit is counted and reported, but decides nothing. */
  readonly shadow: boolean
  /** Whether this limit had room for the cost. */
  readonly allowed: boolean
  /** Whole units left after this decision, never below 0. */
  readonly remaining: number
  /** When the same cost fits this limit; 0 if it fits now, `Infinity` if it never does. */
  readonly retryAfterMs: number
  /** When all of the limit is free again; 0 if it is now. */
  readonly resetAfterMs: number
}

/**
 * The answer to one request: plain data.
 *
 * With `slidingWindow({ limit: 10, window: '1s' })` and ten requests of cost 1, made 50 ms apart from
 * t = 0 on: the tenth (t = 450) is allowed with `remaining` 0 and `resetAfterMs` 1000. Another at t = 500 is
 * denied with `retryAfterMs` 500 (the first leaves the window at t = 1000) and `resetAfterMs` 950.
 */
export interface Decision {
  readonly allowed: boolean
  /** Units that the request takes. A request repeated with its `requestId` has the units that were charged. */
  readonly cost: number
  /**
   * Whole units left after this decision, the least over the enforced limits; `Infinity` if none is enforced, 0 with
   * `failClosed` and if a ban denies.
   */
  readonly remaining: number
  /**
   * Milliseconds until the same request would be admitted if no other came meanwhile: admitted then, denied 1 ms before. 0 if
   * allowed; `Infinity` for a cost above a limit. Of a blocked key: until its ban is over and its limits have room.
   */
  readonly retryAfterMs: number
  /** Milliseconds until all quota is back, the greatest over the enforced limits. */
  readonly resetAfterMs: number
  /** Bans in force (`ban`, or `ip.ban` of a dimension), then enforced limits without room, in declared order. */
  readonly deniedBy: readonly string[]
  /** One entry per limit, shadow limits too, in declared order. With `failOpen` and `failClosed`: as of an unknown key. */
  readonly limits: readonly LimitDecision[]
  readonly source: Source
  /**
   * Only if a key is blocked: the milliseconds until its ban is over, the most over all keys. `deniedBy` names only limits if
   * this denial has caused the ban.
   */
  readonly blockedMs?: number
  /**
   * When the request was decided and charged, in epoch milliseconds by the store's clock. On a Cluster each key is charged by
   * the clock of its own server; this is the latest.
   */
  readonly atMs: number
}

export const NO_NAMES: readonly string[] = Object.freeze([])

/**
 * How `deniedBy` names a ban of a part's key.
 *
 * @param limiter the limiter's name, with that of a dimension behind a slash
 */
export function banName(limiter: string): string {
  const slash = limiter.indexOf('/')
  return slash < 0 ? 'ban' : `${limiter.slice(slash + 1)}.ban`
}

/** The bans that have denied the request. None if this denial has caused one. */
export function bansIn({ blockedMs, deniedBy, limits }: Decision): readonly string[] {
  if (blockedMs === undefined) return NO_NAMES
  return deniedBy.filter((name) => limits.every((limit) => limit.name !== name))
}

/** Whether what this source admits is charged anywhere. */
export function isCounted(source: Source): boolean {
  return source === 'store' || source === 'lease' || source === 'fallback'
}

/** Whether the usage was known. */
export function isDecided(source: Source): boolean {
  return source !== 'failOpen' && source !== 'failClosed'
}
