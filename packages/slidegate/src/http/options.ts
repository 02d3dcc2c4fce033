import type { Decision } from '../decision.ts'
import { SlidegateError, show } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import type { Limit } from '../limits/limit.ts'
import type { Store } from '../stores/store.ts'
import { HEADER_GENERATIONS, type HeaderGeneration } from './headers.ts'

/** What a framework hands to its handlers; the first is, or carries, the request. */
export type HandlerArguments = readonly [request: unknown, ...rest: unknown[]]

/**
 * The options of `rateLimit`, the same for every framework: a `limiter`, or the `limits` to make one from.
 *
 * The functions may be async. What they throw is an error of the request, as everywhere in the framework; it
 * never lets the request past the limit.
 */
export interface GuardOptions<Args extends HandlerArguments> {
  /** A limiter of {@link createLimiter}, for instance one that other routes share. Excludes `name`, `limits` and `store`. */
  readonly limiter?: Limiter
  /** The name of the limiter that is made from `limits`. Default: `default`. Limiters of one name in one store count together. */
  readonly name?: string
  /** The limits of every caller. */
  readonly limits?: readonly Limit[]
  /** Where the state of the limiter that is made from `limits` lives. Default: the memory of this process. */
  readonly store?: Store
  /**
   * Whom the limits count. Default: the client's address, see {@link addressKey}. No key is an error
   * (`invalid_key`), not a way around the limits: use `skip` for those who are not counted.
   */
  readonly key?: (request: Args[0]) => string | Promise<string>
  /** Units that the request takes: an integer from 1, else `invalid_cost`. Default: 1. */
  readonly cost?: (request: Args[0]) => number | Promise<number>
  /** Whether the request passes uncounted and without headers: only for `true`. Default: none does. */
  readonly skip?: (request: Args[0]) => boolean | Promise<boolean>
  /**
   * Which generation of rate limit headers responses carry: `draft-11` (`RateLimit` and `RateLimit-Policy`
   * over all limits), `draft-7` (the same names over the tightest limit), `legacy` (`X-RateLimit-*`) or
   * none with `false`. A denial has `Retry-After` in any case. Default: `draft-11`.
   */
  readonly headers?: HeaderGeneration | false
  /** Answers a denied request in place of the problem body, after the headers were set. Default: status 429 and RFC 9457. */
  readonly onDenied?: (decision: Decision, ...args: Args) => unknown
}

/** Refuses options that contradict each other or are not what they should be. */
export function checkOptions<Args extends HandlerArguments>(options: GuardOptions<Args>): void {
  if (typeof options !== 'object' || options === null) {
    throw invalid(
      `the options are ${show(options)}; they must be an object with limits or a limiter`,
      options,
    )
  }
  const { limiter, limits, headers } = options
  if (limiter === undefined && limits === undefined) {
    throw invalid('neither limits nor a limiter are given; give one of them', options)
  }
  if (limiter !== undefined && typeof limiter?.consume !== 'function') {
    throw invalid(`the limiter is ${show(limiter)}; it must be one of createLimiter`, limiter)
  }
  for (const name of ['name', 'limits', 'store'] as const) {
    if (limiter !== undefined && options[name] !== undefined) {
      throw invalid(
        `both a limiter and ${name} are given; ${name} belongs into createLimiter then`,
        options[name],
      )
    }
  }
  for (const limit of limiter?.limits ?? (Array.isArray(limits) ? limits : [])) {
    // What is no limit createLimiter refuses.
    const are = limit?.kind?.entries?.are
    if (are === 'holder' || are === 'value') {
      throw invalid(
        `the limit ${show(limit.name)} cannot be held here: a middleware neither releases what is held nor knows values; ask its limiter in the handler`,
        limit.name,
      )
    }
  }
  for (const name of ['key', 'cost', 'skip', 'onDenied'] as const) {
    if (options[name] !== undefined && typeof options[name] !== 'function') {
      throw invalid(`${name} is ${show(options[name])}; it must be a function`, options[name])
    }
  }
  const isGeneration = typeof headers === 'string' && Object.hasOwn(HEADER_GENERATIONS, headers)
  if (headers !== undefined && headers !== false && !isGeneration) {
    throw invalid(`headers is ${show(headers)}; it must be 'draft-11', 'draft-7', 'legacy' or false`, headers)
  }
}

function invalid(message: string, value: unknown): SlidegateError {
  return new SlidegateError('invalid_option', message, value)
}
