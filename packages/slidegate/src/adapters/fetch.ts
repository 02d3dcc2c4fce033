import type { Decision } from '../decision.ts'
import { checkOptions } from '../errors.ts'
import { promised } from '../http/at-once.ts'
import type { Answer } from '../http/binding.ts'
import { answerTo, answerToNobody, asConnection, fetchBinding, overseen, placed } from '../http/fetch.ts'
import { createGuard } from '../http/guard.ts'
import { GUARD_NAMES, type GuardOptions } from '../http/options.ts'

/**
 * What a handler is given: a request, and what the platform adds to it, which may tell the address of the
 * connection's other end.
 */
export type FetchArguments = [request: Request, ...rest: unknown[]]

export interface RateLimitOptions<Args extends FetchArguments = FetchArguments> extends GuardOptions<Args> {
  /** Answers a denied request in place of the problem body: its response gets the headers. Default: status 429 and RFC 9457. */
  readonly onDenied?: (decision: Decision, ...args: Args) => Response | Promise<Response>
}

/**
 * For handlers that take a `Request` and return a `Response`: of Workers, Deno, Bun, and of Next.js, its proxy too.
 *
 *     Deno.serve(withRateLimit((request) => new Response('served'), { limits }))
 *
 *     const address = { trust: 1, header: 'cf-connecting-ip' } as const
 *     export default { fetch: withRateLimit(async (request: Request, env: Env) => ..., { limits, address }) }
 *
 *     export const GET = withRateLimit(async (request: NextRequest, { params }: Context) => ..., { limits, key })
 *     export const proxy = withRateLimit((request: NextRequest) => NextResponse.next(), { limits, key })
 *
 * Without a `key` function callers are told apart by the other end of their connection, as Deno and Bun tell it: behind
 * proxies, say so in `address`. Other platforms tell none: where neither is given, requests fail (`invalid_option`).
 * Errors, `StoreUnavailableError` among them, are thrown. Headers are set on the response that a handler returns: one that
 * is returned more than once would gather them, so return a new one each time, or `clone()` it.
 */
export function withRateLimit<Args extends FetchArguments, R extends Answer>(
  handler: (...args: Args) => R | Promise<R>,
  options: RateLimitOptions<Args>,
): (...args: Args) => Promise<R | Response> {
  return rateLimit(options)(handler)
}

/** The same for several handlers, which count together: `const limited = rateLimit({ limits })`, `limited(handler)`. */
export function rateLimit<Args extends FetchArguments = FetchArguments>(
  options: RateLimitOptions<Args>,
): <Own extends Args, R extends Answer>(
  handler: (...args: Own) => R | Promise<R>,
) => (...args: Own) => Promise<R | Response> {
  checkOptions(options, 'rateLimit', GUARD_NAMES)
  const binding = fetchBinding<Args>(
    (...[request]) => request,
    (...[, connection]) => connection,
  )
  const guard = createGuard(options, { ...binding, canDrop: false })
  return <Own extends Args, R extends Answer>(handler: (...args: Own) => R | Promise<R>) => {
    const limited = async (...args: Own) => {
      const verdict = await promised(() => guard(...args))
      const { denial, over } = verdict
      if (denial?.action === 'drop') return answerToNobody()
      if (denial !== undefined) {
        const answer = await answerTo(denial, (body, init) => new Response(body, init))
        return placed(verdict, answer as Response)
      }
      const handle = async () => await handler(...args)
      const [request, connection] = args
      const answer =
        over === undefined ? await handle() : await overseen(over, request, asConnection(connection), handle)
      return placed(verdict, answer)
    }
    // Deno tells the connection to handlers that name a second parameter, and to no others.
    return Object.defineProperty(limited, 'length', { value: 2 })
  }
}
