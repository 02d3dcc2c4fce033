// For handlers of the Fetch API: Workers, Deno, Bun, Next.js.
import type { Decision } from '../decision.ts'
import { checkOptions } from '../errors.ts'
import {
  asConnection,
  denialResponse,
  droppedResponse,
  fetchBinding,
  watchResponse,
  withHeaders,
} from '../http/fetch.ts'
import { createGuard } from '../http/guard.ts'
import { promised } from '../http/maybe-async.ts'
import { GUARD_NAMES, type GuardOptions, type HandlerResponse } from '../http/options.ts'

/** The arguments of a handler: a request, and those of the platform, which may have the client's address. */
export type FetchArguments = [request: Request, ...rest: unknown[]]

export interface RateLimitOptions<Args extends FetchArguments = FetchArguments> extends GuardOptions<Args> {
  /** Answers a denied request instead of the problem body. Its response gets the headers. */
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
 * The default key is the address of the connection's other end in Deno and Bun: behind proxies, set `address`. On other
 * platforms requests fail (`invalid_option`) without `key` or `address`. Errors, such as `StoreUnavailableError`, are thrown.
 * Headers are set on the handler's response: return a new one each time, or `clone()` it.
 */
export function withRateLimit<Args extends FetchArguments, R extends HandlerResponse>(
  handler: (...args: Args) => R | Promise<R>,
  options: RateLimitOptions<Args>,
): (...args: Args) => Promise<R | Response> {
  return rateLimit(options)(handler)
}

/** The same for several handlers that count together: `const limited = rateLimit({ limits })`, `limited(handler)`. */
export function rateLimit<Args extends FetchArguments = FetchArguments>(
  options: RateLimitOptions<Args>,
): <Own extends Args, R extends HandlerResponse>(
  handler: (...args: Own) => R | Promise<R>,
) => (...args: Own) => Promise<R | Response> {
  checkOptions(options, 'rateLimit', GUARD_NAMES)
  const binding = fetchBinding<Args>(
    (...[request]) => request,
    (...[, connection]) => connection,
  )
  const guard = createGuard(options, { ...binding, canDrop: false })
  return <Own extends Args, R extends HandlerResponse>(handler: (...args: Own) => R | Promise<R>) => {
    const limited = async (...args: Own) => {
      const verdict = await promised(() => guard(...args))
      const { denial, onFinished } = verdict
      if (denial?.action === 'drop') return droppedResponse()
      if (denial !== undefined) {
        const answer = await denialResponse(denial, (body, init) => new Response(body, init))
        return withHeaders(verdict, answer as Response)
      }
      const handle = async () => await handler(...args)
      const [request, connection] = args
      const answer =
        onFinished === undefined
          ? await handle()
          : await watchResponse(onFinished, request, asConnection(connection), handle)
      return withHeaders(verdict, answer)
    }
    // Deno passes the connection only to handlers that name a second parameter.
    return Object.defineProperty(limited, 'length', { value: 2 })
  }
}
