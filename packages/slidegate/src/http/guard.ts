// THE policy that all adapters share: a request -> a verdict. A binding is how it reaches into one framework.
//
// In this order: the lists of addresses, `skip`, the key, `denied`, the cost; then the limiter: `consume`, or `wait` if denied requests
// are delayed or queued, so nobody overtakes those who wait. Each step continues without a promise if there is nothing to wait for.

import { type Decision, isDecided } from '../decision.ts'
import { SlidegateError } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import type { Limiter } from '../limiter.ts'
import { Networks, parseNetwork } from './addresses.ts'
import { addressKey } from './caller-keys.ts'
import { type AddressReader, addressReader } from './client-address.ts'
import { type DenialAnswer, denialBody, denialOf, FORBIDDEN } from './denial-message.ts'
import { type Ask, type Means, parseDenied, type Treatment, Waiters } from './denied.ts'
import {
  generationsOf,
  HEADER_GENERATIONS,
  type Header,
  type HeaderGeneration,
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

/** How the guard reads a request of one framework. Each function maps, none decides. */
export interface Binding<Args extends HandlerArguments> {
  /**
   * The client's address by the framework; undefined if it has none.
   *
   * @throws {SlidegateError} `invalid_option` if the framework trusts what callers say about it
   */
  address(...args: Args): string | undefined
  /** The address of the connection's other end; undefined if it can't be seen. */
  peer(...args: Args): string | undefined
  /** A header of the request, by its name in lower case. Fields of one name are one list. */
  header(name: string, ...args: Args): string | undefined
  /** Whether headers of the request may be missing. Default: they never are. */
  isCut?(...args: Args): boolean
  /** Aborted when the client hangs up. Called only for a request that has to wait. */
  signal(...args: Args): AbortSignal
  /** Whether a connection can be closed without an answer. */
  readonly canDrop: boolean
}

/** What an adapter does with a request. */
export interface Verdict {
  /** Placed on the response by {@link placeHeaders}, whoever writes it. */
  readonly headers: readonly HeaderSet[]
  /** Present if the request is denied: what to do instead of handling it. */
  readonly denial?: Denial
  /** If present, to be called once the response is over, however it ended. */
  readonly over?: (response: FinishedResponse) => void
}

/** What to do with a request that is denied. */
export type Denial =
  | ({ readonly action: 'answer' } & DenialAnswer)
  /** Calls the user's `onDenied`, which answers. */
  | { readonly action: 'custom'; readonly headers: readonly Header[]; readonly answer: () => unknown }
  /** The connection is closed; the client may have done so before. */
  | { readonly action: 'drop' }

/** Returns a promise only if there is something to wait for: async functions, or a store elsewhere. */
export type Guard<Args extends HandlerArguments> = (...args: Args) => Verdict | PromiseLike<Verdict>

const UNLIMITED: Verdict = { headers: [] }
const DROPPED: Verdict = { headers: [], denial: { action: 'drop' } }

/**
 * Makes the guard of an adapter, which passes it the arguments of a handler and carries out the verdict. It throws or rejects
 * if a function of the user does, if the key or cost is invalid, or if the store is unavailable: an error, never a denial.
 *
 * @throws {SlidegateError} `invalid_option`, and what `createLimiter` refuses
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
  const headersOf = spelling(disclose ? generationsOf(options.headers ?? 'draft-11') : [])
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
      settlerOf === undefined ? { headers } : { headers, over: settlerOf(whom, what, decision, args) }
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
      const { headers, body } = denialBody(FORBIDDEN, undefined, binding.header('accept', ...args))
      return { headers: [], denial: { action: 'answer', status: FORBIDDEN.status, headers, body } }
    })
  }

  if (listed === undefined) return (...args) => judge(args)
  return (...args) => {
    const list = listed(addressOf(args))
    if (list === 'deny') return forbidden(args)
    return list === 'allow' ? UNLIMITED : judge(args)
  }
}

function spelling(generations: readonly HeaderGeneration[]): (decision: Decision) => readonly HeaderSet[] {
  const [first, ...others] = generations
  if (first === undefined) return () => []
  if (others.length === 0) return (decision) => [setOf(first, decision)]
  return (decision) => generations.map((each) => setOf(each, decision))
}

function setOf(generation: HeaderGeneration, decision: Decision): HeaderSet {
  const { spell } = HEADER_GENERATIONS[generation]
  return { generation, isDenial: !decision.allowed, headers: spell(decision) }
}

/** Asks without a promise if the limiter's state is in this process. */
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
  can: Means,
): (request: Args[0]) => Treatment | PromiseLike<Treatment> {
  if (typeof denied === 'function') {
    return (request) => after(denied(request), (policy) => parseDenied(policy, can))
  }
  const treatment = parseDenied(denied, can)
  return () => treatment
}

/** The client's address by the option `address`, else by the framework. */
function addressed<Args extends HandlerArguments>(
  { address }: GuardOptions<Args>,
  binding: Binding<Args>,
): (args: Args) => string | undefined {
  if (address === undefined) {
    return (args) => (binding.isCut?.(...args) === true ? undefined : binding.address(...args))
  }
  const read: AddressReader = addressReader(address, 'address')
  return (args) =>
    read(
      binding.peer(...args),
      (name) => binding.header(name, ...args),
      () => binding.isCut?.(...args) === true,
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
  // The limiter would take it for a cost that is left out, which is 1.
  if (units === undefined) {
    throw new SlidegateError('invalid_cost', 'the cost is undefined; it must be an integer from 1', units)
  }
  return units
}
