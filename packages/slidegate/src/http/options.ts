import type { Decision } from '../decision.ts'
import { invalidOption, type Names, show } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import { isForHandlers } from '../limiter/names.ts'
import type { Limiter } from '../limiter.ts'
import type { Limit } from '../limits/limit.ts'
import type { Store } from '../stores/store.ts'
import type { Answered, HandlerArguments } from './binding.ts'
import type { ClientAddressOptions } from './client-address.ts'
import type { DeniedPolicy } from './denied.ts'
import { generationsOf, type HeaderGenerations } from './headers.ts'
import type { RefundIf } from './settling.ts'

/**
 * The options of `rateLimit`, the same for every framework: a `limiter`, or the `limits` to make one from.
 *
 * The functions may be async. What they throw is an error of the request, as everywhere in the framework; it
 * never lets the request past the limit.
 */
export interface GuardOptions<Args extends HandlerArguments> {
  /** A limiter of `createLimiter`, for instance one that other routes share. Excludes `name`, `limits` and `store`. */
  readonly limiter?: Limiter | Limiter<Readonly<Record<string, string | null>>>
  /** The name of the limiter that is made from `limits`. Default: `default`. Limiters of one name in one store count together. */
  readonly name?: string
  /** The limits of every caller, or a function that returns those of a key. */
  readonly limits?:
    | readonly Limit[]
    | ((key: string, request: Args[0]) => readonly Limit[] | Promise<readonly Limit[]>)
  /** Where the state of the limiter that is made from `limits` lives. Default: the memory of this process. */
  readonly store?: Store
  /**
   * Whom the limits count: a key, or an object of keys where the limiter has `dimensions`. Default: the client's address,
   * see `addressKey`. No key is an error (`invalid_key`), not a way around the limits: use `skip` for those who are
   * not counted.
   */
  readonly key?: (request: Args[0]) => AnyKey | Promise<AnyKey>
  /**
   * How the client's address is found behind proxies, the same in every framework: for `key` where there is none, and for
   * `allow` and `deny`. Default: as the framework does.
   */
  readonly address?: ClientAddressOptions
  /** Units that the request takes: an integer from 1, else `invalid_cost`. Default: 1. */
  readonly cost?: (request: Args[0]) => number | Promise<number>
  /** Whether the request passes uncounted and without headers: only for `true`. Default: none does. */
  readonly skip?: (request: Args[0]) => boolean | Promise<boolean>
  /** Addresses and networks, such as `10.0.0.0/8`, of clients who pass uncounted and without headers. */
  readonly allow?: readonly string[]
  /** Those who are answered with 403, uncounted, whatever `allow` and `skip` say. */
  readonly deny?: readonly string[]
  /** What happens to requests for which there is no room, or a function that tells it. Default: `reject`. */
  readonly denied?: DeniedPolicy | ((request: Args[0]) => DeniedPolicy | Promise<DeniedPolicy>)
  /**
   * Which generation of rate limit headers responses carry: `draft-11` (`RateLimit` and `RateLimit-Policy`
   * over all limits), `draft-7` (the same names over the tightest limit), `draft-6` (`RateLimit-Limit` and so on), `legacy`
   * (`X-RateLimit-*`), an array of `legacy` and one of the others, or none with `false`. A denial has `Retry-After` in any
   * case. Default: `draft-11`.
   */
  readonly headers?: HeaderGenerations
  /**
   * `false` where callers should not learn of the limits: no headers, no `Retry-After`, and no names of limits in the body
   * of a denial. Default: `true`.
   */
  readonly disclose?: boolean
  /** Answers a denied request in place of the problem body, after the headers were set. Default: status 429 and RFC 9457. */
  readonly onDenied?: (decision: Decision, ...args: Args) => unknown
  /** Is told of each admitted request before it is handled: to keep the decision for the handler, for instance. */
  readonly onAllowed?: (decision: Decision, ...args: Args) => unknown
  /**
   * Responses for which what was charged is given back: `successful`, those below status 400, for limits on failures as of a login;
   * `failed`, those from 400; or a function. Where the client hung up before the whole response it is neither.
   */
  readonly refundIf?: RefundIf<Args>
  /**
   * Units that the request has taken in truth, an integer from 0: asked when the response is over. What was charged
   * before, the `cost`, is made that by returning or charging the difference; the latter may pass the limits.
   */
  readonly settle?: (response: Answered, ...args: Args) => number | Promise<number>
  /**
   * Is told what `refundIf` and `settle` throw, and why the store has not returned or charged: the response is sent by
   * then. Default: a line on the console for the first.
   */
  readonly onSettleError?: (error: unknown, ...args: Args) => unknown
}

/** Of the options of every adapter. One of somebody's own may have more, and hand them on to `createGuard` with the rest. */
export const GUARD_NAMES: Names<GuardOptions<HandlerArguments>> = {
  ...{ limiter: true, name: true, limits: true, store: true, key: true, address: true, cost: true },
  ...{ skip: true, allow: true, deny: true, denied: true, headers: true, disclose: true },
  ...{ onDenied: true, onAllowed: true, refundIf: true, settle: true, onSettleError: true },
}

const FUNCTIONS = ['key', 'cost', 'skip', 'onDenied', 'onAllowed', 'settle', 'onSettleError'] as const

/** Refuses options that contradict each other or are not what they should be. */
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
