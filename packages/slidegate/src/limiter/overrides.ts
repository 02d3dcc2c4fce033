// Overrides of single keys: other numbers, exemptions and blocks.
import { checkOptions, invalidOption, SlidegateError, StoreUnavailableError, show } from '../errors.ts'
import type { AnyKey, KeyOptions } from '../key.ts'
import { declaredName, originOf, parseLimit, parseName, redeclare } from '../limits/declare.ts'
import type { Limit, LimitNumbers } from '../limits/limit.ts'
import {
  EXEMPT,
  FOREVER,
  type InForce,
  isRule,
  MAX_RULE,
  numbersOf,
  ONLY,
  type Rule,
  renumber,
  unusedNames,
} from '../limits/override.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import type { Ask } from '../stores/call.ts'
import type { ExplainOutcome, OverrideOp, OverrideOutcome, OverridesOutcome, Part } from '../stores/store.ts'
import type { Dimension, KeyLimits, OneKey } from './dimensions.ts'

/** New numbers of a limit. Numbers left out stay as declared. */
export interface LimitChange {
  /** Units per window, for all kinds but token buckets. */
  readonly limit?: number
  /** Length of a sliding window. Can't change with `log: 'zset'` or `'stream'`: each window has a log of its own. */
  readonly window?: Duration
  /** Tokens that a token bucket holds. */
  readonly capacity?: number
  /** Tokens that come back per interval of a token bucket. */
  readonly refill?: number
}

/**
 * The change that an override makes to a key:
 * - `{ minute: { limit: 300 } }`: other numbers, by the name of their limit
 * - `{ limit: 300 }`: the same, if the key has just one limit
 * - `'exempt'`: its limits only count and deny nothing
 * - `'block'`: every request is denied
 */
export type OverrideChange = LimitChange | Readonly<Record<string, LimitChange>> | 'exempt' | 'block'

/** How long an override lasts. */
export interface OverrideOptions {
  /** From 10 ms to 366 days. Default: until it is deleted. */
  readonly ttl?: Duration | undefined
}

/** The override of a key. */
export interface Override {
  /** The caller's key. With `hashKeys`: as it is stored. */
  readonly key: string
  /** The key's dimension, if the limiter has dimensions. */
  readonly dimension?: string
  /** Numbers by the name of their limit, `''` for the only limit. */
  readonly limits?: Readonly<Record<string, LimitNumbers>>
  /** Set if its limits only count. */
  readonly exempt?: true
  /** Milliseconds until the numbers or the exemption end. Left out if they don't. */
  readonly expiresInMs?: number
  /** Milliseconds until the block ends, `Infinity` if it doesn't. Left out if the key isn't blocked. */
  readonly blockedMs?: number
  /** Names in `limits` without effect. The key has no such limit now, or the numbers don't fit it. */
  readonly unused?: readonly string[]
}

/**
 * Sets other numbers, an exemption or a block for single keys.
 *
 * Each decision reads the override of its key, so a change is in force at the next request in every process. The usage of the
 * key still counts. A block has an end of its own: new numbers leave it, and it leaves the numbers.
 *
 * All methods reject with a `StoreUnavailableError` if the store doesn't respond. A change may have been written then.
 */
export interface Overrides<Key> {
  /**
   * Replaces the numbers or the exemption of a key, or blocks it. Takes the key of one dimension.
   *
   * @throws {SlidegateError} `invalid_limit`, also if the limit has no name of its own: a default name changes with the
   * numbers. `invalid_duration`, `invalid_precision`, `invalid_name`, `invalid_key`
   */
  set(key: Key, change: OverrideChange, options?: OverrideOptions): Promise<void>
  /** Returns the override of the key, if it has one. */
  get(key: Key, options?: KeyOptions): Promise<Override | undefined>
  /** Removes the override of the key, a block too. Returns whether it had one. */
  delete(key: Key): Promise<boolean>
  /** Lists all overrides, page by page. May miss what is written meanwhile. */
  list(): AsyncIterable<Override>
}

/** The fields that are written. Fields left out stay. */
type Change = Pick<OverrideOp, 'rule' | 'ruleMs' | 'blockMs'>

/** The overrides and blocks of a limiter's keys, in its store. */
export class StoredOverrides implements Overrides<Partial<AnyKey>> {
  readonly #limiter: string
  readonly #keys: KeyLimits
  readonly #ask: Ask

  constructor(limiter: string, keys: KeyLimits, ask: Ask) {
    this.#limiter = limiter
    this.#keys = keys
    this.#ask = ask
  }

