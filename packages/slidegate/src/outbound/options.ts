// The options for limitedFetch() and limitedInterceptor(), and their checks.
import { checkNames, checkOptions, invalidOption, type Names, show } from '../errors.ts'
import { isForHandlers } from '../limiter/request.ts'
import type { Limiter } from '../limiter.ts'
import { upstreamTerms } from './upstream-limiter.ts'

/** An outbound request, as passed to functions in the options. */
export interface OutboundRequest {
  readonly url: URL
  /** In upper case. */
  readonly method: string
}

/** Options for {@link OutboundOptions.retry}. */
export interface RetryOptions {
  /** Maximum number of times a request is sent, an integer from 1 to 100. Default: 3. */
  readonly maxAttempts?: number
  /**
   * Maximum delay before a retry in milliseconds, an integer from 0 to 2^31 - 1. If the upstream requests a longer delay, the
   * request isn't retried and the response is returned. Default: 30,000.
   */
  readonly maxDelayMs?: number
  /**
   * Whether to retry a 429 for any method. This is safe if the upstream never executes requests that it rejects. Default:
   * `false`.
   */
  readonly anyMethodOn429?: boolean
}

/** The options for `limitedFetch` and `limitedInterceptor`. */
export interface OutboundOptions {
  /**
   * The key that a request is charged to. Default: the URL's origin, such as `https://api.example.com`. Required for undici's
   * `Client` and `Pool`, which don't provide their origin.
   */
  readonly key?: string | ((request: OutboundRequest) => string)
  /** The units that the request costs, a positive integer. Default: 1. */
  readonly cost?: number | ((request: OutboundRequest) => number)
  /**
   * The priority, an integer. This process sends waiting requests in order of priority, highest first, then in order of
   * arrival. Default: 0.
   */
  readonly priority?: number | ((request: OutboundRequest) => number)
  /** Maximum total wait across all attempts in milliseconds, from 0 to 2^31 - 1. Default: 30,000. */
  readonly maxWaitMs?: number
  /**
   * Whether to learn from responses: remaining units, lower limits, and when to retry. Requires an `upstreamLimiter`. Default:
   * `true` for an `upstreamLimiter`.
   */
  readonly learn?: boolean
  /**
   * Maximum time in milliseconds that one response can hold back a key's requests. An integer from 10 to 2^31 - 1. Default:
   * 300,000 (5 minutes).
   */
  readonly maxHoldMs?: number
  /**
   * Retries after a 429, a 503 or a failed connection. `false` disables them.
   *
   * GET, HEAD, OPTIONS, TRACE, PUT and DELETE requests are retried, unless the body is a stream. Delays are random. Each
   * attempt waits for the limiter and is charged.
   */
  readonly retry?: RetryOptions | false
}

/** Returns the default key. */
export function originOfUrl({ url }: OutboundRequest): string {
  return url.origin
}

/** The checked options, with defaults. */
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
      `the limiter is ${show(limiter)}; it must come from createLimiter or upstreamLimiter`,
      limiter,
    )
  }
  const held = limiter.limits.find(isForHandlers)
  if (held !== undefined) {
    throw invalidOption(
      `the limit ${show(held.name)} can't be used here; use it in another limiter, around the limited fetch`,
      held.name,
    )
  }
  checkOptions(options, 'a limited fetch', NAMES)
  const { key, cost = 1, priority = 0, maxWaitMs = 30_000, maxHoldMs = 300_000, retry = {} } = options
  const canLearn = upstreamTerms(limiter) !== undefined
  const { learn = canLearn } = options
  checkBoolean(learn, 'learn')
  if (learn && !canLearn) {
    throw invalidOption('learn is true, which requires a limiter from upstreamLimiter', learn)
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
