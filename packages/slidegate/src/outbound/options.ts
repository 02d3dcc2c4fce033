// The options of limitedFetch() and limitedInterceptor(), checked.
import { checkNames, checkOptions, invalidOption, type Names, show } from '../errors.ts'
import { isForHandlers } from '../limiter/request.ts'
import type { Limiter } from '../limiter.ts'
import { upstreamTerms } from './upstream-limiter.ts'

/** A request to be sent, as functions in the options get it. */
export interface OutboundRequest {
  readonly url: URL
  /** In upper case. */
  readonly method: string
}

/** Options of {@link OutboundOptions.retry}. */
export interface RetryOptions {
  /** Times a request is sent in all, an integer from 1 to 100. Default: 3. */
  readonly maxAttempts?: number
  /**
   * Maximum delay of an attempt in milliseconds, an integer from 0 to 2^31 - 1. If the upstream asks for more, its answer is
   * returned. Default: 30,000.
   */
  readonly maxDelayMs?: number
  /** Whether to retry a 429 for any method: safe if the upstream never executes what it refuses. Default: `false`. */
  readonly anyMethodOn429?: boolean
}

/** The options of `limitedFetch` and `limitedInterceptor`. */
export interface OutboundOptions {
  /**
   * The key that a request is charged to. Required with a `Client` or `Pool` of undici, which don't pass their origin. Default:
   * the origin of the URL, such as `https://api.example.com`.
   */
  readonly key?: string | ((request: OutboundRequest) => string)
  /** Units that the request takes, an integer from 1, else `invalid_cost`. Default: 1. */
  readonly cost?: number | ((request: OutboundRequest) => number)
  /** An integer. Waiting requests of this process are sent by priority, the highest first, then in order. Default: 0. */
  readonly priority?: number | ((request: OutboundRequest) => number)
  /** Maximum wait for slots in milliseconds, over all attempts, an integer from 0 to 2^31 - 1. Default: 30,000. */
  readonly maxWaitMs?: number
  /**
   * Whether to learn from answers: remaining units, lower limits, and when to retry. Requires a limiter of `upstreamLimiter`, for
   * which it is the default.
   */
  readonly learn?: boolean
  /**
   * Maximum time in milliseconds for which one answer can hold back a key, an integer from 10 to 2^31 - 1. Default: 300,000
   * (5 minutes).
   */
  readonly maxHoldMs?: number
  /**
   * Retries after a 429, a 503 or a failed connection, with a random delay: for GET, HEAD, OPTIONS, TRACE, PUT and DELETE, unless
   * the body is a stream. Each attempt waits for its own slot and is charged. `false` disables retries.
   */
  readonly retry?: RetryOptions | false
}

/** The default key. */
export function originOfUrl({ url }: OutboundRequest): string {
  return url.origin
}

/** The options, checked and completed. */
export interface OutboundSettings {
  readonly limiter: Limiter
  readonly keyOf: (request: OutboundRequest) => string
  readonly costOf: (request: OutboundRequest) => number
  readonly priorityOf: (request: OutboundRequest) => number
  readonly maxWaitMs: number
  readonly learn: boolean
  readonly maxHoldMs: number
  readonly retry: Required<RetryOptions>
}

const MAX_MS = 2 ** 31 - 1

const NAMES: Names<OutboundOptions> = {
  ...{ key: true, cost: true, priority: true, maxWaitMs: true, learn: true, maxHoldMs: true, retry: true },
}

const NO_RETRY: Required<RetryOptions> = { maxAttempts: 1, maxDelayMs: 0, anyMethodOn429: false }

/** @throws {SlidegateError} `invalid_option` */
export function outboundSettings(limiter: Limiter, options: OutboundOptions = {}): OutboundSettings {
  if (typeof limiter?.wait !== 'function' || typeof limiter.charge !== 'function') {
    throw invalidOption(
      `the limiter is ${show(limiter)}; it must be one of createLimiter or upstreamLimiter`,
      limiter,
    )
  }
  const held = limiter.limits.find(isForHandlers)
  if (held !== undefined) {
    throw invalidOption(
      `the limit ${show(held.name)} cannot be held here; call the limited fetch in schedule() of another limiter`,
      held.name,
    )
  }
  checkOptions(options, 'a limited fetch', NAMES)
  const { key, cost = 1, priority = 0, maxWaitMs = 30_000, maxHoldMs = 300_000, retry = {} } = options
  const canLearn = upstreamTerms(limiter) !== undefined
  const { learn = canLearn } = options
  checkBoolean(learn, 'learn')
  if (learn && !canLearn) {
    throw invalidOption('learn is true; that needs a limiter made by upstreamLimiter()', learn)
  }
  checkInteger(maxWaitMs, 'maxWaitMs', 0)
  checkInteger(maxHoldMs, 'maxHoldMs', 10)
  return {
    limiter,
    keyOf: asFunction(key ?? originOfUrl, 'key', 'string'),
    costOf: asFunction(cost, 'cost', 'number'),
    priorityOf: asFunction(priority, 'priority', 'number'),
    maxWaitMs,
    learn,
    maxHoldMs,
    retry: retry === false ? NO_RETRY : parseRetry(retry),
  }
}

function parseRetry(retry: RetryOptions): Required<RetryOptions> {
  if (typeof retry !== 'object' || retry === null) {
    throw invalidOption(`retry is ${show(retry)}; it must be false or { maxAttempts, maxDelayMs }`, retry)
  }
  checkNames(retry, { maxAttempts: true, maxDelayMs: true, anyMethodOn429: true }, 'invalid_option', 'retry')
  const { maxAttempts = 3, maxDelayMs = 30_000, anyMethodOn429 = false } = retry
  checkInteger(maxAttempts, 'retry.maxAttempts', 1, 100)
  checkInteger(maxDelayMs, 'retry.maxDelayMs', 0)
  checkBoolean(anyMethodOn429, 'retry.anyMethodOn429')
  return { maxAttempts, maxDelayMs, anyMethodOn429 }
}

function asFunction<T extends string | number>(
  given: T | ((request: OutboundRequest) => T),
  what: string,
  type: 'string' | 'number',
): (request: OutboundRequest) => T {
  if (typeof given === 'function') return given
  if (typeof given !== type) {
    throw invalidOption(
      `${what} is ${show(given)}; it must be a ${type} or a function that returns one`,
      given,
    )
  }
  return () => given
}

function checkInteger(value: unknown, what: string, least: number, most = MAX_MS): void {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return
  const end = most === MAX_MS ? '2^31 - 1' : most
  throw invalidOption(`${what} is ${show(value)}; it must be an integer from ${least} to ${end}`, value)
}

function checkBoolean(value: unknown, what: string): void {
  if (typeof value === 'boolean') return
  throw invalidOption(`${what} is ${show(value)}; it must be true or false`, value)
}
