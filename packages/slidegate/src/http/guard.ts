// The guard that all adapters share: it turns a request into a verdict. A binding reads a framework's requests.
//
// The steps, in order: `allow` and `deny`, `skip`, the key, its limits, the cost, `denied`, then the limiter. The guard calls
// `consume`. If denied requests are delayed or queued, it calls `wait` instead, so that no request overtakes a waiting
// one. A step creates a promise only if it has to wait.

import { type Decision, isDecided } from '../decision.ts'
import { SlidegateError } from '../errors.ts'
import type { AnyKey } from '../key.ts'
import type { Limiter } from '../limiter.ts'
import { parseWindow } from '../runtime/duration.ts'
import { Networks, parseNetwork } from './addresses.ts'
import { addressKey } from './caller-keys.ts'
import { type AddressReader, addressReader } from './client-address.ts'
import { answerOf, type DenialResponse, denialOf, FORBIDDEN } from './denial-message.ts'
import {
  type Capabilities,
  type LimiterCallOptions,
  parseDenied,
  type Treatment,
  Waiters,
  withJitter,
} from './denied.ts'
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
import { type SetupBinding, type SetupChecks, setupChecks } from './setup-warnings.ts'

/** Reads one framework's requests for the guard. Makes no decisions. */
export interface Binding<Args extends HandlerArguments> extends SetupBinding<Args> {
  /**
   * Returns the client's address as the framework reports it, or `undefined`.
   *
   * @throws {SlidegateError} `invalid_option` if callers can spoof it
   */
  address(...args: Args): string | undefined
  /** Returns the address of the connection's peer, or `undefined` if it's unknown. */
  peer(...args: Args): string | undefined
  /** Whether the runtime may have dropped headers from the request. Default: never. */
  isTruncated?(...args: Args): boolean
  /** Returns a signal that is aborted when the client disconnects. Called only if a request has to wait. */
  signal(...args: Args): AbortSignal
  /** Whether a connection can be closed without a response. */
  readonly canDrop: boolean
}

/** The guard's result, which the adapter must carry out. */
export interface Verdict {
  /** Set them with {@link placeHeaders} on any response, even one written by a handler. */
  readonly headers: readonly HeaderSet[]
  /** What to do instead of handling the request. Present only if the request is denied. */
  readonly denial?: Denial
  /** If present, call this when the response has ended, whether or not it is complete. */
  readonly onFinished?: (response: FinishedResponse) => void
}

/** What to do with a denied request. */
export type Denial =
  | ({ readonly action: 'answer' } & DenialResponse)
  /** Call `answer`, which runs the user's `onDenied`. */
  | { readonly action: 'custom'; readonly headers: readonly Header[]; readonly answer: () => unknown }
  /** Close the connection, which the client may already have closed. */
  | { readonly action: 'drop' }

/** Decides whether to admit a request. Returns a promise only if an async function or an external store is involved. */
export type Guard<Args extends HandlerArguments> = (...args: Args) => Verdict | PromiseLike<Verdict>

const UNLIMITED: Verdict = { headers: [] }
const DROPPED: Verdict = { headers: [], denial: { action: 'drop' } }

/**
 * Creates a guard. The adapter calls it with a handler's arguments and carries out the verdict.
 *
 * The guard throws or rejects if a function in the options does, if the key or cost is invalid, or if the store is unavailable.
 * Such failures are errors, not denials.
 *
 * @throws {SlidegateError} `invalid_option`, or any error from `createLimiter`
 */
