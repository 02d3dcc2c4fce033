// A limiter as declared in the configuration, with plans and overrides.

import 'slidegate/calendar'
import {
  type AnyKey,
  type BanOptions,
  createLimiter,
  type DimensionOptions,
  type Duration,
  type Limit,
  type Limiter,
  type LimiterOptions,
  type LimitsOption,
  type Logger,
  limitOf,
  type Store,
} from 'slidegate'
import type { LimitConfig, LimiterConfig } from '../config/schema.ts'
import { fits } from './pattern.ts'

/** The schema has checked that the texts are durations. */
type Checked = LimiterConfig & { readonly ban?: BanOptions; readonly reservationTtl?: Duration }

/** The request that is passed to `limits`, if `limits` is a function. */
interface PlanRequest {
  readonly plan?: string | undefined
}

/** An operator's shadow switches for one limiter. */
export interface Shadowing {
  /** Whether a limit is in shadow mode, by limit name. `*` applies to all limits. */
  readonly [limit: string]: boolean
}

/** Limits by dimension. The empty name means a limiter without dimensions. */
export type ByDimension = ReadonlyMap<string, readonly Limit[]>

/** A limiter as declared in the file: its limits, plans and overrides. */
export class DeclaredLimiter {
  readonly name: string
  readonly config: LimiterConfig
  readonly shadowing: Shadowing
  readonly usual: ByDimension
  /** Whether a limit stores each unit of a cost separately. Such limits make large costs slow. */
  readonly keepsUnits: boolean
  readonly plans: ReadonlyMap<string, ByDimension>
  /** By dimension and key. */
  readonly #overrides = new Map<string, readonly Limit[]>()
  /** Key patterns and their plans, in file order. */
  readonly #planOf: readonly (readonly [pattern: string, plan: string])[]

  /** @throws {SlidegateError} for invalid limits */
  constructor(name: string, config: LimiterConfig, shadowing: Shadowing = {}) {
    this.name = name
    this.config = config
    this.shadowing = shadowing
    this.usual = this.#limitsIn(config)
    this.keepsUnits = keepsUnits(config)
    const plans = Object.entries(config.plans ?? {})
    this.plans = new Map(plans.map(([plan, rules]) => [plan, this.#limitsIn(rules)]))
    this.#planOf = plans.flatMap(([plan, { keys = [] }]) => keys.map((pattern) => [pattern, plan] as const))
    for (const { dimension = '', key, limits } of config.overrides || []) {
      this.#overrides.set(wordOf(dimension, key), this.#made(limits))
    }
  }

  /** Number of default limits, across all dimensions. */
  get limitCount(): number {
    let count = 0
    for (const limits of this.usual.values()) count += limits.length
    return count
  }

  get hasDimensions(): boolean {
    return this.config.dimensions !== undefined
  }

  /** Whether both limiters would make the same decisions. */
  isSameAs(other: DeclaredLimiter): boolean {
    return textOf(this) === textOf(other)
  }

  /**
   * @param minTimeoutMs shorter timeouts are raised to this one
   * @throws {SlidegateError} for invalid options
   */
  limiter(store: Store, logger: Logger | false = false, minTimeoutMs = 0): Limiter<AnyKey> {
    const { ban, plans, overrides, dimensions, choosePlan, shadow, limits, ...rest } = this.config as Checked
    const common = {
      ...rest,
      name: this.name,
      store,
      overrides: overrides !== false,
      logger,
      // Without this, the library would warn on each reload, because the old limiter with other limits is still open.
      warnings: false,
      ...(minTimeoutMs > (rest.timeoutMs ?? 0) && { timeoutMs: minTimeoutMs }),
    }
    const isFixed = plans === undefined && this.#overrides.size === 0
    const limitsOfDimension = (dimension: string): LimitsOption =>
      isFixed
        ? this.usual.get(dimension)!
        : (key, request) => this.#limitsFor(dimension, key, (request as PlanRequest | undefined)?.plan)
    if (dimensions === undefined) {
      const options: LimiterOptions = {
        ...common,
        limits: limitsOfDimension(''),
        ...(ban && { ban }),
      }
      return createLimiter(options) as Limiter<AnyKey>
    }
    const names = Object.keys(dimensions)
    const by = <Value>(value: (dimension: string) => Value) =>
      Object.fromEntries(names.map((dimension) => [dimension, value(dimension)]))
    const options: DimensionOptions<string> = {
      ...common,
      dimensions: by(limitsOfDimension),
      ...(ban && { ban: by(() => ban) }),
    }
    return createLimiter(options)
  }

  /** Declared overrides, by dimension and key. */
  get overrides(): ReadonlyMap<string, readonly Limit[]> {
    return this.#overrides
  }

  hasOverride(dimension: string, key: string): boolean {
    return this.#overrides.has(wordOf(dimension, key))
  }

  /** All sets of limits in a dimension, including those from plans and overrides. */
  setsOf(dimension: string): readonly (readonly Limit[])[] {
    const sets = [this.usual, ...this.plans.values()].flatMap((limits) => {
      const found = limits.get(dimension)
      return found === undefined ? [] : [found]
    })
    const single = Array.from(this.#overrides).filter(([word]) => JSON.parse(word)[0] === dimension)
    return [...sets, ...single.map(([, limits]) => limits)]
  }

  #limitsFor(dimension: string, key: string, chosen: string | undefined): readonly Limit[] {
    const own = this.#overrides.get(wordOf(dimension, key))
    if (own !== undefined) return own
    const plan = chosen ?? this.#planOf.find(([pattern]) => fits(pattern, key))?.[1]
    return (
      (plan === undefined ? undefined : this.plans.get(plan)?.get(dimension)) ?? this.usual.get(dimension)!
    )
  }

  #limitsIn({ limits, dimensions }: Pick<LimiterConfig, 'limits' | 'dimensions'>): ByDimension {
    const given = dimensions === undefined ? { '': limits ?? [] } : dimensions
    return new Map(Object.entries(given).map(([dimension, each]) => [dimension, this.#made(each)]))
  }

  #made(limits: readonly LimitConfig[]): readonly Limit[] {
    return limits.map((config) => {
      const limit = limitOf(config)
      const byWord = new Map(Object.entries(this.shadowing))
      const shadow = byWord.get(limit.name) ?? byWord.get('*') ?? (this.config.shadow || limit.shadow)
      return shadow === limit.shadow ? limit : limitOf({ ...config, shadow })
    })
  }
}

function keepsUnits(config: LimiterConfig): boolean {
  const { plans = {}, overrides } = config
  const rules: readonly Pick<LimiterConfig, 'limits' | 'dimensions'>[] = [
    config,
    ...Object.values(plans),
    ...(overrides || []),
  ]
  return rules
    .flatMap(({ limits = [], dimensions = {} }) => [limits, ...Object.values(dimensions)])
    .flat()
    .some((limit) => limit.kind === 'concurrency' || ('log' in limit && limit.log === 'zset'))
}

function wordOf(dimension: string, key: string): string {
  return JSON.stringify([dimension, key])
}

function textOf({ config, shadowing }: DeclaredLimiter): string {
  return JSON.stringify([config, shadowing])
}
