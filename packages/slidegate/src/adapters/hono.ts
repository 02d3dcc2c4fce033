// The adapter for Hono 4 in any runtime.
import type { Context, MiddlewareHandler, Next } from 'hono'
import type { Decision } from '../decision.ts'
import { cannotDrop } from '../http/denied.ts'
import {
  asConnection,
  type Connection,
  denialResponse,
  droppedResponse,
  fetchBinding,
  watchResponse,
  withHeaders,
} from '../http/fetch.ts'
import { createGuard } from '../http/guard.ts'
import { promised } from '../http/maybe-async.ts'
import { drop } from '../http/node.ts'
import { checkRateLimit } from '../http/option-names.ts'
import { GUARD_NAMES, type GuardOptions } from '../http/options.ts'

type Args = [c: Context, next: Next]

export interface RateLimitOptions extends GuardOptions<Args> {
  /** Returns the response to send instead of the problem body. The adapter adds the rate limit headers. */
  readonly onDenied?: (decision: Decision, ...args: Args) => Response | ReturnType<MiddlewareHandler>
}

/**
 * Returns middleware for Hono 4 in any runtime.
 *
 *     app.use(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *     app.use(rateLimit({ limits, address: { trust: 1, header: 'cf-connecting-ip' } }))
 *
 * In Node, Bun and Deno, the default key is the address of the connection's peer. Behind proxies, set `address`. On other
 * platforms, requests fail with `invalid_option` unless you set `key` or `address`. `denied: 'drop'` works only on Node. Errors,
 * such as `StoreUnavailableError`, are thrown and go to `app.onError`.
 */
export function rateLimit(options: RateLimitOptions): MiddlewareHandler {
  checkRateLimit(options, GUARD_NAMES)
  const binding = fetchBinding<Args>((c) => c.req.raw, connectionOf)
  const guard = createGuard(options, { ...binding, canDrop: true })
  return async (c, next) => {
    const verdict = await promised(() => guard(c, next))
    const { denial, onFinished } = verdict
    if (denial?.action === 'drop') return dropped(c)
    if (denial !== undefined) {
      const answer = await denialResponse(denial, (body, init) => c.newResponse(body, init as Init))
      // If onDenied returned no response, it has called next().
      if (!c.finalized && answer) c.res = answer as Response
    } else if (onFinished === undefined) {
      await next()
    } else {
      replace(c, await watchResponse(onFinished, c.req.raw, connectionOf(c), () => next().then(() => c.res)))
    }
    replace(c, withHeaders(verdict, c.res))
  }
}

/** Used in a cast, because Hono types a status as a union of numbers. */
type Init = Parameters<Context['newResponse']>[1]

function connectionOf({ env }: Context): Connection {
  return asConnection(env?.server ?? env)
}

/** Replaces the response. Clears the old one first, because Hono would copy its headers to the new one. */
function replace(c: Context, response: Response): void {
  if (response === c.res) return
  c.res = undefined
  c.res = response
}

/** Closes the connection on Node. Throws on other platforms, unless the client has already disconnected. */
function dropped(c: Context): Response {
  const { outgoing } = connectionOf(c)
  if (outgoing !== undefined) drop(outgoing)
  else if (!c.req.raw.signal.aborted) throw cannotDrop()
  return droppedResponse()
}
