// The options of rateLimit() that all frameworks share, their checks, and the limiter created from `limits`.
import type { Decision } from '../decision.ts'
import { checkThat, invalidOption, type Names, show } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import { createLimiter } from '../limiter/create-limiter.ts'
import { isForHandlers } from '../limiter/request.ts'
import type { Limiter } from '../limiter.ts'
import type { Limit } from '../limits/limit.ts'
import type { Duration } from '../runtime/duration.ts'
import type { Store } from '../stores/store.ts'
import type { ClientAddressOptions } from './client-address.ts'
import type { DeniedPolicy } from './denied.ts'
import { formatsOf, type HeadersOption } from './headers.ts'

/** The arguments that a framework passes to its handlers. The first is the request or contains it. */
export type HandlerArguments = readonly [request: unknown, ...rest: unknown[]]

/** The result of a Fetch API handler. Some platforms let a handler return no response, for example after an upgrade. */
export type HandlerResponse = Response | undefined | null

/** A response that was sent or cut off. */
export interface FinishedResponse {
  readonly status: number
  /** `false` if the client disconnected before the whole response was sent. */
  readonly isComplete: boolean
  /** Returns a response header. */
  header(name: string): string | undefined
}

/** Selects the responses after which the charge is refunded. */
export type RefundIf<Args extends HandlerArguments> =
  | 'successful'
  | 'failed'
  | ((response: FinishedResponse, ...args: Args) => boolean | Promise<boolean>)

/**
 * The options of `rateLimit` in every framework. Pass either a `limiter` or `limits`.
 *
 * Functions may be async. If a function throws, the request fails. It never bypasses the limit.
 */
export interface GuardOptions<Args extends HandlerArguments> {
  /**
   * A limiter from `createLimiter`, for example one that several routes share. Can't be combined with `name`, `limits` or
   * `store`.
   */
  readonly limiter?: Limiter | Limiter<Readonly<Record<string, string | null>>>
  /**
   * The name of the limiter created from `limits`. Limiters with the same name and store share their counts. Default: `default`.
   */
  readonly name?: string
  /** The limits for each key, or a function that returns them. */
  readonly limits?:
    | readonly Limit[]
    | ((key: string, request: Args[0]) => readonly Limit[] | Promise<readonly Limit[]>)
  /** The store for the limiter created from `limits`. Default: a memory store. */
  readonly store?: Store
  /**
   * Returns the key to limit, or an object of keys if the limiter has `dimensions`. If it returns no key, the request fails with
   * `invalid_key`. To exempt requests, use `skip`. Default: the client's address (see `addressKey`).
   */
  readonly key?: (request: Args[0]) => AnyKey | Promise<AnyKey>
  /**
   * How to find the client's address behind proxies. Used by the default `key`, `allow` and `deny`. Default: the address that the
   * framework reports.
   */
  readonly address?: ClientAddressOptions
  /** Returns the units that the request costs, a positive integer. Default: 1. */
  readonly cost?: (request: Args[0]) => number | Promise<number>
  /** Returns whether to exempt the request: it isn't counted, and its response gets no headers. */
  readonly skip?: (request: Args[0]) => boolean | Promise<boolean>
  /**
   * Addresses and networks of exempt clients, such as `10.0.0.0/8`. Their requests aren't counted, and the responses get no
   * headers.
   */
  readonly allow?: readonly string[]
  /** Addresses and networks of clients that get a 403. Overrides `allow` and `skip`. */
  readonly deny?: readonly string[]
  /** The action for denied requests, or a function that returns the action. Default: `reject`. */
  readonly denied?: DeniedPolicy | ((request: Args[0]) => DeniedPolicy | Promise<DeniedPolicy>)
  /**
   * The rate limit headers on responses. Default: `draft-11`.
   * - `draft-11`: `RateLimit` and `RateLimit-Policy` with all limits
   * - `draft-7`: the same headers, with the tightest limit only
   * - `draft-6`: `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`
   * - `legacy`: `X-RateLimit-*`
   * - an array of `legacy` and one of the others
   * - `false`: none; denials still have `Retry-After`
   */
  readonly headers?: HeadersOption
  /** `false` hides the limits: no headers, no `Retry-After`, and no limit names in bodies. Default: `true`. */
  readonly disclose?: boolean
  /**
   * The maximum random delay added to `Retry-After`, from 10 ms to 366 days. Default: none.
   *
   * Without jitter, all clients that were denied by a fixed or calendar window retry as soon as the window ends.
   */
  readonly retryJitter?: Duration
  /** Answers a denied request. The headers are already set. Default: status 429 and a problem body (RFC 9457). */
  readonly onDenied?: (decision: Decision, ...args: Args) => unknown
  /** Called for each admitted request, before its handler. Use it to pass the decision to the handler. */
  readonly onAllowed?: (decision: Decision, ...args: Args) => unknown
  /**
   * Selects the responses after which the charge is refunded. If the client disconnected, a response counts as neither
   * successful nor failed.
   * - `successful`: status below 400, for example to limit only failed logins
   * - `failed`: status 400 or above
   * - a function: responses for which it returns `true`
   */
  readonly refundIf?: RefundIf<Args>
  /**
   * Returns the units that the request actually cost, 0 or more. Called after the response. The difference from `cost` is
   * refunded or charged. A charge may exceed the limits.
   */
  readonly settle?: (response: FinishedResponse, ...args: Args) => number | Promise<number>
  /** Called if `refundIf`, `settle` or the store fails after the response. Default: logs the first error. */
  readonly onSettleError?: (error: unknown, ...args: Args) => unknown
  /**
   * `false` turns off process warnings about likely mistakes, such as a proxy that isn't trusted. Each warning is emitted once,
   * and only the first 10,000 requests are checked. Default: `true`.
   */
  readonly warnings?: boolean
}

