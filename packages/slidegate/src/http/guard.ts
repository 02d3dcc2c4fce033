import { type Decision, isDecided } from '../decision.ts'
import { SlidegateError } from '../errors.ts'
import { type ConsumeOptions, createLimiter, type Limiter } from '../limiter.ts'
import { after } from './at-once.ts'
import { HEADER_GENERATIONS, type Header, retryAfterHeaders } from './headers.ts'
import { checkOptions, type GuardOptions, type HandlerArguments } from './options.ts'
import { PROBLEM_CONTENT_TYPE, problemOf } from './problem.ts'

/** What an adapter has to do with a request. */
export interface Verdict {
  /** To be set on the response, whoever writes it. */
  readonly headers: readonly Header[]
  /** Present where the request is denied: it goes to `onDenied` if there is one, else it is answered with this. */
  readonly denial?: Denial
}

/** A denied request and the response to it. */
export interface Denial {
  readonly decision: Decision
  readonly status: number
  readonly headers: readonly Header[]
  readonly body: string
}

/** A promise only where something has to be waited for: the user's functions, or a store that is elsewhere. */
export type Guard<Request> = (request: Request) => Verdict | PromiseLike<Verdict>

const UNLIMITED: Verdict = { headers: [] }

/**
 * The policy that all adapters share. They hand in the request and their way to the client's address, carry
 * out the verdict, and decide nothing. A guard throws or rejects where a function of the user does, the key or
 * cost is invalid, or the store is unavailable: that is the framework's error, never a denial.
 */
export function createGuard<Args extends HandlerArguments>(
  options: GuardOptions<Args>,
  clientAddressKey: (request: Args[0]) => string,
): Guard<Args[0]> {
  checkOptions(options)
  const { name, limits = [], store, skip, key = clientAddressKey, cost, headers = 'draft-11' } = options
  const decide = decider(options.limiter ?? createLimiter({ name, limits, store }))
  const rateLimitHeaders = headers === false ? () => [] : HEADER_GENERATIONS[headers]

  function judge(request: Args[0]): Verdict | PromiseLike<Verdict> {
    return after(key(request), (whom) =>
      cost === undefined
        ? after(decide(whom), verdictOf)
        : after(cost(request), (units) => after(decide(whom, { cost: checkedCost(units) }), verdictOf)),
    )
  }

  function verdictOf(decision: Decision): Verdict {
    const headers = isDecided(decision.source) ? rateLimitHeaders(decision) : []
    if (decision.allowed) return { headers }
    return { headers: [...headers, ...retryAfterHeaders(decision)], denial: denialOf(decision) }
  }

  if (skip === undefined) return judge
  return (request) => after(skip(request), (skips) => (skips === true ? UNLIMITED : judge(request)))
}

/** Asks at once where the limiter's state is in this process. */
function decider(
  limiter: Limiter,
): (key: string, options?: ConsumeOptions) => Decision | PromiseLike<Decision> {
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

function checkedCost(units: number): number {
  // The limiter would take it for a cost left out, which is 1.
  if (units === undefined) {
    throw new SlidegateError('invalid_cost', 'the cost is undefined; it must be an integer from 1', units)
  }
  return units
}

function denialOf(decision: Decision): Denial {
  const problem = problemOf(decision)
  return {
    decision,
    status: problem.status,
    headers: [{ name: 'Content-Type', value: PROBLEM_CONTENT_TYPE }],
    body: JSON.stringify(problem),
  }
}
