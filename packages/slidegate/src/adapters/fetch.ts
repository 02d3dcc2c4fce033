// The adapter for Fetch API handlers: Workers, Deno, Bun, Next.js.
import type { Decision } from '../decision.ts'
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
import { checkRateLimit } from '../http/option-names.ts'
import { GUARD_NAMES, type GuardOptions, type HandlerResponse } from '../http/options.ts'

/** The request, followed by the platform's own arguments, which may contain the client's address. */
export type FetchArguments = [request: Request, ...rest: unknown[]]

export interface RateLimitOptions<Args extends FetchArguments = FetchArguments> extends GuardOptions<Args> {
  /** Returns the response to send instead of the problem body. The adapter adds the rate limit headers. */
  readonly onDenied?: (decision: Decision, ...args: Args) => Response | Promise<Response>
}

/**
 * Limits a handler that takes a `Request` and returns a `Response`.
 *
 * Works with Workers, Deno, Bun and Next.js, including the Next.js proxy.
 *
 *     Deno.serve(withRateLimit((request) => new Response('served'), { limits }))
 *
 *     const address = { trust: 1, header: 'cf-connecting-ip' } as const
 *     export default { fetch: withRateLimit(async (request: Request, env: Env) => ..., { limits, address }) }
 *
 *     export const GET = withRateLimit(async (request: NextRequest, { params }: Context) => ..., { limits, key })
 *     export const proxy = withRateLimit((request: NextRequest) => NextResponse.next(), { limits, key })
 *
 * In Deno and Bun, the default key is the address of the connection's peer. Behind proxies, set `address`. On other
 * platforms, requests fail with `invalid_option` unless you set `key` or `address`. Errors, such as
 * `StoreUnavailableError`, are thrown. The headers are set on the handler's response, so return a new response or a
 * `clone()` each time.
 */
export function withRateLimit<Args extends FetchArguments, R extends HandlerResponse>(
  handler: (...args: Args) => R | Promise<R>,
  options: RateLimitOptions<Args>,
): (...args: Args) => Promise<R | Response> {
  return rateLimit(options)(handler)
}

/**
 * Like `withRateLimit`, for several handlers that share counts: `const limited = rateLimit({ limits })`, then
 * `limited(handler)`.
 */
export function rateLimit<Args extends FetchArguments = FetchArguments>(
  options: RateLimitOptions<Args>,
): <Own extends Args, R extends HandlerResponse>(
  handler: (...args: Own) => R | Promise<R>,
) => (...args: Own) => Promise<R | Response> {
  checkRateLimit(options, GUARD_NAMES)
  const binding = fetchBinding<Args>(
    (...[request]) => request,
    (...[, connection]) => connection,
  )
  const guard = createGuard(options, { ...binding, canDrop: false, sharesRequests: true })
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
    // Deno passes the connection only to handlers that declare a second parameter.
    return Object.defineProperty(limited, 'length', { value: 2 })
  }
}