export function createGuard<Args extends HandlerArguments>(
  options: GuardOptions<Args>,
  binding: Binding<Args>,
): Guard<Args> {
  checkGuardOptions(options)
  const { limits, skip, key, cost, onDenied, onAllowed, disclose = true } = options
  const limiter = (options.limiter ?? limiterFrom(options)) as Limiter<AnyKey>
  const limitsOf = limitsFunctionOf(limiter)
  // Only a `limits` function needs the request. A limiter passed in the options may have such a function.
  const isPassed = !Array.isArray(limits) || options.limiter !== undefined
  const jitterMs = options.retryJitter === undefined ? 0 : parseWindow(options.retryJitter, 'retryJitter')
  const decide = decider(limiter)
  const waiters = new Waiters(limiter)
  const settlerOf = settler(limiter, options)
  const treatmentOf = treatments(options, {
    canDrop: binding.canDrop,
    canWait: typeof limiter.wait === 'function',
  })
  const headersOf = headerWriter(disclose ? formatsOf(options.headers ?? 'draft-11') : [])
  const checks = setupChecks(limiter, options, binding)
  const addressOf = addressed(options, binding, checks)
  const listed = lists(options)

  function judge(args: Args): Verdict | PromiseLike<Verdict> {
    if (skip === undefined) return keyed(args)
    return after(skip(args[0]), (skips) => (skips === true ? UNLIMITED : keyed(args)))
  }

  function keyed(args: Args): Verdict | PromiseLike<Verdict> {
    const callerKey = key === undefined ? addressKey(addressOf(args), options.address) : key(args[0])
    return isPending(callerKey) ? callerKey.then((known) => limited(known, args)) : limited(callerKey, args)
  }

  function limited(callerKey: AnyKey, args: Args): Verdict | PromiseLike<Verdict> {
    checks?.charged(callerKey, args)
    // An invalid key is passed on, because the limiter rejects it.
    if (limitsOf === undefined || typeof callerKey !== 'string' || callerKey === '')
      return priced(callerKey, args[0], args)
    return after(limitsOf(callerKey, args[0]), (limits) => priced(callerKey, limits, args))
  }

  /** @param request passed to the limiter's `limits` function */
  function priced(callerKey: AnyKey, request: unknown, args: Args): Verdict | PromiseLike<Verdict> {
    if (cost === undefined) return treated(callerKey, isPassed ? { request } : undefined, args)
    return after(cost(args[0]), (units) => treated(callerKey, { cost: checkedCost(units), request }, args))
  }

  function treated(
    callerKey: AnyKey,
    callOptions: LimiterCallOptions | undefined,
    args: Args,
  ): Verdict | PromiseLike<Verdict> {
    const treatment = treatmentOf(args[0])
    return isPending(treatment)
      ? treatment.then((known) => decideWith(callerKey, callOptions, known, args))
      : decideWith(callerKey, callOptions, treatment, args)
  }

  function decideWith(
    callerKey: AnyKey,
    callOptions: LimiterCallOptions | undefined,
    treatment: Treatment,
    args: Args,
  ): Verdict | PromiseLike<Verdict> {
    if (treatment.maxWaitMs > 0) {
      return waiters
        .decide(callerKey, callOptions, treatment, binding.signal(...args))
        .then((decision) =>
          decision === undefined ? DROPPED : verdictOf(callerKey, callOptions, decision, treatment, args),
        )
    }
    const decision = decide(callerKey, callOptions)
    return isPending(decision)
      ? decision.then((known) => verdictOf(callerKey, callOptions, known, treatment, args))
      : verdictOf(callerKey, callOptions, decision, treatment, args)
  }

  function verdictOf(
    callerKey: AnyKey,
    callOptions: LimiterCallOptions | undefined,
    decided: Decision,
    { isDropped }: Treatment,
    args: Args,
  ): Verdict | PromiseLike<Verdict> {
    if (!decided.allowed && isDropped) return DROPPED
    const decision = decided.allowed || jitterMs === 0 ? decided : withJitter(decided, jitterMs)
    const headers = isDecided(decision.source) ? headersOf(decision) : []
    if (!decision.allowed) return { headers, denial: denied(decision, args) }
    const verdict =
      settlerOf === undefined
        ? { headers }
        : { headers, onFinished: settlerOf(callerKey, callOptions, decision, args) }
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

/** Returns a function that makes decisions. It returns no promise if the limiter can decide synchronously. */
function decider(
  limiter: Limiter<AnyKey>,
): (key: AnyKey, options?: LimiterCallOptions) => Decision | PromiseLike<Decision> {
  let isSync = typeof limiter.consumeSync === 'function'
  return (key, options) => {
    if (!isSync) return limiter.consume(key, options)
    try {
      return limiter.consumeSync(key, options)
    } catch (error) {
      if (!(error instanceof SlidegateError && error.code === 'sync_unsupported')) throw error
      isSync = false
      return limiter.consume(key, options)
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

/** Finds the client's address, using the `address` option or the framework. */
function addressed<Args extends HandlerArguments>(
  { address }: GuardOptions<Args>,
  binding: Binding<Args>,
  checks: SetupChecks<Args> | undefined,
): (args: Args) => string | undefined {
  if (address === undefined) {
    return (args) => {
      const found = binding.isTruncated?.(...args) === true ? undefined : binding.address(...args)
      checks?.addressed(found, args)
      return found
    }
  }
  const read: AddressReader = addressReader(address, 'address')
  return (args) =>
    read(
      binding.peer(...args),
      (name) => binding.header(name, ...args),
      () => binding.isTruncated?.(...args) === true,
    )
}

/** Returns a function that looks up an address in `allow` and `deny`. Returns `undefined` if neither is set. */
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
  // Rejected here, because the limiter would replace an undefined cost with the default, 1.
  if (units === undefined) {
    throw new SlidegateError(
      'invalid_cost',
      'cost returned undefined; it must return an integer of at least 1',
      units,
    )
  }
  return units
}
