import { type Decision, isDecided } from '../decision.ts'
import { SlidegateError } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import type { Limiter } from '../limiter.ts'
import { addressKey } from './address.ts'
import { after, isPending } from './at-once.ts'
import type { Answered, Binding, HandlerArguments } from './binding.ts'
import { type AddressReader, addressReader } from './client-address.ts'
import { type DenialAnswer, denialBody, denialOf } from './denial-body.ts'
import { type Ask, type Means, parseDenied, type Treatment, Waiters } from './denied.ts'
import {
  generationsOf,
  HEADER_GENERATIONS,
  type Header,
  type HeaderGeneration,
  type HeaderSet,
  retryAfterHeaders,
} from './headers.ts'
import { Networks, parseNetwork } from './networks.ts'
import { checkGuardOptions, type GuardOptions } from './options.ts'
import { limiterFrom, limitsFunctionOf } from './own-limiter.ts'
import { FORBIDDEN } from './problem.ts'
import { settler } from './settling.ts'

/** What an adapter has to do with a request. */
export interface Verdict {
  /** To be put on the response by {@link placeHeaders}, whoever writes it. */
  readonly headers: readonly HeaderSet[]
  /** Present where the request is not handled: what to do with it instead. */
  readonly denial?: Denial
  /** Present where the response is asked about: to be called once it is over, however it ended. */
  readonly over?: (response: Answered) => void
}

/** What is to be done with a request that is denied. */
export type Denial =
  | ({ readonly action: 'answer' } & DenialAnswer)
  /** The user's `onDenied`; where a framework answers by what its handlers return, by that. */
  | { readonly action: 'custom'; readonly headers: readonly Header[]; readonly answer: () => unknown }
  /** The connection is closed; the client may have done so before. */
  | { readonly action: 'drop' }

/** A promise only where something has to be waited for: the user's functions, or a store that is elsewhere. */
export type Guard<Args extends HandlerArguments> = (...args: Args) => Verdict | PromiseLike<Verdict>

const UNLIMITED: Verdict = { headers: [] }
const DROPPED: Verdict = { headers: [], denial: { action: 'drop' } }

/**
 * The policy that all adapters share. They hand in what their framework hands to a handler, carry out the verdict, and
 * decide nothing. A guard throws or rejects where a function of the user does, the key or cost is invalid, or the store is
 * unavailable: that is the framework's error, never a denial.
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
  // Only functions that tell limits look at the request.
  const isTold = !Array.isArray(limits) || options.limiter !== undefined
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
    // The limiter refuses an invalid key.
    if (limitsOf === undefined || typeof whom !== 'string' || whom === '') return priced(whom, args[0], args)
    return after(limitsOf(whom, args[0]), (limits) => priced(whom, limits, args))
  }

  /** @param request passed to the function that returns the limiter's limits */
  function priced(whom: AnyKey, request: unknown, args: Args): Verdict | PromiseLike<Verdict> {
    if (cost === undefined) return treated(whom, isTold ? { request } : undefined, args)
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

/** All generations of one decision; few are asked for more than one. */
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

/** Asks at once where the limiter's state is in this process. */
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

/** The client's address as the options say, else as the framework does. */
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

/** Which list an address is on: nothing where there are none. */
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
  // The limiter would take it for a cost left out, which is 1.
  if (units === undefined) {
    throw new SlidegateError('invalid_cost', 'the cost is undefined; it must be an integer from 1', units)
  }
  return units
}
