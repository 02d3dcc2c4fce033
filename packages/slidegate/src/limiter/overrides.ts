// Overrides for individual keys: other limits, exemptions and blocks.
import { checkOptions, invalidOption, SlidegateError, StoreUnavailableError, show } from '../errors.ts'
import type { AnyKey, KeyOptions } from '../key.ts'
import { originOf, parseLimit, parseName, redeclare, wrong } from '../limits/declare.ts'
import type { Limit, LimitNumbers } from '../limits/limit.ts'
import {
  declaredName,
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
import { MAX_RECORDS } from '../limits/window-log.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import type { Ask } from '../stores/call.ts'
import type { ExplainOutcome, OverrideOp, OverridesOutcome, Part } from '../stores/store.ts'
import type { Dimension, KeyLimits, OneKey } from './dimensions.ts'

/** New numbers for a limit. Omitted numbers keep their declared values. */
export interface LimitChange {
  /** Units per window, for all limits except token buckets. */
  readonly limit?: number
  /** Length of a sliding window. Can't be changed with `log: 'zset'` or `'stream'`, where each window length has its own log. */
  readonly window?: Duration
  /** Capacity of a token bucket, in tokens. */
  readonly capacity?: number
  /** Tokens refilled per interval of a token bucket. */
  readonly refill?: number
}

/**
 * What an override changes:
 * - `{ minute: { limit: 300 } }`: the numbers of limits, by name
 * - `{ limit: 300 }`: the same for a key with a single limit
 * - `'exempt'`: the key's limits count but never deny
 * - `'block'`: every request is denied
 */
export type OverrideChange = LimitChange | Readonly<Record<string, LimitChange>> | 'exempt' | 'block'

/** How long an override lasts. */
export interface OverrideOptions {
  /** From 10 ms to 366 days. Default: until it is deleted. */
  readonly ttl?: Duration | undefined
}

/** A key's override. */
export interface Override {
  /** The caller's key. With `hashKeys`: its stored form. */
  readonly key: string
  /** The key's dimension, if the limiter has dimensions. */
  readonly dimension?: string
  /** Numbers by limit name. `''` is the name of a key's only limit. */
  readonly limits?: Readonly<Record<string, LimitNumbers>>
  /** Set if the key's limits count but never deny. */
  readonly exempt?: true
  /** Milliseconds until the numbers or the exemption expire. Omitted if they never expire. */
  readonly expiresInMs?: number
  /** Milliseconds until the block ends, or `Infinity` if it never does. Omitted if the key isn't blocked. */
  readonly blockedMs?: number
  /** Names in `limits` that have no effect. The key has no such limit now, or the limit can't have these numbers. */
  readonly unused?: readonly string[]
}

/**
 * Changes the limits for individual keys, exempts keys, or blocks them.
 *
 * Each decision reads the key's override, so a change takes effect from the next request, in every process. The key's usage
 * still counts. A block expires independently of the numbers: neither affects the other.
 *
 * All methods reject with a `StoreUnavailableError` if the store doesn't answer. A change may have been written anyway.
 */
export interface Overrides<Key> {
  /**
   * Replaces a key's numbers or exemption, or blocks the key. Takes a key in one dimension.
   *
   * @throws {SlidegateError} `invalid_duration`, `invalid_precision`, `invalid_name`, `invalid_key` and `invalid_limit`.
   *   Limits without a `name` are rejected, too, because their default name changes with the numbers
   */
  set(key: Key, change: OverrideChange, options?: OverrideOptions): Promise<void>
  /** Returns the key's override, if it has one. */
  get(key: Key, options?: KeyOptions): Promise<Override | undefined>
  /** Removes the key's override, including a block. Resolves to whether there was one. */
  delete(key: Key): Promise<boolean>
  /** Lists all overrides, page by page. May miss changes made while it is running. */
  list(): AsyncIterable<Override>
}

type Change = Pick<OverrideOp, 'rule' | 'ruleMs' | 'blockMs'>

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
          const page: OverridesOutcome = await this.#ask({ type: 'overrides', parts, bucket, after })
          for (const { key, given = key, ...inForce } of page.overrides) {
            const limits = limitsNow(dimension, isSecret ? undefined : given)
            yield this.overrideOf({ dimension, given, key: given }, inForce, limits)
          }
          buckets = page.buckets
          if (page.next === after)
            throw new StoreUnavailableError('error', 'a page of overrides points to itself')
          after = page.next
        }
      }
    }
  }

  /** @param blockMs 0 removes the block and any ban */
  async block(key: Partial<AnyKey>, blockMs: number): Promise<void> {
    await this.#write(this.#blockable(key), { blockMs })
  }

  async isBlocked(key: Partial<AnyKey>): Promise<boolean> {
    return (await this.#explain(this.#blockable(key))).ban !== undefined
  }

  /** Returns the public form of an override. Without `limits`, `unused` can't be determined. */
  overrideOf(one: OneKey, inForce: InForce, limits: readonly Limit[] | undefined): Override {
    const { dimension, given, key } = one
    const { rule, ruleMs, blockedMs } = inForce
    const unused = limits === undefined ? [] : unusedNames(limits, rule)
    return {
      key: this.#keys.encoding.isSecret ? key : given,
      ...(dimension.name !== undefined && { dimension: dimension.name }),
      ...(rule === EXEMPT ? { exempt: true } : rule !== '' && { limits: numbersOf(rule) }),
      ...(rule !== '' && ruleMs !== FOREVER && { expiresInMs: ruleMs }),
      ...(blockedMs > 0 && { blockedMs: blockedMs === FOREVER ? Number.POSITIVE_INFINITY : blockedMs }),
      ...(unused.length > 0 && { unused }),
    }
  }

  #oneOf(key: Partial<AnyKey>): OneKey {
    const [one, other] = this.#keys.keysOf(key, false)
    if (other === undefined) return one!
    const message = 'the key has several dimensions; pass only one to set an override'
    throw new SlidegateError('invalid_key', message, key)
  }

  /** Returns the keys that can be blocked. Throws if no key can be blocked. */
  #blockable(key: Partial<AnyKey>): readonly OneKey[] {
    const keys = this.#keys.keysOf(key, false).filter(({ dimension }) => dimension.bareOf('') !== undefined)
    if (keys.length > 0) return keys
    const right = 'only with overrides: true or a ban option'
    throw invalidOption(`the limiter ${show(this.#limiter)} can block this key ${right}`, key)
  }

  #explain(keys: readonly OneKey[]): Promise<ExplainOutcome> {
    return this.#ask({ type: 'explain', parts: bareOf(keys), cost: 1, count: 1 })
  }

  async #write(keys: readonly OneKey[], fields: Change): Promise<boolean> {
    const { isSecret } = this.#keys.encoding
    const given = keys.map(({ given, key }) => (given === key || isSecret ? '' : given))
    const op: OverrideOp = { type: 'override', parts: bareOf(keys), ...fields }
    return (await this.#ask(given.join('') === '' ? op : { ...op, given })).existed
  }
}

