// Finds a key's limits, which are declared per dimension or returned by a function.
import { banName } from '../decision.ts'
import { checkThat, isObject, SlidegateError, show, wrongValue } from '../errors.ts'
import { type AnyKey, type KeyEncoding, type Keys, plainEncoding } from '../key.ts'
import { type BanOptions, banLog } from '../limits/ban.ts'
import { checkCount, isDeclared, limitIn, showNoLimit } from '../limits/declare.ts'
import type { Limit } from '../limits/limit.ts'
import { type LimitSet, limitSet, withLog, withOverrides } from '../limits/limit-set.ts'
import type { Part } from '../stores/store.ts'

export interface OneKey {
  readonly dimension: Dimension
  readonly given: string
  readonly key: string
}

type LimitsFunction = (key: string, request: unknown) => readonly Limit[]

/** The limits for each key, or a function that returns them. */
export type LimitsOption = readonly Limit[] | LimitsFunction

/** The rules for the keys in one dimension. */
export interface Rules {
  readonly limits: LimitsOption
  readonly ban?: BanOptions | undefined
  /** Whether each decision reads the key's override. */
  readonly isOverridable?: boolean
}

/** How many limit sets are cached per limits function. Most functions return the same few sets. */
const MAX_SETS = 1024

/** A dimension of keys and its limits. A limiter without dimensions has a single unnamed dimension. */
export class Dimension {
  readonly name: string | undefined
  readonly limiter: string
  /** The limits for every key. `undefined` if a function returns them. */
  readonly set: LimitSet | undefined
  readonly #limitsOf: LimitsOption
  readonly #ban: ReturnType<typeof banLog> | undefined
  readonly #isOverridable: boolean
  readonly #bare: LimitSet
  readonly #setOf = new WeakMap<object, LimitSet>()
  /** Maps the limits of a set, as text, to the set. The least recently used set is first. */
  readonly #setOfText = new Map<string, LimitSet>()

  constructor(limiter: string, name: string | undefined, rules: Rules) {
    const { limits, ban, isOverridable = false } = rules
    this.name = name
    this.limiter = name === undefined ? limiter : `${limiter}/${name}`
    this.#limitsOf = limits
    this.#ban = ban === undefined ? undefined : banLog(ban)
    this.#isOverridable = isOverridable
    this.#bare = this.#completed(limitSet(this.limiter, []))
    this.set = typeof limits === 'function' ? undefined : this.#made(limits)
  }

  /** The part for a key's override and bans, without limits. `undefined` if the key can have neither. */
  bareOf(key: string): Part | undefined {
    return this.#isOverridable || this.#ban !== undefined ? { key, set: this.#bare } : undefined
  }

  partOf(given: string, key: string, request: unknown): Part {
    return { key, set: this.set ?? this.#returned((this.#limitsOf as LimitsFunction)(given, request)) }
  }

  #returned(limits: readonly Limit[]): LimitSet {
    const known = isObject(limits) ? this.#setOf.get(limits) : undefined
    if (known !== undefined) return known
    // An unhandled rejection would end the process.
    if (limits instanceof Promise) limits.catch(() => {})
    const checked = checkedLimits(limits)
    const text = JSON.stringify(checked.map(textOf))
    const set = this.#setOfText.get(text) ?? this.#made(checked)
    this.#setOfText.delete(text)
    this.#setOfText.set(text, set)
    if (this.#setOfText.size > MAX_SETS) this.#setOfText.delete(this.#setOfText.keys().next().value!)
    this.#setOf.set(limits, set)
    return set
  }

  #made(limits: readonly Limit[]): LimitSet {
    const named = checkedLimits(limits).map((limit) =>
      this.name === undefined ? limit : limitIn(this.name, limit),
    )
    const set = this.#completed(limitSet(this.limiter, named))
    const reserved = [banName(this.limiter, 'ban'), banName(this.limiter, 'block')]
    const name = set.limits.find(({ name }) => reserved.includes(name))?.name
    const isFree = name === undefined || this.bareOf('') === undefined
    const right = 'different, because deniedBy uses it for bans and blocks'
    checkThat(isFree, 'the name', name, right, 'duplicate_limit')
    return set
  }