  async set(key: Partial<AnyKey>, change: OverrideChange, options: OverrideOptions = {}): Promise<void> {
    const one = this.#oneOf(key)
    checkOptions(options, 'set', { ttl: true })
    const ms = options.ttl === undefined ? FOREVER : parseWindow(options.ttl, 'the ttl')
    const fields = change === 'block' ? { blockMs: ms } : { rule: ruleOf(change, one.dimension), ruleMs: ms }
    await this.#write([one], fields)
  }

  async get(key: Partial<AnyKey>, options?: KeyOptions): Promise<Override | undefined> {
    const one = this.#oneOf(key)
    const { overrides } = await this.#explain([one])
    const inForce = overrides?.[0]
    if (inForce === undefined) return undefined
    return this.overrideOf(one, inForce, limitsNow(one.dimension, one.given, options?.request))
  }

  async delete(key: Partial<AnyKey>): Promise<boolean> {
    return this.#write([this.#oneOf(key)], { rule: '', ruleMs: 0, blockMs: 0 })
  }

  async *list(): AsyncGenerator<Override> {
    const { isSecret } = this.#keys.encoding
    for (const dimension of this.#keys.dimensions) {
      const parts = [dimension.bareOf('')!]
      let buckets = 1
      for (let bucket = 0; bucket < buckets; bucket++) {
        for (let after: string | undefined = ''; after !== undefined; ) {
          const page = (await this.#ask({ type: 'overrides', parts, bucket, after })) as OverridesOutcome
          for (const { key, given = key, ...inForce } of page.overrides) {
            const limits = limitsNow(dimension, isSecret ? undefined : given)
            yield this.overrideOf({ dimension, given, key: given }, inForce, limits)
          }
          buckets = page.buckets
          if (page.next === after)
            throw new StoreUnavailableError('error', 'a page of overrides leads to itself')
          after = page.next
        }
      }
    }
  }

  /** @param blockMs 0 also forgets bans */
  async block(key: Partial<AnyKey>, blockMs: number): Promise<void> {
    await this.#write(this.#blockable(key), { blockMs })
  }

  async isBlocked(key: Partial<AnyKey>): Promise<boolean> {
    return (await this.#explain(this.#blockable(key))).ban !== undefined
  }

  /**
   * An override as it is returned.
   *
   * @param limits the limits of the key, if they are known
   */
  overrideOf(
    { dimension: { name }, given, key }: OneKey,
    { rule, ruleMs, blockedMs }: InForce,
    limits: readonly Limit[] | undefined,
  ): Override {
    const unused = limits === undefined ? [] : unusedNames(limits, rule)
    return {
      key: this.#keys.encoding.isSecret ? key : given,
      ...(name !== undefined && { dimension: name }),
      ...(rule === EXEMPT ? { exempt: true } : rule !== '' && { limits: numbersOf(rule) }),
      ...(rule !== '' && ruleMs !== FOREVER && { expiresInMs: ruleMs }),
      ...(blockedMs > 0 && { blockedMs: blockedMs === FOREVER ? Number.POSITIVE_INFINITY : blockedMs }),
      ...(unused.length > 0 && { unused }),
    }
  }

  #oneOf(key: Partial<AnyKey>): OneKey {
    const [one, other] = this.#keys.keysOf(key, false)
    if (other === undefined) return one!
    throw new SlidegateError('invalid_key', 'the key has several dimensions; an override is of one', key)
  }

  /** The keys that can be blocked, one at least. */
  #blockable(key: Partial<AnyKey>): readonly OneKey[] {
    const keys = this.#keys.keysOf(key, false).filter(({ dimension }) => dimension.bareOf('') !== undefined)
    if (keys.length > 0) return keys
    throw invalidOption(
      `the limiter ${show(this.#limiter)} never blocks this key; make it with overrides: true, or set its ban option`,
      key,
    )
  }

  async #explain(keys: readonly OneKey[]): Promise<ExplainOutcome> {
    return (await this.#ask({ type: 'explain', parts: bareOf(keys), cost: 1, count: 1 })) as ExplainOutcome
  }

  /** Returns whether anything was in force before. */
  async #write(keys: readonly OneKey[], fields: Change): Promise<boolean> {
    const { isSecret } = this.#keys.encoding
    const given = keys.map(({ given, key }) => (given === key || isSecret ? '' : given))
    const op: OverrideOp = { type: 'override', parts: bareOf(keys), ...fields }
    const outcome = await this.#ask(given.join('') === '' ? op : { ...op, given })
    return (outcome as OverrideOutcome).existed
  }
}

function bareOf(keys: readonly OneKey[]): readonly Part[] {
  return keys.map(({ dimension, key }) => dimension.bareOf(key)!)
}

