/**
 * Where an answer comes from:
 * - `store`: the store has decided
 * - `lease`, `denyCache`: this process has, by what the store had told it before
 * - `fallback`: this process has, by a share of the limits, while the store gave no answer
 * - `failOpen`, `failClosed`: allowed or denied because nothing could be known
 */
export type Source = 'store' | 'lease' | 'denyCache' | 'fallback' | 'failOpen' | 'failClosed'

/** What one limit says of a request. Times are milliseconds from the decision's `atMs`. */
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
  /** When the same cost fits this limit; 0 where it fits now, `Infinity` where it never will. */
  readonly retryAfterMs: number
  /** When all of the limit is free again; 0 where it is now. */
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
   * Whole units left after this decision, the least over the enforced limits; `Infinity` where none is enforced, 0
   * with `failClosed` and if a ban denies.
   */
  readonly remaining: number
  /**
   * Milliseconds until the same request would be admitted if nobody else asked meanwhile: admitted then,
   * denied 1 ms before. 0 when allowed; `Infinity` for a cost above a limit. Of a blocked key: until both the ban is over
   * and its limits have room.
   */
  readonly retryAfterMs: number
  /** Milliseconds until all quota is back, the greatest over the enforced limits. */
  readonly resetAfterMs: number
  /**
   * Names of what denies the request: first bans in force (`ban`, or `ip.ban` of a dimension), then enforced limits without
   * room, in the order in which they were declared.
   */
  readonly deniedBy: readonly string[]
  /**
   * One entry per limit, shadow ones too, in the order in which they were declared. With `failOpen` and `failClosed`
   * they are as of a key that is not known.
   */
  readonly limits: readonly LimitDecision[]
  readonly source: Source
  /**
   * Only on a denial of a blocked key: the milliseconds until its ban is over, of several keys the most. `deniedBy` names
   * bans that were in force, or only limits if this denial has brought the ban about.
   */
  readonly blockedMs?: number
  /**
   * The instant of the decision, and of its charge: epoch milliseconds by the store's clock.
   *
   * On a Cluster each key of a request is charged at the instant of its own server. This is the latest of them.
   */
  readonly atMs: number
}

export const NOBODY: readonly string[] = Object.freeze([])

/**
 * How `deniedBy` names a ban of a part's key.
 *
 * @param limiter the limiter's name, with that of a dimension behind a slash
 */
export function banName(limiter: string): string {
  const slash = limiter.indexOf('/')
  return slash < 0 ? 'ban' : `${limiter.slice(slash + 1)}.ban`
}

/** The bans that have denied the request; none if this denial has brought one about. */
export function bansIn({ blockedMs, deniedBy, limits }: Decision): readonly string[] {
  if (blockedMs === undefined) return NOBODY
  return deniedBy.filter((name) => limits.every((limit) => limit.name !== name))
}

/** Whether what this source admits is charged anywhere. */
export function isCounted(source: Source): boolean {
  return source === 'store' || source === 'lease' || source === 'fallback'
}

/** Whether anybody has counted: else nothing is known of what is left. */
export function isDecided(source: Source): boolean {
  return source !== 'failOpen' && source !== 'failClosed'
}
