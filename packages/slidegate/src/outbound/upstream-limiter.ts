// upstreamLimiter(): the limits of another service, with a margin.
import { checkOptions, invalidOption, type Names, SlidegateError, show } from '../errors.ts'
import { COMMON_NAMES, createLimiter } from '../limiter/create-limiter.ts'
import type { Limiter, LimiterOptions } from '../limiter.ts'
import { checkForm, nameOf, parseLimit } from '../limits/declare.ts'
import type { Limit } from '../limits/limit.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'

/** A limit that the upstream published. */
export interface UpstreamLimit {
  /** Units per window, an integer from 1 to 2^40. */
  readonly limit: number
  /** Length of its window, from 10 ms to 366 days. */
  readonly window: Duration
  /** The name in decisions and metrics. Default: like `50-per-10s`. */
  readonly name?: string
}

/** Options of {@link upstreamLimiter}. */
export interface UpstreamLimiterOptions
  extends Omit<LimiterOptions, 'limits' | 'overrides' | 'ban' | 'dimensions'> {
  /** The upstream's limits, 1 to 64, each with a different window. */
  readonly limits: readonly UpstreamLimit[]
  /**
   * Milliseconds by which our windows are longer than the upstream's, an integer from 1 to the shortest window. Default: a
   * twentieth of the shortest window.
   *
   * The margin allows for requests that arrive late, and for clocks that differ. A request that takes longer counts from its
   * answer on. The margin costs its share of the rate: 500 ms of `50` per `10s` leave 95 %. All processes that share the limits
   * must use the same margin.
   */
  readonly marginMs?: number
}

const { overrides: _overrides, ...COMMON } = COMMON_NAMES
const NAMES: Names<UpstreamLimiterOptions> = { limits: true, marginMs: true, ...COMMON }

/** The limits of an upstream, without and with the margin. */
export interface Terms {
  readonly marginMs: number
  /** The upstream's own windows. */
  readonly windowsMs: readonly number[]
  /** The limits in force, with the margin. */
  readonly limits: readonly Limit[]
}

/** A learned limit expires after this long without another answer. */
const LEARNED_TTL = '1d'

const termsOf = new WeakMap<object, Terms>()

/** Undefined for a limiter that was not made by {@link upstreamLimiter}. */
export function upstreamTerms(limiter: object): Terms | undefined {
  return termsOf.get(limiter)
}

/** Sets the units of each limit of a key. A blocked key stays blocked. */
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
 * Creates a limiter for requests to another service, with the limits that it published, for `limitedFetch`.
 *
 * Learned limits are overrides: `limiter.overrides.delete(key)` forgets them.
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
      `limits is ${show(limits)}; it must be an array with at least one of { limit, window }`,
      limits,
    )
  }
  const parsed = Array.from(limits as readonly UpstreamLimit[], (each) => {
    checkForm(each, '{ limit, window }', { limit: true, window: true, name: true })
    const limit = parseLimit(each.limit)
    const windowMs = parseWindow(each.window)
    return { limit, windowMs, name: each.name ?? nameOf(limit, windowMs) }
  })
  // Reports about limits are matched by window.
  const twice = parsed.find(({ windowMs }, i) =>
    parsed.some((other, j) => j < i && other.windowMs === windowMs),
  )
  if (twice === undefined) return parsed
  throw new SlidegateError(
    'duplicate_limit',
    `two limits have a window of ${twice.windowMs} ms; give the lower one only`,
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