/** The limits of a key. `undefined` if their function needs a request or a key that isn't known. */
function limitsNow(
  dimension: Dimension,
  given: string | undefined,
  request?: unknown,
): readonly Limit[] | undefined {
  if (dimension.set !== undefined) return dimension.limits
  try {
    return given === undefined ? undefined : dimension.partOf(given, '', request).set.limits
  } catch {
    return undefined
  }
}

/** The rule that is stored for a change. */
function ruleOf(change: unknown, { set, limits: declared }: Dimension): Rule {
  if (change === 'exempt') return EXEMPT
  const limits = set === undefined ? undefined : declared
  if (typeof change !== 'object' || change === null || Object.keys(change).length === 0) {
    throw invalid(
      `the override is ${show(change)}; it must be { <name>: { limit, window } }, 'exempt' or 'block'`,
      change,
    )
  }
  const isOnly = Object.values(change).some((value) => typeof value !== 'object' || value === null)
  const byName = isOnly ? { [nameOfOnly(limits, change)]: change } : change
  const numbers = Object.entries(byName).map(([name, change]) => {
    const limit = limits === undefined ? undefined : limitNamed(name, limits)
    return [name, limit === undefined ? numbersIn(name, change) : numbersFor(limit, change)]
  })
  const rule = JSON.stringify(Object.fromEntries(numbers))
  if (isRule(rule)) return rule
  throw invalid(`the override takes ${rule.length} characters; it may take ${MAX_RULE}`, change)
}

/** The name under which numbers alone are stored: the limit's own, or {@link ONLY}. */
function nameOfOnly(limits: readonly Limit[] | undefined, change: unknown): string {
  const only = limits?.[0]
  if (limits === undefined || only === undefined) return ONLY
  if (limits.length > 1) {
    throw invalid(
      `the override is ${show(change)}, but the key has ${limits.length} limits; say which: { ${declaredName(only)}: { ... } }`,
      change,
    )
  }
  return originOf(only).isUnnamed ? ONLY : declaredName(only)
}

function limitNamed(name: string, limits: readonly Limit[]): Limit {
  if (name === ONLY && limits.length === 1) return limits[0]!
  const limit = limits.find((each) => declaredName(each) === name)
  if (limit === undefined) {
    const known = limits.map(declaredName).join(', ')
    throw invalid(`there is no limit ${show(name)}; there is ${known}`, name)
  }
  if (!originOf(limit).isUnnamed) return limit
  throw invalid(
    `the limit ${show(name)} has no name of its own, and its default name changes with its numbers; declare it with a name, like name: 'minute'`,
    name,
  )
}

const FIELDS = ['limit', 'window', 'capacity', 'refill'] as const

/** Checks what can be checked without knowing the limit. */
function numbersIn(name: string, change: unknown, known: readonly string[] = FIELDS): LimitNumbers {
  if (name !== ONLY) parseName(name)
  const fields = typeof change === 'object' && change !== null ? Object.keys(change) : []
  const unknown = fields.find((field) => !known.includes(field))
  if (fields.length === 0 || unknown !== undefined) {
    const what = unknown === undefined ? `is ${show(change)}` : `has ${show(unknown)}`
    throw invalid(`the override of ${show(name)} ${what}; it can change ${known.join(', ')}`, change)
  }
  const { limit, window, capacity, refill } = change as LimitChange
  return {
    ...(limit !== undefined && { limit: parseLimit(limit) }),
    ...(window !== undefined && { windowMs: parseWindow(window) }),
    ...(capacity !== undefined && { capacity: parseLimit(capacity, 'the capacity') }),
    ...(refill !== undefined && { refill: parseLimit(refill, 'the refill') }),
  }
}

/** Checks the numbers as if the limit were declared with them. */
function numbersFor(limit: Limit, change: unknown): LimitNumbers {
  const name = declaredName(limit)
  const { limit: declared, options } = originOf(limit)
  const known = FIELDS.filter((field) => isChangeable(options!, field))
  const numbers = numbersIn(name, change, known)
  redeclare(declared, change as LimitChange)
  if (renumber(limit, numbers) !== undefined) return numbers
  throw invalid(
    `the log of the limit ${show(name)} has no room for ${show(change)}; use smaller numbers`,
    change,
  )
}

function isChangeable(declaration: object, field: (typeof FIELDS)[number]): boolean {
  const { kind, log } = declaration as { readonly kind: string; readonly log?: string }
  return (
    Object.hasOwn(declaration, field) &&
    (field !== 'window' || (kind === 'slidingWindow' && log === 'packed'))
  )
}

function invalid(message: string, value: unknown): SlidegateError {
  return new SlidegateError('invalid_limit', message, value)
}
