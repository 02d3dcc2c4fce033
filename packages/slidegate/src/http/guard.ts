import type { Decision } from '../decision.ts'
import { SlidegateError } from '../errors.ts'
import { createLimiter } from '../limiter.ts'
import { HEADER_GENERATIONS, type Header, retryAfterHeaders } from './headers.ts'
import { checkOptions, type GuardOptions, type HandlerArguments } from './options.ts'
import { PROBLEM_CONTENT_TYPE, quotaExceededProblem } from './problem.ts'

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

export type Guard<Request> = (request: Request) => Promise<Verdict>

/**
 * The policy that all adapters share. They hand in the request and their way to the client's address, carry
 * out the verdict, and decide nothing. A guard rejects where a function of the user throws, the key or cost is
 * invalid, or the store is unavailable: that is the framework's error, never a denial.
 */
export function createGuard<Args extends HandlerArguments>(
  options: GuardOptions<Args>,
  clientAddressKey: (request: Args[0]) => string,
): Guard<Args[0]> {
  checkOptions(options)
  const { name, limits = [], store, skip, key = clientAddressKey, cost, headers = 'draft-11' } = options
  const limiter = options.limiter ?? createLimiter({ name, limits, store })
  const rateLimitHeaders = headers === false ? () => [] : HEADER_GENERATIONS[headers]

  async function costOf(request: Args[0]): Promise<number> {
    if (cost === undefined) return 1
    const units = await cost(request)
    // The limiter would take it for a cost left out, which is 1.
    if (units === undefined) {
      throw new SlidegateError('invalid_cost', 'the cost is undefined; it must be an integer from 1', units)
    }
    return units
  }

  return async (request) => {
    if (skip !== undefined && (await skip(request)) === true) return { headers: [] }
    const decision = await limiter.consume(await key(request), { cost: await costOf(request) })
    const verdict = { headers: [...rateLimitHeaders(decision), ...retryAfterHeaders(decision)] }
    return decision.allowed ? verdict : { ...verdict, denial: denialOf(decision) }
  }
}

function denialOf(decision: Decision): Denial {
  const problem = quotaExceededProblem(decision)
  return {
    decision,
    status: problem.status,
    headers: [{ name: 'Content-Type', value: PROBLEM_CONTENT_TYPE }],
    body: JSON.stringify(problem),
  }
}
