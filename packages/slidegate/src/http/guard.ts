// The policy that all adapters share: a request -> a verdict. A binding reads requests of one framework.
//
// In this order: `allow` and `deny`, `skip`, the key, its limits, the cost, `denied`; then the limiter: `consume`, or `wait` if denied
// requests are delayed or queued, so nobody overtakes a waiter. A step makes no promise if there is nothing to wait for.

import { type Decision, isDecided } from '../decision.ts'
import { SlidegateError } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import type { Limiter } from '../limiter.ts'
import { Networks, parseNetwork } from './addresses.ts'
import { addressKey } from './caller-keys.ts'
import { type AddressReader, addressReader } from './client-address.ts'
import { answerOf, type DenialResponse, denialOf, FORBIDDEN } from './denial-message.ts'
import { type Ask, type Capabilities, parseDenied, type Treatment, Waiters } from './denied.ts'
import {
  formatsOf,
  HEADER_FORMATS,
  type Header,
  type HeaderFormat,
  type HeaderSet,
  retryAfterHeaders,
} from './headers.ts'
import { after, isPending } from './maybe-async.ts'
import {
  checkGuardOptions,
  type FinishedResponse,
  type GuardOptions,
  type HandlerArguments,
  limiterFrom,
  limitsFunctionOf,
} from './options.ts'
import { settler } from './settle-response.ts'

/** Reads requests of one framework for the guard. Decides nothing. */
export interface Binding<Args extends HandlerArguments> {
  /**
   * The client's address according to the framework; undefined if it has none.
   *
   * @throws {SlidegateError} `invalid_option` if callers can spoof it
   */
  address(...args: Args): string | undefined
  /** The address of the connection's other end; undefined if it's unknown. */
  peer(...args: Args): string | undefined
  /** A header by its name in lower case. Fields of one name are joined to a list. */
  header(name: string, ...args: Args): string | undefined
  /** Whether headers of the request may be missing. Default: never. */
  isTruncated?(...args: Args): boolean
  /** Aborted when the client hangs up. Called only for a request that has to wait. */
  signal(...args: Args): AbortSignal
  /** Whether a connection can be closed without an answer. */
  readonly canDrop: boolean
}

/** The guard's answer: what an adapter does with a request. */
export interface Verdict {
  /** Place them on the response with {@link placeHeaders}, whoever writes it. */
  readonly headers: readonly HeaderSet[]
  /** Present if the request is denied: do this instead of handling it. */
  readonly denial?: Denial
  /** If present, call it once the response is over, however it ended. */
  readonly onFinished?: (response: FinishedResponse) => void
}

/** What to do with a request that is denied. */
export type Denial =
  | ({ readonly action: 'answer' } & DenialResponse)
  /** Calls the user's `onDenied`, which answers. */
  | { readonly action: 'custom'; readonly headers: readonly Header[]; readonly answer: () => unknown }
  /** Close the connection; the client may have done so already. */
  | { readonly action: 'drop' }

/** Returns a promise only if there is something to wait for: async functions, or a store outside this process. */
export type Guard<Args extends HandlerArguments> = (...args: Args) => Verdict | PromiseLike<Verdict>

const UNLIMITED: Verdict = { headers: [] }
const DROPPED: Verdict = { headers: [], denial: { action: 'drop' } }

/**
 * Creates the guard of an adapter, which passes it the arguments of a handler and carries out the verdict.
 *
 * The guard throws or rejects if a function in the options does, if the key or cost is invalid, or if the store is unavailable:
 * these are errors, not denials.
 *
 * @throws {SlidegateError} `invalid_option`, and the errors of `createLimiter`
 */
