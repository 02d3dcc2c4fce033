import { banName } from '../decision.ts'
import { SlidegateError, show } from '../errors.ts'
import { type AnyKey, type Keys, plainSpelling, type Spelling } from '../key.ts'
import { type BanOptions, banLog } from '../limits/ban.ts'
import { checkCount, isDeclared, limitIn, parseName, showNoLimit } from '../limits/declare.ts'
import type { Limit } from '../limits/limit.ts'
import { type LimitSet, limitSet, withLog, withOverrides } from '../limits/limit-set.ts'
import type { Part } from '../stores/store.ts'

/** A key of one dimension, as given and as stored. */
export interface OneKey {
  readonly dimension: Dimension
  readonly given: string
  readonly key: string
}

/** The limits of each key; or what tells them, from the key and whatever `request` the caller has handed in. */
export type LimitsOf = readonly Limit[] | ((key: string, request: unknown) => readonly Limit[])

/** What a key is held to, or the keys of one dimension. */
export interface Rules {
  readonly limits: LimitsOf
  readonly ban?: BanOptions | undefined
  /** Whether each decision reads the override of its key. */
  readonly isOverridable?: boolean
}

/** Sets that a function has told, and that are kept for when it tells the same again. */
const MAX_SETS = 1024

const DIMENSION = /^[A-Za-z0-9_-]{1,64}$/

/** What the keys of one dimension are held to; a limiter without dimensions has one that has no name. */
export class Dimension {
  readonly name: string | undefined
  /** The namespace of its keys. */
  readonly limiter: string
  /** Those that hold for every key. */
  readonly limits: readonly Limit[]
  /** The same arranged by their logs, where all keys have the same. */
  readonly set: LimitSet | undefined
  readonly #limitsOf: LimitsOf
  readonly #ban: ReturnType<typeof banLog> | undefined
  readonly #isOverridable: boolean
  readonly #bare: LimitSet
  readonly #setOf = new WeakMap<object, LimitSet>()
  /** The same by what the limits are. */
  readonly #setOfText = new Map<string, LimitSet>()

  /** @throws {SlidegateError} `invalid_limit`, `duplicate_limit`, `invalid_option` */
  constructor(limiter: string, name: string | undefined, rules: Rules) {
    const { limits, ban, isOverridable = false } = rules
    this.name = name
    this.limiter = name === undefined ? limiter : `${limiter}/${name}`
    this.#limitsOf = limits
    this.#ban = ban === undefined ? undefined : banLog(ban)
    this.#isOverridable = isOverridable
    this.#bare = this.#completed(limitSet(this.limiter, []))
    this.set = typeof limits === 'function' ? undefined : this.#made(limits)
    this.limits = this.set?.limits ?? []
  }

  /** A key's override and the log of its bans, without its limits; nothing if it can have neither. */
  bareOf(key: string): Part | undefined {
    return this.#isOverridable || this.#ban !== undefined ? { key, set: this.#bare } : undefined
  }

  /** @param key as stored */
  partOf(given: string, key: string, request: unknown): Part {
    return { key, set: this.set ?? this.#told(this.#declaredFor(given, request)) }
  }

  #declaredFor(given: string, request: unknown): readonly Limit[] {
    return typeof this.#limitsOf === 'function' ? this.#limitsOf(given, request) : this.#limitsOf
  }

  /** The set of limits that a function has told: mostly it tells the same few again and again. */
  #told(limits: readonly Limit[]): LimitSet {
    const known = typeof limits === 'object' && limits !== null ? this.#setOf.get(limits) : undefined
    if (known !== undefined) return known
    if (limits instanceof Promise) {
      limits.catch(() => {})
      throw new SlidegateError(
        'invalid_limit',
        'limits is a promise; the function must return an array of limits at once',
        limits,
      )
    }
    const checked = checkedLimits(limits)
    const text = JSON.stringify(checked.map(textOf))
    const set = this.#setOfText.get(text) ?? this.#made(checked)
    this.#setOfText.delete(text)
    this.#setOfText.set(text, set)
    if (this.#setOfText.size > MAX_SETS) {
      for (const oldest of this.#setOfText.keys()) {
        this.#setOfText.delete(oldest)
        break
      }
    }
    this.#setOf.set(limits, set)
    return set
  }

  #made(limits: readonly Limit[]): LimitSet {
    const named = checkedLimits(limits).map((limit) => this.#qualified(limit))
    const set = this.#completed(limitSet(this.limiter, named))
    const ban = banName(this.limiter)
    if (this.bareOf('') === undefined || !named.some(({ name }) => name === ban)) return set
    throw new SlidegateError(
      'duplicate_limit',
      `a limit is named ${show(ban)}, as deniedBy names the ban; give it another name`,
      ban,
    )
  }

  #completed(set: LimitSet): LimitSet {
    const banned = this.#ban === undefined ? set : withLog(set, this.#ban)
    return this.#isOverridable ? withOverrides(banned) : banned
  }

  #qualified(limit: Limit): Limit {
    return this.name === undefined ? limit : limitIn(this.name, limit)
  }
}

/** What tells two limits apart. */
function textOf(declared: Limit): unknown {
  const { name, limit, windowMs, shadow, kind, rule } = declared
  return [name, kind.logName(declared), limit, windowMs, shadow, rule]
}

/** All that a limiter holds keys to. */
export class KeyLimits {
  readonly dimensions: readonly Dimension[]
  /** How all that callers choose is stored. */
  readonly spelling: Spelling
  /** Those that hold for every key. */
  readonly limits: readonly Limit[]
  /** The only dimension, where it has no name. */
  readonly #only: Dimension | undefined

