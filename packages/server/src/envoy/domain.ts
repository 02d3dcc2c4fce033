// The rules of a domain, and which of them a descriptor is held to.

import { createHash } from 'node:crypto'
import { type Limit, slidingWindow, tupleKey } from 'slidegate'
import { fits } from '../service/pattern.ts'

export interface Entry {
  readonly key: string
  readonly value: string
}

/** The rule that a descriptor is held to, and whom it counts. */
export interface Match {
  readonly rule: Rule
  readonly key: string
  /** What it is counted under in metrics. */
  readonly metric: string
}

/** A descriptor of a file. */
export class Branch {
  /** By key, or by key and value, as in `key_value`. */
  readonly children = new Map<string, Branch>()
  /** Those of them with a wildcard, in the order of the file. */
  readonly wildcards: string[] = []
  readonly rule: Rule | undefined
  readonly hasValueInMetric: boolean
  readonly isShared: boolean

  constructor(rule?: Rule, { hasValueInMetric = false, isShared = false } = {}) {
    this.rule = rule
    this.hasValueInMetric = hasValueInMetric
    this.isShared = isShared
  }

  /** By what the closest child fits: by key and value, else by a wildcard, else by the key alone. */
  closest({ key, value }: Entry): string | undefined {
    const both = `${key}_${value}`
    if (this.children.has(both)) return both
    if (this.wildcards.length > 0) {
      const wildcard = this.wildcards.find((pattern) => fits(pattern, both))
      if (wildcard !== undefined) return wildcard
    }
    return this.children.has(key) ? key : undefined
  }
}

/** The rules of a domain. */
export class Domain {
  readonly name: string
  readonly limiterName: string
  readonly root = new Branch()

  constructor(name: string) {
    this.name = name
    this.limiterName = limiterNameOf(name)
  }

  /** The rule of a descriptor with as many entries as it has levels in the file. */
  match(entries: readonly Entry[]): Match | undefined {
    let branch = this.root
    let hasValuesInMetric = false
    let counted = ''
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i]!
      const by = branch.closest(entry)
      if (by === undefined) return undefined
      branch = branch.children.get(by)!
      hasValuesInMetric ||= branch.hasValueInMetric
      const part = partOf(entry.key, sharedValueOf(entry, by, branch) ?? entry.value)
      counted = i === 0 ? part : `${counted}|${part}`
    }
    const { rule } = branch
    if (rule === undefined) return undefined
    const isUsual = !hasValuesInMetric && !rule.hasDetailedMetric
    return { rule, key: counted, metric: isUsual ? rule.path : this.#metricOf(entries, rule) }
  }

  *rules(branch: Branch = this.root): Generator<Rule> {
    for (const child of branch.children.values()) {
      if (child.rule !== undefined) yield child.rule
      yield* this.rules(child)
    }
  }

  #metricOf(entries: readonly Entry[], { hasDetailedMetric }: Rule): string {
    let branch = this.root
    const words = entries.map((entry) => {
      const by = branch.closest(entry)!
      branch = branch.children.get(by)!
      const { key, value } = entry
      const shared = sharedValueOf(entry, by, branch)
      if (shared !== undefined) return `${key}_${shared}`
      return value !== '' && (hasDetailedMetric || branch.hasValueInMetric) ? `${key}_${value}` : by
    })
    return words.join('.')
  }
}

/** All values that fit such a wildcard are counted as this one. */
function sharedValueOf({ key, value }: Entry, by: string, child: Branch): string | undefined {
  if (!child.isShared || by === `${key}_${value}`) return undefined
  return by.startsWith(`${key}_`) ? by.slice(key.length + 1) : by
}

/** Longer ones would not all fit into one key, and what is refused many gateways let pass. */
const MAX_LENGTH = 512

/** How an entry stands in a key, between others. */
export function partOf(key: string, value: string): string {
  const name = /[%=]/.test(key) ? key.replaceAll('%', '%25').replaceAll('=', '%3D') : key
  const part = `${shortened(name)}=${shortened(value)}`
  return /[%|]/.test(part) ? tupleKey(part) : part
}

/** None is taken for another: what looks like a hash is hashed, too. */
function shortened(text: string): string {
  return text.length <= MAX_LENGTH && !text.startsWith('~')
    ? text
    : `~${createHash('sha256').update(text).digest('base64url')}`
}

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
