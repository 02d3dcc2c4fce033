// Creates limiters and checks their options.
import { checkOptions, checkThat, invalidOption, type Names } from '../errors.ts'
import { type AnyKey, encodingBy, type Keys } from '../key.ts'
import type { CommonOptions, DimensionOptions, Limiter, LimiterOptions } from '../limiter.ts'
import { parseFlag, parseName } from '../limits/declare.ts'
import { guardStore } from '../resilience/guard.ts'
import { Dimension, KeyLimits, ownOf } from './dimensions.ts'
import { StoreLimiter } from './store-limiter.ts'

/** The names of {@link CommonOptions}. */
export const COMMON_NAMES: Names<CommonOptions> = {
  ...{ name: true, store: true, timeoutMs: true, onStoreError: true, instances: true, breaker: true },
  ...{
    logger: true,
    warnings: true,
    overrides: true,
    maxWaiting: true,
    reservationTtl: true,
    hashKeys: true,
  },
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
  return new StoreLimiter(name, keys, guardStore(name, options, keys.sets), options)
}

const MAX_DIMENSIONS = 16
const DIMENSION = /^[A-Za-z0-9_-]{1,64}$/

function dimensionsOf(name: string, options: LimiterOptions | DimensionOptions<string>): Dimension[] {
  const { dimensions, limits, ban: bans = {}, overrides: isOverridable = false, warnings = true } = options
  parseFlag(isOverridable, 'overrides', 'invalid_option')
  parseFlag(warnings, 'warnings', 'invalid_option')
  if (dimensions === undefined) {
    const { limits, ban } = options as LimiterOptions
    return [new Dimension(name, undefined, { limits, ban, isOverridable })]
  }
  if (limits !== undefined) {
    throw invalidOption('got both limits and dimensions; pass only one of them', limits)
  }
  const isGiven = typeof dimensions === 'object' && !Array.isArray(dimensions)
  const given = isGiven ? Object.entries(dimensions ?? {}) : []
  const isRight = given.length > 0 && given.length <= MAX_DIMENSIONS
  const right = `an object with the limits of 1 to ${MAX_DIMENSIONS} dimensions`
  checkThat(isRight, 'dimensions', dimensions, right)
  checkOptions(bans, 'ban with dimensions', dimensions as unknown as Names<typeof bans>)
  return given.map(([dimension, limits]) => {
    const isName = DIMENSION.test(dimension)
    checkThat(isName, 'the dimension', dimension, '1 to 64 of A-Z a-z 0-9 _ -', 'invalid_name')
    const ban = ownOf(bans as NonNullable<DimensionOptions<string>['ban']>, dimension)
    return new Dimension(name, dimension, { limits, ban, isOverridable })
  })
}
