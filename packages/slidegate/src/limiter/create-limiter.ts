// Creates limiters and checks their options.
import { checkOptions, invalidOption, type Names, show } from '../errors.ts'
import { type AnyKey, encodingBy, type Keys } from '../key.ts'
import type { CommonOptions, DimensionOptions, Limiter, LimiterOptions } from '../limiter.ts'
import { parseName } from '../limits/declare.ts'
import { guardStore } from '../resilience/guard.ts'
import { Dimension, KeyLimits, ownOf, parseDimension } from './dimensions.ts'
import { StoreLimiter } from './store-limiter.ts'

/** The names of {@link CommonOptions}. */
export const COMMON_NAMES: Names<CommonOptions> = {
  ...{ name: true, store: true, timeoutMs: true, onStoreError: true, instances: true, breaker: true },
  ...{ logger: true, overrides: true, maxWaiting: true, reservationTtl: true, hashKeys: true },
}

const NAMES: Names<LimiterOptions | DimensionOptions<string>> = {
  ...{ limits: true, dimensions: true, ban: true },
  ...COMMON_NAMES,
}

/**
 * Creates a limiter.
 *
 * @throws {SlidegateError} `invalid_name`, `invalid_limit`, `duplicate_limit`, `invalid_duration`, `invalid_option`
 */
export function createLimiter<Dimension extends string>(
  options: DimensionOptions<Dimension>,
): Limiter<Keys<Dimension>>
export function createLimiter(options: LimiterOptions): Limiter
export function createLimiter(options: LimiterOptions | DimensionOptions<string>): Limiter<AnyKey> {
  checkOptions(options, 'createLimiter', NAMES)
  const name = parseName(options.name ?? 'default')
  const keys = new KeyLimits(dimensionsOf(name, options), encodingBy(options))
  return new StoreLimiter(name, keys, guardStore(name, options), options)
}

const MAX_DIMENSIONS = 16

function dimensionsOf(name: string, options: LimiterOptions | DimensionOptions<string>): Dimension[] {
  const { dimensions, limits, ban, overrides: isOverridable = false } = options
  if (typeof isOverridable !== 'boolean') {
    throw invalidOption(`overrides is ${show(isOverridable)}; it must be true or false`, isOverridable)
  }
  if (dimensions === undefined) {
    const { limits, ban } = options as LimiterOptions
    return [new Dimension(name, undefined, { limits, ban, isOverridable })]
  }
  if (limits !== undefined) {
    throw invalidOption('got both limits and dimensions; pass only one of them', limits)
  }
  const given = isRecord(dimensions) ? Object.entries(dimensions) : []
  if (given.length === 0 || given.length > MAX_DIMENSIONS) {
    throw invalidOption(
      `dimensions is ${show(dimensions)} with ${given.length} entries; it must be an object with the limits of 1 to ${MAX_DIMENSIONS} dimensions`,
      dimensions,
    )
  }
  if (ban !== undefined && !isRecord(ban)) {
    const right = given.map(([name]) => name).join(', ')
    throw invalidOption(
      `ban is ${show(ban)}; with dimensions, it must be an object with some of: ${right}`,
      ban,
    )
  }
  for (const dimension of Object.keys(ban ?? {})) {
    if (Object.hasOwn(dimensions, dimension)) continue
    throw invalidOption(`ban has ${show(dimension)}, which isn't one of the dimensions`, ban)
  }
  return given.map(([dimension, limitsOf]) => {
    const rules = {
      limits: limitsOf,
      isOverridable,
      ban: ownOf((ban ?? {}) as NonNullable<DimensionOptions<string>['ban']>, dimension),
    }
    return new Dimension(name, parseDimension(dimension), rules)
  })
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
