// A domain's rules, and how descriptors match them.

import { createHash } from 'node:crypto'
import { type Limit, slidingWindow, tupleKey } from 'slidegate'
import { fits } from '../service/pattern.ts'

export interface Entry {
  readonly key: string
  readonly value: string
}

/** A matching rule, with the key to charge. */
export interface Match {
  readonly rule: Rule
  readonly key: string
  /** The rule's label in metrics. */
  readonly metric: string
}

export class Branch {
  /** Children by `key`, or by `key_value` if the rule names a value. */
  readonly children = new Map<string, Branch>()
  /** Children with a wildcard, in file order. */
  readonly wildcards: string[] = []
  readonly rule: Rule | undefined
  readonly hasValueInMetric: boolean
  readonly isShared: boolean

  constructor(rule?: Rule, { hasValueInMetric = false, isShared = false } = {}) {
    this.rule = rule
    this.hasValueInMetric = hasValueInMetric
    this.isShared = isShared
  }

  /** The best matching child: by key and value, otherwise by wildcard, otherwise by key. */
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

export class Domain {
  readonly name: string
  readonly limiterName: string
  readonly root = new Branch()

  constructor(name: string) {
    this.name = name
    this.limiterName = limiterNameOf(name)
  }

  /** Finds the rule for a descriptor. A descriptor with n entries matches rules at depth n in the file. */
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

/** Returns the wildcard if all matching values are counted together, and undefined otherwise. */
function sharedValueOf({ key, value }: Entry, by: string, child: Branch): string | undefined {
  if (!child.isShared || by === `${key}_${value}`) return undefined
  return by.startsWith(`${key}_`) ? by.slice(key.length + 1) : by
}

/**
 * Longer parts of a key are hashed. A key that is too long would cause an error, and many gateways then allow
 * the request.
 */
const MAX_LENGTH = 512

/** Returns an entry as a part of a key. */
export function partOf(key: string, value: string): string {
  const name = /[%=]/.test(key) ? key.replaceAll('%', '%25').replaceAll('=', '%3D') : key
  const part = `${shortened(name)}=${shortened(value)}`
  return /[%|]/.test(part) ? tupleKey(part) : part
}

/** Hashes long text. Text that looks like a hash is hashed too, so that it can't collide with a hash. */
function shortened(text: string): string {
  return text.length <= MAX_LENGTH && !text.startsWith('~')
    ? text
    : `~${createHash('sha256').update(text).digest('base64url')}`
}

/** Numbers as in `RateLimitResponse.RateLimit.Unit`. A month has 30 days and a year 365, as in envoyproxy/ratelimit. */
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

/** The options for a descriptor's limit. */
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

/** A descriptor's limit. */
export interface Rule extends RuleOptions {
  /** Unique within the domain, and the same after a reload and on every instance. Used as the name of a dimension. */
  readonly id: string
  /** The rule's name in the metrics of envoyproxy/ratelimit, without the domain: `message_type_marketing.to_number`. */
  readonly path: string
  /** The rule's name in header fields. */
  readonly policy: string
  /** Undefined if the rule is unlimited or allows nothing. */
  readonly limits: readonly Limit[] | undefined
  /** The limit in responses. */
  readonly currentLimit: { readonly name: string; readonly requests_per_unit: number; readonly unit: number }
  readonly windowMs: number
  readonly precisionMs: number
}

/** Name of the limit within its dimension. The state of a shadow limit is stored under this name. */
const LIMIT_NAME = 'rate'

/** @param keys the descriptors' keys and values, outermost first */
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
          // A quota alone never denies: a request is allowed if any of its quotas allows it.
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

/** A readable part plus a hash: at most 57 characters of `A-Z a-z 0-9 _ -`. */
function idOf(readable: string, words: readonly string[]): string {
  return `${readable.replace(/[^A-Za-z0-9_]+/g, '_').slice(0, 40)}-${digestOf(words)}`
}

function digestOf(words: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(words)).digest('base64url').slice(0, 16)
}

/** Replaces characters that can't be in a quoted header value. */
function quotable(text: string): string {
  return text.replace(/[^ !#-[\]-~]+/g, '_').slice(0, 64)
}

/** A domain's limiter name. Different domains have different names. */
export function limiterNameOf(domain: string): string {
  const isPlain = /^[A-Za-z0-9._-]{1,58}$/.test(domain) && !/-[A-Za-z0-9_-]{16}$/.test(domain)
  if (isPlain) return `envoy.${domain}`
  return `envoy.${domain.replace(/[^A-Za-z0-9._]+/g, '_').slice(0, 40)}-${digestOf([domain])}`
}