  constructor(dimensions: readonly Dimension[], spelling: Spelling = plainSpelling) {
    this.dimensions = dimensions
    this.spelling = spelling
    this.limits = dimensions.flatMap(({ limits }) => limits)
    this.#only = dimensions[0]!.name === undefined ? dimensions[0] : undefined
  }

  /** The limits of every key, where all have the same, and a key is just one. */
  get set(): LimitSet | undefined {
    return this.#only?.set
  }

  /**
   * The parts of a request.
   *
   * @throws {SlidegateError} `invalid_key`, and what functions throw or tell wrong
   */
  partsOf(key: AnyKey, request: unknown): readonly Part[] {
    const only = this.#only
    if (only !== undefined) {
      const stored = this.spelling.key(key)
      return [only.partOf(key as string, stored, request)]
    }
    return this.#allOf(key).map((given) => this.#partOf(given, request))
  }

  /** The parts of some of the dimensions of a key, one at least. */
  someOf(key: Partial<AnyKey>, request: unknown): readonly Part[] {
    return this.#someOf(key).map((given) => this.#partOf(given, request))
  }

  /** A request's keys as they are stored. */
  storedKeysOf(key: AnyKey): readonly string[] {
    return this.#allOf(key).map((given) => given.key)
  }

  /** What tells each key of a request from all others. No limits are asked for. */
  wordsOf(key: AnyKey): readonly string[] {
    return this.#allOf(key).map(({ dimension, key: stored }) => wordOf(dimension.limiter, stored))
  }

  /** The dimension of each part. */
  namesOf(parts: readonly Part[]): readonly (string | undefined)[] {
    return parts.map(({ set }) => this.dimensions.find(({ limiter }) => limiter === set.limiter)?.name)
  }

  /** The keys of some of the dimensions of a key, one at least. */
  givenBy(key: Partial<AnyKey>): readonly OneKey[] {
    return this.#someOf(key)
  }

  #partOf({ dimension, given, key }: OneKey, request: unknown): Part {
    return dimension.partOf(given, key, request)
  }

  #allOf(key: AnyKey): readonly OneKey[] {
    const only = this.#only
    if (only !== undefined) return [{ dimension: only, given: key as string, key: this.spelling.key(key) }]
    const keys = this.#checked(key)
    for (const { name } of this.dimensions) {
      if (ownOf(keys, name!) !== undefined) continue
      const right = this.dimensions.map((each) => each.name).join(', ')
      throw new SlidegateError(
        'invalid_key',
        `the key has no ${show(name)}; it must have all of ${right}, or null where there is none`,
        key,
      )
    }
    return this.#someOf(key)
  }

  #someOf(key: Partial<AnyKey>): readonly OneKey[] {
    const only = this.#only
    if (only !== undefined) return [{ dimension: only, given: key as string, key: this.spelling.key(key) }]
    const keys = this.#checked(key)
    const found = this.dimensions.flatMap((dimension) => {
      const given = ownOf(keys, dimension.name!)
      return given === undefined || given === null
        ? []
        : [{ dimension, given, key: this.spelling.key(given) }]
    })
    if (found.length > 0) return found
    throw new SlidegateError('invalid_key', 'the key has no dimension; it must have one at least', key)
  }

  #checked(key: unknown): Partial<Keys> {
    if (typeof key !== 'object' || key === null) {
      const right = this.dimensions.map(({ name }) => `${name}: '...'`).join(', ')
      throw new SlidegateError('invalid_key', `the key is ${show(key)}; it must be { ${right} }`, key)
    }
    for (const name of Object.keys(key)) {
      if (!this.dimensions.some((dimension) => dimension.name === name)) {
        const known = this.dimensions.map((dimension) => dimension.name).join(', ')
        throw new SlidegateError('invalid_key', `the key has ${show(name)}; there is only ${known}`, key)
      }
    }
    return key as Partial<Keys>
  }
}

/** What is said of a dimension, which may be called like something that all objects have. */
export function ownOf<T>(values: Readonly<Partial<Record<string, T>>>, dimension: string): T | undefined {
  return Object.hasOwn(values, dimension) ? values[dimension] : undefined
}

/** What tells a key of a limiter, or of a dimension, from all others. */
export function wordOf(limiter: string, key: string): string {
  return JSON.stringify([limiter, key])
}

/** A dimension's name; `invalid_name` unless it is 1 to 64 of `A-Z a-z 0-9 _ -`. */
export function parseDimension(name: string): string {
  if (!DIMENSION.test(name)) {
    throw new SlidegateError(
      'invalid_name',
      `the dimension is ${show(name)}; it must be 1 to 64 of A-Z a-z 0-9 _ -`,
      name,
    )
  }
  return parseName(name)
}

function checkedLimits(limits: unknown): readonly Limit[] {
  if (!Array.isArray(limits) || limits.length === 0) {
    throw new SlidegateError(
      'invalid_limit',
      `limits is ${show(limits)}; it must be an array with at least one limit`,
      limits,
    )
  }
  checkCount(limits, 'limits')
  for (const limit of limits) {
    if (!isDeclared(limit)) {
      throw new SlidegateError(
        'invalid_limit',
        `limits holds ${showNoLimit(limit, 'make limits with slidingWindow(), fixedWindow() and the like')}`,
        limit,
      )
    }
  }
  return [...limits]
}
