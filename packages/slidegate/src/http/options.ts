// The options of rateLimit(), for every framework: documented and checked; and the limiter that is made from `limits`.
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
import { generationsOf, type HeaderGenerations } from './headers.ts'

/** The arguments that a framework passes to its handlers; the first is, or carries, the request. */
export type HandlerArguments = readonly [request: unknown, ...rest: unknown[]]

/** What handlers of the Fetch API return; none if the platform knows what that means, such as an upgraded connection. */
export type HandlerResponse = Response | undefined | null

/** A response that is over. */
export interface FinishedResponse {
  readonly status: number
  /** Whether all of it was sent, as far as this process knows; false if the client hung up before. */
  readonly isComplete: boolean
  /** A field of the response. */
  header(name: string): string | undefined
}

/** Responses whose charge is returned. */
export type RefundIf<Args extends HandlerArguments> =
  | 'successful'
  | 'failed'
  | ((response: FinishedResponse, ...args: Args) => boolean | Promise<boolean>)

/**
 * The options of `rateLimit`, for every framework: a `limiter`, or the `limits` to make one from.
 *
 * Functions may be async. An error that they throw is an error of the request, and never lets it past the limit.
 */
export interface GuardOptions<Args extends HandlerArguments> {
  /** A limiter of `createLimiter`, such as one that other routes share. Excludes `name`, `limits` and `store`. */
  readonly limiter?: Limiter | Limiter<Readonly<Record<string, string | null>>>
  /** The name of the limiter made from `limits`. Limiters of one name in one store count together. Default: `default`. */
  readonly name?: string
  /** The limits of every caller, or a function that returns those of a key. */
  readonly limits?:
    | readonly Limit[]
    | ((key: string, request: Args[0]) => readonly Limit[] | Promise<readonly Limit[]>)
  /** The store of the limiter made from `limits`. Default: the memory of this process. */
  readonly store?: Store
  /**
   * The key that is limited, or an object of keys if the limiter has `dimensions`. No key is an error (`invalid_key`), not a
   * way around the limits: use `skip` for that. Default: the client's address, see `addressKey`.
   */
  readonly key?: (request: Args[0]) => AnyKey | Promise<AnyKey>
  /** How the client's address is found behind proxies, for the default `key`, `allow` and `deny`. Default: as the framework does. */
  readonly address?: ClientAddressOptions
  /** Units that the request takes, an integer from 1. Default: 1. */
  readonly cost?: (request: Args[0]) => number | Promise<number>
  /** Whether the request passes uncounted and without headers, if it returns `true`. Default: none does. */
  readonly skip?: (request: Args[0]) => boolean | Promise<boolean>
  /** Addresses and networks, such as `10.0.0.0/8`, of clients that pass uncounted and without headers. */
  readonly allow?: readonly string[]
  /** Those of clients that are answered with 403, uncounted, whatever `allow` and `skip` say. */
  readonly deny?: readonly string[]
  /** What happens to requests without room, or a function that returns it. Default: `reject`. */
  readonly denied?: DeniedPolicy | ((request: Args[0]) => DeniedPolicy | Promise<DeniedPolicy>)
  /**
   * The rate limit headers of responses: `draft-11` (`RateLimit` and `RateLimit-Policy` over all limits), `draft-7` (the same
   * over the tightest limit), `draft-6` (`RateLimit-Limit` and so on), `legacy` (`X-RateLimit-*`), an array of `legacy` and
   * one of the others, or `false` for none. A denial always has `Retry-After`. Default: `draft-11`.
   */
  readonly headers?: HeaderGenerations
  /** `false` hides the limits: no headers, no `Retry-After`, and no names of limits in the body of a denial. Default: `true`. */
  readonly disclose?: boolean
  /** Answers a denied request in place of the problem body, after the headers were set. Default: status 429 and RFC 9457. */
  readonly onDenied?: (decision: Decision, ...args: Args) => unknown
  /** Called for each admitted request before it is handled, for instance to keep the decision for the handler. */
  readonly onAllowed?: (decision: Decision, ...args: Args) => unknown
  /**
   * Responses whose charge is returned: `successful`, those below status 400, for limits on failures as of a login; `failed`,
   * those from 400; or a function. A response that was cut off because the client hung up is neither.
   */
  readonly refundIf?: RefundIf<Args>
  /**
   * Units that the request has really taken, an integer from 0, asked when the response is over. The difference to the `cost`
   * is returned or charged; a charge may exceed the limits.
   */
  readonly settle?: (response: FinishedResponse, ...args: Args) => number | Promise<number>
  /** Called with errors of `refundIf`, `settle` and the store, after the response. Default: logs the first to the console. */
  readonly onSettleError?: (error: unknown, ...args: Args) => unknown
}