  #completed(set: LimitSet): LimitSet {
    const banned = this.#ban === undefined ? set : withLog(set, this.#ban)
    return this.#isOverridable ? withOverrides(banned) : banned
  }
}

/** Returns the fields in which two limits can differ. */
function textOf(declared: Limit): unknown {
  const { name, limit, windowMs, shadow, kind, rule } = declared
  return [name, kind.logName(declared), limit, windowMs, shadow, rule]
}

export class KeyLimits {
  readonly dimensions: readonly Dimension[]
  readonly encoding: KeyEncoding
  /** The only dimension, if it has no name. */
  readonly #only: Dimension | undefined

  constructor(dimensions: readonly Dimension[], encoding: KeyEncoding = plainEncoding) {
    this.dimensions = dimensions
    this.encoding = encoding
    this.#only = dimensions[0]!.name === undefined ? dimensions[0] : undefined
  }

  /** The limit sets for all dimensions, except sets that a function returns. */
  get sets(): LimitSet[] {
    return this.dimensions.flatMap(({ set }) => set ?? [])
  }

  /** The limit set for every key, if there are no dimensions and no limits function. */
  get set(): LimitSet | undefined {
    return this.#only?.set
  }

  /** The parts of a request. With `hasAll`, the key must have every dimension, not just one. */
  partsOf(key: Partial<AnyKey>, request: unknown, hasAll = true): readonly Part[] {
    const only = this.#only
    if (only !== undefined) return [only.partOf(key as string, this.encoding.key(key), request)]
    return this.keysOf(key, hasAll).map(({ dimension, given, key }) => dimension.partOf(given, key, request))
  }

  /** The key in each dimension, except `null` keys. */
  keysOf(key: Partial<AnyKey>, hasAll = true): readonly OneKey[] {
    const only = this.#only
    if (only !== undefined) return [{ dimension: only, given: key as string, key: this.encoding.key(key) }]
    const keys = this.#checked(key, hasAll)
    const found = this.dimensions.flatMap((dimension) => {
      const given = ownOf(keys, dimension.name!)
      if (given === undefined || given === null) return []
      return [{ dimension, given, key: this.encoding.key(given) }]
    })
    if (found.length > 0) return found
    throw new SlidegateError('invalid_key', 'the key has no dimension; pass at least one', key)
  }

  #checked(key: unknown, hasAll: boolean): Partial<Keys> {
    const invalid = (message: string) => new SlidegateError('invalid_key', message, key)
    const names = this.dimensions.map(({ name }) => name!)
    if (!isObject(key)) {
      const right = `{ ${names.map((name) => `${name}: '...'`).join(', ')} }`
      throw wrongValue('the key', key, right, 'invalid_key')
    }
    const unknown = Object.keys(key).find((name) => !names.includes(name))
    if (unknown !== undefined) {
      throw invalid(`unknown dimension ${show(unknown)}; expected ${names.join(', ')}`)
    }
    const keys = key as Partial<Keys>
    const missing = hasAll ? names.find((name) => ownOf(keys, name) === undefined) : undefined
    if (missing !== undefined) {
      throw invalid(
        `the key has no ${show(missing)}; pass all of ${names.join(', ')}, with null for those that don't apply`,
      )
    }
    return keys
  }
}

/** Reads only own properties, because a dimension may have the name of an inherited property. */
export function ownOf<T>(values: Readonly<Partial<Record<string, T>>>, dimension: string): T | undefined {
  return Object.hasOwn(values, dimension) ? values[dimension] : undefined
}

/** Returns a string that identifies a key in a limiter or dimension. */
export function wordOf(limiter: string, key: string): string {
  return JSON.stringify([limiter, key])
}

function checkedLimits(limits: unknown): readonly Limit[] {
  if (!Array.isArray(limits) || limits.length === 0) {
    throw wrongValue('limits', limits, 'an array with at least one limit', 'invalid_limit')
  }
  checkCount(limits)
  for (const limit of limits) {
    if (isDeclared(limit)) continue
    const what = showNoLimit(limit, 'create limits with slidingWindow(), fixedWindow() and so on')
    throw new SlidegateError('invalid_limit', `limits contains ${what}`, limit)
  }
  return [...limits]
}
