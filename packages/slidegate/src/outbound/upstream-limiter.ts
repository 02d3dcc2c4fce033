// upstreamLimiter(): a limiter for another service's limits, with a margin.
import { checkOptions, invalidOption, type Names, SlidegateError, show } from '../errors.ts'
import { COMMON_NAMES, createLimiter } from '../limiter/create-limiter.ts'
import type { Limiter, LimiterOptions } from '../limiter.ts'
import { checkForm, nameOf, parseLimit } from '../limits/declare.ts'
import type { Limit } from '../limits/limit.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'

/** A limit that the upstream documents. */
export interface UpstreamLimit {
  /** Units per window, an integer from 1 to 2^40. */
  readonly limit: number
  /** Length of the window, from 10 ms to 366 days. */
  readonly window: Duration
  /** The name in decisions and metrics. Default: a name such as `50-per-10s`. */
  readonly name?: string
}

/** Options for {@link upstreamLimiter}. */
export interface UpstreamLimiterOptions
  extends Omit<LimiterOptions, 'limits' | 'overrides' | 'ban' | 'dimensions'> {
  /** The upstream's limits, 1 to 64, each with a different window. */
  readonly limits: readonly UpstreamLimit[]
  /**
   * Milliseconds added to each window, an integer from 1 to the shortest window. Default: a twentieth of the shortest window.
   *
   * The margin allows for network delays and clock differences. A request that takes longer than the margin counts from
   * the time of its response. The margin lowers the rate: with a margin of 500 ms, a limit of 50 per 10 s allows 95% of that
   * rate. All processes that share the limits must use the same margin.
   */
  readonly marginMs?: number
}

const { overrides: _overrides, ...COMMON } = COMMON_NAMES
const NAMES: Names<UpstreamLimiterOptions> = { limits: true, marginMs: true, ...COMMON }

/** An upstream's limits, without and with the margin. */
export interface Terms {
  readonly marginMs: number
  /** The upstream's own windows. */
  readonly windowsMs: readonly number[]
  /** The limiter's limits, with the margin. */
  readonly limits: readonly Limit[]
}

/** A learned limit expires after this long without a new response. */
const LEARNED_TTL = '1d'

const termsOf = new WeakMap<object, Terms>()

/** Returns `undefined` for a limiter that isn't from {@link upstreamLimiter}. */
export function upstreamTerms(limiter: object): Terms | undefined {
  return termsOf.get(limiter)
}

/** Sets the units for each of a key's limits. A blocked key remains blocked. */
export async function setLearnedLimits(
  limiter: Limiter,
  { limits }: Terms,
  key: string,
  units: readonly number[],
): Promise<void> {
  const numbers = limits.map(({ name }, i) => [name, { limit: units[i]! }])
  await limiter.overrides.set(key, Object.fromEntries(numbers), { ttl: LEARNED_TTL })
}

/**
 * Creates a limiter for `limitedFetch` from the limits that another service documents.
 *
 * Learned limits are stored as overrides: `limiter.overrides.delete(key)` removes them.
 *
 * @throws {SlidegateError} `invalid_limit`, `invalid_duration`, `invalid_name`, `duplicate_limit`, `invalid_option`
 */
export function upstreamLimiter(options: UpstreamLimiterOptions): Limiter {
  checkOptions(options, 'upstreamLimiter', NAMES)
  const { limits: declared, marginMs: margin, ...common } = options
  const parsed = parseLimits(declared)
  const windowsMs = parsed.map(({ windowMs }) => windowMs)
  const marginMs = parseMargin(margin, Math.min(...windowsMs))
  const limits = parsed.map(({ limit, windowMs, name }) =>
    slidingWindow({ limit, window: windowMs + marginMs, name }),
  )
  const limiter = createLimiter({ ...common, limits, overrides: true })
  termsOf.set(limiter, { marginMs, windowsMs, limits })
  return limiter
}

interface ParsedLimit {
  readonly limit: number
  readonly windowMs: number
  readonly name: string
}

function parseLimits(limits: unknown): readonly ParsedLimit[] {
  if (!Array.isArray(limits) || limits.length === 0) {
    throw new SlidegateError(
      'invalid_limit',
      `limits is ${show(limits)}; it must be an array with at least one { limit, window }`,
      limits,
    )
  }
  const parsed = Array.from(limits as readonly UpstreamLimit[], (each) => {
    checkForm(each, '{ limit, window }', { limit: true, window: true, name: true })
    const limit = parseLimit(each.limit)
    const windowMs = parseWindow(each.window)
    return { limit, windowMs, name: each.name ?? nameOf(limit, windowMs) }
  })
  // Response headers are matched to limits by window, so no two limits may have the same window.
  const twice = parsed.find(({ windowMs }, i) =>
    parsed.some((other, j) => j < i && other.windowMs === windowMs),
  )
  if (twice === undefined) return parsed
  throw new SlidegateError(
    'duplicate_limit',
    `two limits have a window of ${twice.windowMs} ms; keep only the lower limit`,
    twice.windowMs,
  )
}

function parseMargin(marginMs: unknown, shortestMs: number): number {
  if (marginMs === undefined) return Math.ceil(shortestMs / 20)
  if (!Number.isInteger(marginMs) || (marginMs as number) < 1 || (marginMs as number) > shortestMs) {
    throw invalidOption(
      `marginMs is ${show(marginMs)}; it must be an integer from 1 to the shortest window, ${shortestMs}`,
      marginMs,
    )
  }
  return marginMs as number
}
