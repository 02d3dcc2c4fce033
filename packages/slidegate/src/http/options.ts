// The options of rateLimit(), for every framework, with their checks; and the limiter that is made from `limits`.
import type { Decision } from '../decision.ts'
import { invalidOption, type Names, show } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import { createLimiter } from '../limiter/create-limiter.ts'
import { isForHandlers } from '../limiter/request.ts'
import type { Limiter } from '../limiter.ts'
import type { Limit } from '../limits/limit.ts'
import type { Store } from '../stores/store.ts'
import type { ClientAddressOptions } from './client-address.ts'
import type { DeniedPolicy } from './denied.ts'
import { formatsOf, type HeadersOption } from './headers.ts'

/** The arguments that a framework passes to its handlers. The first is, or has, the request. */
export type HandlerArguments = readonly [request: unknown, ...rest: unknown[]]

/** Returned by handlers of the Fetch API; some platforms take none, for instance for an upgraded connection. */
export type HandlerResponse = Response | undefined | null

/** A response that was sent, or cut off. */
export interface FinishedResponse {
  readonly status: number
  /** Whether this process sent all of it; `false` if the client hung up before. */
  readonly isComplete: boolean
  /** Returns a field of the response. */
  header(name: string): string | undefined
}

/** Selects responses whose charge is returned. */
export type RefundIf<Args extends HandlerArguments> =
  | 'successful'
  | 'failed'
  | ((response: FinishedResponse, ...args: Args) => boolean | Promise<boolean>)

/**
 * The options of `rateLimit`, for every framework: a `limiter`, or the `limits` to make one from.
 *
 * Functions may be async. An error that they throw fails the request; it never bypasses the limit.
 */
export interface GuardOptions<Args extends HandlerArguments> {
  /** A limiter of `createLimiter`, for instance one that routes share. Excludes `name`, `limits` and `store`. */
  readonly limiter?: Limiter | Limiter<Readonly<Record<string, string | null>>>
  /** The name of the limiter made from `limits`. Limiters with the same name and store count together. Default: `default`. */
  readonly name?: string
  /** The limits of every key, or a function that returns the limits of a key. */
  readonly limits?:
    | readonly Limit[]
    | ((key: string, request: Args[0]) => readonly Limit[] | Promise<readonly Limit[]>)
  /** The store of the limiter made from `limits`. Default: the memory of this process. */
  readonly store?: Store
  /**
   * Returns the key to limit, or an object of keys if the limiter has `dimensions`. Without a key the request fails
   * (`invalid_key`); to exempt it, use `skip`. Default: the client's address, see `addressKey`.
   */
  readonly key?: (request: Args[0]) => AnyKey | Promise<AnyKey>
  /** Finds the client's address behind proxies, for the default `key`, `allow` and `deny`. Default: the framework's address. */
  readonly address?: ClientAddressOptions
  /** Returns the units that the request takes, an integer from 1. Default: 1. */
  readonly cost?: (request: Args[0]) => number | Promise<number>
  /** Return `true` to let the request pass uncounted and without headers. */
  readonly skip?: (request: Args[0]) => boolean | Promise<boolean>
  /** Addresses and networks, such as `10.0.0.0/8`, of clients that pass uncounted and without headers. */
  readonly allow?: readonly string[]
  /** Addresses and networks of clients that get a 403, uncounted. Overrides `allow` and `skip`. */
  readonly deny?: readonly string[]
  /** How denied requests are treated, or a function that returns it. Default: `reject`. */
  readonly denied?: DeniedPolicy | ((request: Args[0]) => DeniedPolicy | Promise<DeniedPolicy>)
  /**
   * The rate limit headers of responses: `draft-11` (`RateLimit` and `RateLimit-Policy` over all limits), `draft-7` (the same
   * over the tightest limit), `draft-6` (`RateLimit-Limit` and so on), `legacy` (`X-RateLimit-*`), an array of `legacy` and
   * one of the others, or `false` for none. A denial always has `Retry-After`. Default: `draft-11`.
   */
  readonly headers?: HeadersOption
  /** `false` hides the limits: no headers, no `Retry-After`, no names of limits in bodies. Default: `true`. */
  readonly disclose?: boolean
  /** Answers a denied request, after the headers were set. Default: status 429 and a problem body (RFC 9457). */
  readonly onDenied?: (decision: Decision, ...args: Args) => unknown
  /** Called before each admitted request is handled, for instance to store the decision for the handler. */
  readonly onAllowed?: (decision: Decision, ...args: Args) => unknown
  /**
   * Returns the charge after some responses: `successful` (status below 400, to limit failed logins), `failed` (from 400), or
   * those for which a function returns `true`. If the client hung up, the response is neither.
   */
  readonly refundIf?: RefundIf<Args>
  /**
   * Called after the response: returns the units that the request took in the end, an integer from 0. The difference to
   * `cost` is returned or charged; a charge may exceed the limits.
   */
  readonly settle?: (response: FinishedResponse, ...args: Args) => number | Promise<number>
  /** Called with errors of `refundIf`, `settle` and the store, after the response. Default: logs the first one. */
  readonly onSettleError?: (error: unknown, ...args: Args) => unknown
}