function bareOf(keys: readonly OneKey[]): readonly Part[] {
  return keys.map(({ dimension, key }) => dimension.bareOf(key)!)
}

/** Returns a key's limits. `undefined` if the limits function needs a request or key that is missing here. */
function limitsNow(dimension: Dimension, given: string | undefined, request?: unknown) {
  if (dimension.set !== undefined) return dimension.set.limits
  try {
    return given === undefined ? undefined : dimension.partOf(given, '', request).set.limits
  } catch {
    return undefined
  }
}

function ruleOf(change: unknown, { set }: Dimension): Rule {
  if (change === 'exempt') return EXEMPT
  const limits = set?.limits
  if (typeof change !== 'object' || change === null || Object.keys(change).length === 0) {
    throw wrong('the override', change, "{ <name>: { limit, window } }, 'exempt' or 'block'")
  }
  const isOnly = Object.values(change).some((value) => typeof value !== 'object' || value === null)
  const byName = isOnly ? { [nameOfOnly(limits, change)]: change } : change
  const numbers = Object.entries(byName).map(([name, change]) => {
    const limit = limits === undefined ? undefined : limitNamed(name, limits)
    return [name, limit === undefined ? numbersIn(name, change) : numbersFor(limit, change)]
  })
  const rule = JSON.stringify(Object.fromEntries(numbers))
  if (isRule(rule)) return rule
  throw invalid(`the override takes ${rule.length} characters; at most ${MAX_RULE} are allowed`, change)
}