/** The names of the options of every adapter. Your own may have more, and pass them on to `createGuard` with the rest. */
export const GUARD_NAMES: Names<GuardOptions<HandlerArguments>> = {
  ...{ limiter: true, name: true, limits: true, store: true, key: true, address: true, cost: true },
  ...{ skip: true, allow: true, deny: true, denied: true, headers: true, disclose: true },
  ...{ onDenied: true, onAllowed: true, refundIf: true, settle: true, onSettleError: true },
}

const FUNCTIONS = ['key', 'cost', 'skip', 'onDenied', 'onAllowed', 'settle', 'onSettleError'] as const

/** @throws {SlidegateError} `invalid_option` */
export function checkGuardOptions<Args extends HandlerArguments>(options: GuardOptions<Args>): void {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption(
      `the options are ${show(options)}; they must be an object with limits or a limiter`,
      options,
    )
  }
  if (typeof (options as Partial<Limiter>).consume === 'function') {
    throw invalidOption('a limiter is given in place of the options; give it as { limiter }', options)
  }
  const { limiter, limits, headers = false, refundIf, disclose } = options
  if (limiter === undefined && limits === undefined) {
    throw invalidOption('neither limits nor a limiter are given; give one of them', options)
  }
  if (limiter !== undefined && typeof limiter?.consume !== 'function') {
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
    // What is no limit createLimiter refuses.
    if (isForHandlers(limit)) {
      throw invalidOption(
        `the limit ${show(limit.name)} cannot be held here: a middleware neither releases what is held nor knows values; ask its limiter in the handler`,
        limit.name,
      )
    }
  }
  for (const name of FUNCTIONS) {
    if (options[name] !== undefined && typeof options[name] !== 'function') {
      throw invalidOption(`${name} is ${show(options[name])}; it must be a function`, options[name])
    }
  }
  if (refundIf !== undefined && !isRefundIf(refundIf)) {
    throw invalidOption(
      `refundIf is ${show(refundIf)}; it must be 'successful', 'failed' or a function`,
      refundIf,
    )
  }
  const settles = refundIf !== undefined || options.settle !== undefined
  if (settles && limiter !== undefined && typeof limiter.refund !== 'function') {
    throw invalidOption(
      'refundIf and settle need a limiter of createLimiter: this one cannot refund',
      limiter,
    )
  }
  if (disclose !== undefined && typeof disclose !== 'boolean') {
    throw invalidOption(`disclose is ${show(disclose)}; it must be true or false`, disclose)
  }
  for (const name of ['allow', 'deny'] as const) {
    if (options[name] !== undefined && !Array.isArray(options[name])) {
      throw invalidOption(`${name} is ${show(options[name])}; it must be an array of networks`, options[name])
    }
  }
  generationsOf(headers)
}

function isRefundIf(value: unknown): boolean {
  return value === 'successful' || value === 'failed' || typeof value === 'function'
}

/** Returns the limits of a key. */
type LimitsFunction = (key: string, request: unknown) => readonly Limit[] | Promise<readonly Limit[]>

const functions = new WeakMap<object, LimitsFunction>()

/**
 * Makes a limiter from the option `limits`.
 *
 * A function may be async here, unlike in `createLimiter`: the guard calls it, and passes the limits it returns as `request`.
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

/** The function that was passed as the `limits` of this limiter. */
export function limitsFunctionOf(limiter: object): LimitsFunction | undefined {
  return functions.get(limiter)
}