export function createGuard<Args extends HandlerArguments>(
  options: GuardOptions<Args>,
  binding: Binding<Args>,
): Guard<Args> {
  checkGuardOptions(options)
  const { name, limits, store, skip, key, cost, onDenied, onAllowed, disclose = true } = options
  const limiter = (options.limiter ?? limiterFrom({ name, limits, store })) as Limiter<AnyKey>
  const limitsOf = limitsFunctionOf(limiter)
  // Only functions that return limits look at the request.
  const isPassed = !Array.isArray(limits) || options.limiter !== undefined
  const decide = decider(limiter)
  const waiters = new Waiters(limiter)
  const settlerOf = settler(limiter, options)
  const treatmentOf = treatments(options, {
    canDrop: binding.canDrop,
    canWait: typeof limiter.wait === 'function',
  })
  const headersOf = headerWriter(disclose ? formatsOf(options.headers ?? 'draft-11') : [])
  const addressOf = addressed(options, binding)
  const listed = lists(options)

  function judge(args: Args): Verdict | PromiseLike<Verdict> {
    if (skip === undefined) return keyed(args)
    return after(skip(args[0]), (skips) => (skips === true ? UNLIMITED : keyed(args)))
  }

  function keyed(args: Args): Verdict | PromiseLike<Verdict> {
    const whom = key === undefined ? addressKey(addressOf(args), options.address) : key(args[0])
    return isPending(whom) ? whom.then((known) => limited(known, args)) : limited(whom, args)
  }

  function limited(whom: AnyKey, args: Args): Verdict | PromiseLike<Verdict> {
    // The limiter rejects an invalid key.
    if (limitsOf === undefined || typeof whom !== 'string' || whom === '') return priced(whom, args[0], args)
    return after(limitsOf(whom, args[0]), (limits) => priced(whom, limits, args))
  }

  /** @param request passed to the function that returns the limiter's limits */
  function priced(whom: AnyKey, request: unknown, args: Args): Verdict | PromiseLike<Verdict> {
    if (cost === undefined) return treated(whom, isPassed ? { request } : undefined, args)
    return after(cost(args[0]), (units) => treated(whom, { cost: checkedCost(units), request }, args))
  }

  function treated(whom: AnyKey, what: Ask | undefined, args: Args): Verdict | PromiseLike<Verdict> {
    const treatment = treatmentOf(args[0])
    return isPending(treatment)
      ? treatment.then((known) => ask(whom, what, known, args))
      : ask(whom, what, treatment, args)
  }

  function ask(
    whom: AnyKey,
    what: Ask | undefined,
    treatment: Treatment,
    args: Args,
  ): Verdict | PromiseLike<Verdict> {
    if (treatment.maxWaitMs > 0) {
      return waiters
        .decide(whom, what, treatment, binding.signal(...args))
        .then((decision) =>
          decision === undefined ? DROPPED : verdictOf(whom, what, decision, treatment, args),
        )
    }
    const decision = decide(whom, what)
    return isPending(decision)
      ? decision.then((known) => verdictOf(whom, what, known, treatment, args))
      : verdictOf(whom, what, decision, treatment, args)
  }

  function verdictOf(
    whom: AnyKey,
    what: Ask | undefined,
    decision: Decision,
    { isDropped }: Treatment,
    args: Args,
  ): Verdict | PromiseLike<Verdict> {
    if (!decision.allowed && isDropped) return DROPPED
    const headers = isDecided(decision.source) ? headersOf(decision) : []
    if (!decision.allowed) return { headers, denial: denied(decision, args) }
    const verdict =
      settlerOf === undefined ? { headers } : { headers, onFinished: settlerOf(whom, what, decision, args) }
    return onAllowed === undefined ? verdict : after(onAllowed(decision, ...args), () => verdict)
  }

  function denied(decision: Decision, args: Args): Denial {
    if (onDenied !== undefined) {
      const headers = disclose ? retryAfterHeaders(decision) : []
      return { action: 'custom', headers, answer: () => onDenied(decision, ...args) }
    }
    const accept = binding.header('accept', ...args)
    return { action: 'answer', ...denialOf(decision, { accept, disclose }) }
  }

  function forbidden(args: Args): Verdict | PromiseLike<Verdict> {
    return after(treatmentOf(args[0]), ({ isDropped }) => {
      if (isDropped) return DROPPED
      const answer = answerOf(FORBIDDEN, [], binding.header('accept', ...args))
      return { headers: [], denial: { action: 'answer', ...answer } }
    })
  }

  if (listed === undefined) return (...args) => judge(args)
  return (...args) => {
    const list = listed(addressOf(args))
    if (list === 'deny') return forbidden(args)
    return list === 'allow' ? UNLIMITED : judge(args)
  }
}

function headerWriter(formats: readonly HeaderFormat[]): (decision: Decision) => readonly HeaderSet[] {
  const [first, ...others] = formats
  if (first === undefined) return () => []
  if (others.length === 0) return (decision) => [setOf(first, decision)]
  return (decision) => formats.map((each) => setOf(each, decision))
}

function setOf(format: HeaderFormat, decision: Decision): HeaderSet {
  const { write } = HEADER_FORMATS[format]
  return { format, isDenial: !decision.allowed, headers: write(decision) }
}

/** Decides without a promise if the limiter's state is in this process. */
function decider(limiter: Limiter<AnyKey>): (key: AnyKey, ask?: Ask) => Decision | PromiseLike<Decision> {
  let isSync = typeof limiter.consumeSync === 'function'
  return (key, ask) => {
    if (!isSync) return limiter.consume(key, ask)
    try {
      return limiter.consumeSync(key, ask)
    } catch (error) {
      if (!(error instanceof SlidegateError && error.code === 'sync_unsupported')) throw error
      isSync = false
      return limiter.consume(key, ask)
    }
  }
}

function treatments<Args extends HandlerArguments>(
  { denied = 'reject' }: GuardOptions<Args>,
  can: Capabilities,
): (request: Args[0]) => Treatment | PromiseLike<Treatment> {
  if (typeof denied === 'function') {
    return (request) => after(denied(request), (policy) => parseDenied(policy, can))
  }
  const treatment = parseDenied(denied, can)
  return () => treatment
}

/** Finds the client's address by the option `address`, else by the framework. */
function addressed<Args extends HandlerArguments>(
  { address }: GuardOptions<Args>,
  binding: Binding<Args>,
): (args: Args) => string | undefined {
  if (address === undefined) {
    return (args) => (binding.isTruncated?.(...args) === true ? undefined : binding.address(...args))
  }
  const read: AddressReader = addressReader(address, 'address')
  return (args) =>
    read(
      binding.peer(...args),
      (name) => binding.header(name, ...args),
      () => binding.isTruncated?.(...args) === true,
    )
}

/** Finds which list an address is on; undefined if there are no lists. */
function lists<Args extends HandlerArguments>({
  allow,
  deny,
}: GuardOptions<Args>): ((address: string | undefined) => 'allow' | 'deny' | undefined) | undefined {
  if (allow === undefined && deny === undefined) return undefined
  const allowed = new Networks((allow ?? []).map((text) => parseNetwork(text, 'allow')))
  const denied = new Networks((deny ?? []).map((text) => parseNetwork(text, 'deny')))
  return (address) => {
    if (denied.has(address)) return 'deny'
    return allowed.has(address) ? 'allow' : undefined
  }
}

function checkedCost(units: number): number {
  // The limiter would take it for the default cost, 1.
  if (units === undefined) {
    throw new SlidegateError('invalid_cost', 'the cost is undefined; it must be an integer from 1', units)
  }
  return units
}
