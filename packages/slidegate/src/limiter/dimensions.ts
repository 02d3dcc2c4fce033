// Finds the limits of a key: by its dimensions, or by a function.
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

type LimitsFunction = (key: string, request: unknown) => readonly Limit[]

/** The limits of each key, or a function that returns them, from the key and the caller's `request`. */
export type LimitsOf = readonly Limit[] | LimitsFunction

/** What the keys of a dimension are held to. */
export interface Rules {
  readonly limits: LimitsOf
  readonly ban?: BanOptions | undefined
  /** Whether each decision reads the override of its key. */
  readonly isOverridable?: boolean
}

/** The most limit sets that are kept for a function: mostly it returns the same few again and again. */
const MAX_SETS = 1024

const DIMENSION = /^[A-Za-z0-9_-]{1,64}$/

/** A dimension of keys and its limits. A limiter without dimensions has one without a name. */
export class Dimension {
  readonly name: string | undefined
  /** The namespace of its keys. */
  readonly limiter: string
  /** The limits of every key. None if a function returns them. */
  readonly limits: readonly Limit[]
  /** The same as a set, if all keys have the same. */
  readonly set: LimitSet | undefined
  readonly #limitsOf: LimitsOf
  readonly #ban: ReturnType<typeof banLog> | undefined
  readonly #isOverridable: boolean
  readonly #bare: LimitSet
  readonly #setOf = new WeakMap<object, LimitSet>()
  /** The same by what the limits are. The first is the oldest. */
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
    return { key, set: this.set ?? this.#returned((this.#limitsOf as LimitsFunction)(given, request)) }
  }

  /** The set of limits that the function has returned. */
  #returned(limits: readonly Limit[]): LimitSet {
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
    if (this.#setOfText.size > MAX_SETS) this.#setOfText.delete(this.#setOfText.keys().next().value!)
    this.#setOf.set(limits, set)
    return set
  }

  #made(limits: readonly Limit[]): LimitSet {
    const named = checkedLimits(limits).map((limit) =>
      this.name === undefined ? limit : limitIn(this.name, limit),
    )
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
}

/** What makes two limits differ. */
function textOf(declared: Limit): unknown {
  const { name, limit, windowMs, shadow, kind, rule } = declared
  return [name, kind.logName(declared), limit, windowMs, shadow, rule]
}

/** All dimensions of a limiter. */
export class KeyLimits {
  readonly dimensions: readonly Dimension[]
  /** How keys, ids and values are stored. */
  readonly spelling: Spelling
  /** The limits of every key. */
  readonly limits: readonly Limit[]
  /** The only dimension, if it has no name. */
  readonly #only: Dimension | undefined

  constructor(dimensions: readonly Dimension[], spelling: Spelling = plainSpelling) {
    this.dimensions = dimensions
    this.spelling = spelling
    this.limits = dimensions.flatMap(({ limits }) => limits)
    this.#only = dimensions[0]!.name === undefined ? dimensions[0] : undefined
  }

  /** The limits of every key, if all have the same and there are no dimensions. */
  get set(): LimitSet | undefined {
    return this.#only?.set
  }

  /**
   * The parts of a request.
   *
   * @throws {SlidegateError} `invalid_key`, and errors of a limits function
   */
  partsOf(key: AnyKey, request: unknown): readonly Part[] {
    const only = this.#only
    if (only !== undefined) return [only.partOf(key as string, this.spelling.key(key), request)]
    return this.keysOf(key).map(({ dimension, given, key }) => dimension.partOf(given, key, request))
  }

  /** The same of some dimensions, one at least. */
  somePartsOf(key: Partial<AnyKey>, request: unknown): readonly Part[] {
    return this.someKeysOf(key).map(({ dimension, given, key }) => dimension.partOf(given, key, request))
  }

  /** The key of each dimension. `null` keys are left out. */
  keysOf(key: AnyKey): readonly OneKey[] {
    if (this.#only !== undefined) return this.someKeysOf(key)
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
    return this.someKeysOf(key)
  }

  /** The same of some dimensions, one at least. */
  someKeysOf(key: Partial<AnyKey>): readonly OneKey[] {
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

/** The value of a dimension, which may have the name of an inherited property. */
export function ownOf<T>(values: Readonly<Partial<Record<string, T>>>, dimension: string): T | undefined {
  return Object.hasOwn(values, dimension) ? values[dimension] : undefined
}

/** Identifies a key of a limiter, or of a dimension. */
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
