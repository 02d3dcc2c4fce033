import { createHash } from 'node:crypto'
import { type Limit, slidingWindow } from 'slidegate'

/** Numbers as in `RateLimitResponse.RateLimit.Unit`. A month has 30 days, a year 365, as with envoyproxy/ratelimit. */
export const UNITS = {
  SECOND: { number: 1, window: '1s' },
  MINUTE: { number: 2, window: '1m' },
  HOUR: { number: 3, window: '1h' },
  DAY: { number: 4, window: '1d' },
  WEEK: { number: 7, window: '7d' },
  MONTH: { number: 5, window: '30d' },
  YEAR: { number: 6, window: '365d' },
} as const
export type Unit = keyof typeof UNITS

export const MAX_UINT32 = 2 ** 32 - 1

/** What a descriptor of a file says of its limit. */
export interface RuleOptions {
  readonly unit: Unit | undefined
  readonly requestsPerUnit: number
  readonly isUnlimited: boolean
  readonly isShadow: boolean
  readonly isQuota: boolean
  readonly name: string
  readonly replaces: readonly string[]
  readonly hasDetailedMetric: boolean
  readonly metadata: Readonly<Record<string, unknown>> | undefined
}

/** The limit of a descriptor. */
export interface Rule extends RuleOptions {
  /** The same after a reload, on every instance, and for no other rule of the domain. It names a dimension. */
  readonly id: string
  /** As envoyproxy/ratelimit calls it in its metrics, without the domain: `message_type_marketing.to_number`. */
  readonly path: string
  /** As header fields call it. */
  readonly policy: string
  /** None where it is unlimited, or lets nothing through. */
  readonly limits: readonly Limit[] | undefined
  /** As answers have it. */
  readonly currentLimit: { readonly name: string; readonly requests_per_unit: number; readonly unit: number }
  readonly windowMs: number
  readonly precisionMs: number
}

/** The name of each limit within its dimension: a shadow limit's state is found by it. */
const LIMIT_NAME = 'rate'

/** @param keys of the descriptors from the outermost on, each with its value */
export function ruleOf(keys: readonly string[], options: RuleOptions, scope = 'rule'): Rule {
  const { unit, requestsPerUnit, name, isUnlimited, isShadow, isQuota } = options
  const path = keys.join('.')
  const limit =
    unit === undefined
      ? undefined
      : slidingWindow({
          limit: Math.max(1, requestsPerUnit),
          window: UNITS[unit].window,
          name: LIMIT_NAME,
          // Whether enough quotas have room is known only once all have been asked.
          shadow: isShadow || isQuota,
        })
  return {
    ...options,
    id: idOf(path, [scope, ...keys]),
    path,
    policy: quotable(name || path),
    limits: isUnlimited || requestsPerUnit === 0 || limit === undefined ? undefined : [limit],
    currentLimit: {
      name,
      requests_per_unit: requestsPerUnit,
      unit: unit === undefined ? 0 : UNITS[unit].number,
    },
    windowMs: limit?.windowMs ?? 0,
    precisionMs: limit?.precisionMs ?? 1,
  }
}

/** What one can read of the text, and what tells it from all others: at most 57 of `A-Z a-z 0-9 _ -`. */
function idOf(readable: string, words: readonly string[]): string {
  return `${readable.replace(/[^A-Za-z0-9_]+/g, '_').slice(0, 40)}-${digestOf(words)}`
}

function digestOf(words: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(words)).digest('base64url').slice(0, 16)
}

/** What may stand between quotes in a header field. */
function quotable(text: string): string {
  return text.replace(/[^ !#-[\]-~]+/g, '_').slice(0, 64)
}

/** How a limiter of this domain is called: no two domains have the same. */
export function limiterNameOf(domain: string): string {
  const isPlain = /^[A-Za-z0-9._-]{1,58}$/.test(domain) && !/-[A-Za-z0-9_-]{16}$/.test(domain)
  if (isPlain) return `envoy.${domain}`
  return `envoy.${domain.replace(/[^A-Za-z0-9._]+/g, '_').slice(0, 40)}-${digestOf([domain])}`
}