/** The name to store for numbers without a name: the limit's own, or {@link ONLY}. */
function nameOfOnly(limits: readonly Limit[] | undefined, change: unknown): string {
  const [only, ...others] = limits ?? []
  if (only === undefined) return ONLY
  if (others.length > 0) {
    const what = `the override is ${show(change)}, but the key has ${1 + others.length} limits`
    throw invalid(`${what}; name the limit: { ${declaredName(only)}: { ... } }`, change)
  }
  return originOf(only).isUnnamed ? ONLY : declaredName(only)
}

function limitNamed(name: string, limits: readonly Limit[]): Limit {
  if (name === ONLY && limits.length === 1) return limits[0]!
  const limit = limits.find((each) => declaredName(each) === name)
  if (limit === undefined) {
    const known = limits.map(declaredName).join(', ')
    throw invalid(`unknown limit ${show(name)}; expected one of: ${known}`, name)
  }
  if (!originOf(limit).isUnnamed) return limit
  const right = "declare it with a name, such as name: 'minute'"
  throw invalid(
    `the limit ${show(name)} has only a default name, which changes with its numbers; ${right}`,
    name,
  )
}

const FIELDS = ['limit', 'window', 'capacity', 'refill'] as const

/** Checks everything that doesn't depend on the limit. */
function numbersIn(name: string, change: unknown, known: readonly string[] = FIELDS): LimitNumbers {
  if (name !== ONLY) parseName(name)
  const fields = typeof change === 'object' && change !== null ? Object.keys(change) : []
  const unknown = fields.find((field) => !known.includes(field))
  if (fields.length === 0 || unknown !== undefined) {
    const what = unknown === undefined ? `is ${show(change)}` : `has ${show(unknown)}`
    throw invalid(`the override for ${show(name)} ${what}; it can change ${known.join(', ')}`, change)
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
  try {
    redeclare(declared, change as LimitChange)
  } catch (error) {
    const { windowMs = limit.windowMs } = numbers
    const isTooFine = error instanceof SlidegateError && error.code === 'invalid_precision'
    if (!isTooFine || windowMs < limit.precisionMs) throw error
    const precision = redeclare(declared, { ...(change as LimitChange), precision: undefined }).precisionMs
    const most = `with a precision of ${limit.precisionMs} ms, the maximum limit for ${show(name)} is ${MAX_RECORDS}`
    const right = `for more, declare it with precision: ${precision}, which resets its counts`
    throw invalid(`${most}; ${right}`, change)
  }
  if (renumber(limit, numbers) !== undefined) return numbers
  throw invalid(`the log of ${show(name)} has no room for this override; use smaller numbers`, change)
}

function isChangeable(declaration: object, field: (typeof FIELDS)[number]): boolean {
  const { kind, log } = declaration as { readonly kind: string; readonly log?: string }
  if (!Object.hasOwn(declaration, field)) return false
  return field !== 'window' || (kind === 'slidingWindow' && log === 'packed')
}

function invalid(message: string, value: unknown): SlidegateError {
  return new SlidegateError('invalid_limit', message, value)
}