/** The names of the options that all adapters share. An adapter can add its own. */
export const GUARD_NAMES: Names<GuardOptions<HandlerArguments>> = {
  ...{ limiter: true, name: true, limits: true, store: true, key: true, address: true, cost: true },
  ...{ skip: true, allow: true, deny: true, denied: true, headers: true, disclose: true },
  retryJitter: true,
  ...{ onDenied: true, onAllowed: true, refundIf: true, settle: true, onSettleError: true, warnings: true },
}

const isFunction = (value: unknown) => typeof value === 'function'

const FLAG = ['true or false', (value: unknown) => typeof value === 'boolean'] as const

/** The expected value of each option, and a function that checks it. */
const CHECKS: Readonly<Record<string, readonly [expected: string, isValid: (value: unknown) => boolean]>> = {
  ...Object.fromEntries(
    ['key', 'cost', 'skip', 'onDenied', 'onAllowed', 'settle', 'onSettleError'].map((name) => [
      name,
      ['a function', isFunction] as const,
    ]),
  ),
  refundIf: [
    "'successful', 'failed' or a function",
    (value) => value === 'successful' || value === 'failed' || isFunction(value),
  ],
  disclose: FLAG,
  warnings: FLAG,
  allow: ['an array of networks', Array.isArray],
  deny: ['an array of networks', Array.isArray],
}

/** @throws {SlidegateError} `invalid_option` */
export function checkGuardOptions<Args extends HandlerArguments>(options: GuardOptions<Args>): void {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption(`the options are ${show(options)}; pass an object with limits or a limiter`, options)
  }
  if (isFunction((options as Partial<Limiter>).consume)) {
    throw invalidOption('the options are a limiter; pass { limiter } instead', options)
  }
  const { limiter, limits, headers = false, refundIf, settle } = options
  if (limiter === undefined && limits === undefined) {
    throw invalidOption('neither limits nor a limiter is set; set one of them', options)
  }
  if (limiter !== undefined && !isFunction(limiter?.consume)) {
    throw invalidOption(`the limiter is ${show(limiter)}; it must come from createLimiter`, limiter)
  }
  for (const name of ['name', 'limits', 'store'] as const) {
    if (limiter !== undefined && options[name] !== undefined) {
      throw invalidOption(
        `both limiter and ${name} are set; pass ${name} to createLimiter instead`,
        options[name],
      )
    }
  }
  for (const limit of limiter?.limits ?? (Array.isArray(limits) ? limits : [])) {
    // Anything that isn't a limit is rejected later, by createLimiter.
    if (isForHandlers(limit)) {
      throw invalidOption(
        `the limit ${show(limit.name)} can't be used in middleware, which can't pass values or release slots; call its limiter in a handler`,
        limit.name,
      )
    }
  }
  for (const [name, [expected, isValid]] of Object.entries(CHECKS)) {
    const value = options[name as keyof typeof options]
    checkThat(value === undefined || isValid(value), name, value, expected)
  }
  if ((refundIf ?? settle) !== undefined && limiter !== undefined && !isFunction(limiter.refund)) {
    throw invalidOption(
      "the limiter can't refund; for refundIf and settle, pass a limiter from createLimiter",
      limiter,
    )
  }
  formatsOf(headers)
}

type LimitsFunction = (key: string, request: unknown) => readonly Limit[] | Promise<readonly Limit[]>

const functions = new WeakMap<object, LimitsFunction>()

/**
 * Creates a limiter from the `limits` option.
 *
 * Unlike in `createLimiter`, a function may be async, because the guard calls it and passes the result to the limiter as
 * `request`.
 */
export function limiterFrom<Args extends HandlerArguments>({
  limits = [],
  name,
  store,
  warnings,
}: GuardOptions<Args>): Limiter {
  const common = { name, store, warnings }
  if (typeof limits !== 'function') return createLimiter({ ...common, limits })
  const limiter = createLimiter({ ...common, limits: (_key, returned) => returned as readonly Limit[] })
  functions.set(limiter, limits)
  return limiter
}

/** Returns the function that was passed as this limiter's `limits`. */
export function limitsFunctionOf(limiter: object): LimitsFunction | undefined {
  return functions.get(limiter)
}