/** The option names of every adapter. Your adapter may have more, and pass them on to `createGuard`. */
export const GUARD_NAMES: Names<GuardOptions<HandlerArguments>> = {
  ...{ limiter: true, name: true, limits: true, store: true, key: true, address: true, cost: true },
  ...{ skip: true, allow: true, deny: true, denied: true, headers: true, disclose: true },
  ...{ onDenied: true, onAllowed: true, refundIf: true, settle: true, onSettleError: true },
}

const isFunction = (value: unknown) => typeof value === 'function'

/** Checks of single options: what is expected, and whether a value is that. */
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
  disclose: ['true or false', (value) => typeof value === 'boolean'],
  allow: ['an array of networks', Array.isArray],
  deny: ['an array of networks', Array.isArray],
}

/** @throws {SlidegateError} `invalid_option` */
export function checkGuardOptions<Args extends HandlerArguments>(options: GuardOptions<Args>): void {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption(
      `the options are ${show(options)}; they must be an object with limits or a limiter`,
      options,
    )
  }
  if (isFunction((options as Partial<Limiter>).consume)) {
    throw invalidOption('a limiter is given in place of the options; give it as { limiter }', options)
  }
  const { limiter, limits, headers = false, refundIf, settle } = options
  if (limiter === undefined && limits === undefined) {
    throw invalidOption('neither limits nor a limiter are given; give one of them', options)
  }
  if (limiter !== undefined && !isFunction(limiter?.consume)) {
    throw invalidOption(`the limiter is ${show(limiter)}; it must be one of createLimiter`, limiter)
  }
  for (const name of ['name', 'limits', 'store'] as const) {
    if (limiter !== undefined && options[name] !== undefined) {
      throw invalidOption(
        `both a limiter and ${name} are given; ${name} belongs into createLimiter then`,
        options[name],
      )
    }
  }
  for (const limit of limiter?.limits ?? (Array.isArray(limits) ? limits : [])) {
    // createLimiter rejects what isn't a limit.
    if (isForHandlers(limit)) {
      throw invalidOption(
        `the limit ${show(limit.name)} cannot be held here: a middleware neither releases what is held nor knows values; ask its limiter in the handler`,
        limit.name,
      )
    }
  }
  for (const [name, [expected, isValid]] of Object.entries(CHECKS)) {
    const value = options[name as keyof typeof options]
    if (value === undefined || isValid(value)) continue
    throw invalidOption(`${name} is ${show(value)}; it must be ${expected}`, value)
  }
  if ((refundIf ?? settle) !== undefined && limiter !== undefined && !isFunction(limiter.refund)) {
    throw invalidOption(
      'refundIf and settle need a limiter of createLimiter: this one cannot refund',
      limiter,
    )
  }
  formatsOf(headers)
}

/** Returns the limits of a key. */
type LimitsFunction = (key: string, request: unknown) => readonly Limit[] | Promise<readonly Limit[]>

const functions = new WeakMap<object, LimitsFunction>()

/**
 * Creates a limiter from the option `limits`.
 *
 * Unlike in `createLimiter`, a function may be async: the guard calls it, and passes its limits to the limiter as `request`.
 */
export function limiterFrom<Args extends HandlerArguments>({
  limits = [],
  ...rest
}: Pick<GuardOptions<Args>, 'name' | 'limits' | 'store'>): Limiter {
  if (typeof limits !== 'function') return createLimiter({ ...rest, limits })
  const limiter = createLimiter({ ...rest, limits: (_key, returned) => returned as readonly Limit[] })
  functions.set(limiter, limits)
  return limiter
}

/** Returns the function that was passed as the `limits` of this limiter. */
export function limitsFunctionOf(limiter: object): LimitsFunction | undefined {
  return functions.get(limiter)
}
