import type { Context, MiddlewareHandler, Next } from 'hono'
import type { Decision } from '../decision.ts'
import { checkOptions } from '../errors.ts'
import { promised } from '../http/at-once.ts'
import { cannotDrop } from '../http/denied.ts'
import {
  answerTo,
  answerToNobody,
  asConnection,
  type Connection,
  fetchBinding,
  overseen,
  placed,
} from '../http/fetch.ts'
import { createGuard } from '../http/guard.ts'
import { drop } from '../http/node.ts'
import { GUARD_NAMES, type GuardOptions } from '../http/options.ts'

type Args = [c: Context, next: Next]

export interface RateLimitOptions extends GuardOptions<Args> {
  /** Answers a denied request in place of the problem body: its response gets the headers. Default: status 429 and RFC 9457. */
  readonly onDenied?: (decision: Decision, ...args: Args) => Response | ReturnType<MiddlewareHandler>
}

/**
 * Middleware for Hono 4, on Node, Bun, Deno, Workers and wherever else it runs.
 *
 *     app.use(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *     app.use(rateLimit({ limits, address: { trust: 1, header: 'cf-connecting-ip' } }))
 *
 * Without a `key` function callers are told apart by the other end of their connection, as Node, Bun and Deno tell it: behind
 * proxies, say so in `address`. Other platforms tell none: where neither is given, requests fail (`invalid_option`). So do
 * those that `denied: 'drop'` is for, but on Node.
 * Errors, `StoreUnavailableError` among them, are thrown, and go to `app.onError`.
 */
export function rateLimit(options: RateLimitOptions): MiddlewareHandler {
  checkOptions(options, 'rateLimit', GUARD_NAMES)
  const binding = fetchBinding<Args>((c) => c.req.raw, connectionOf)
  const guard = createGuard(options, { ...binding, canDrop: true })
  return async (c, next) => {
    const verdict = await promised(() => guard(c, next))
    const { denial, over } = verdict
    if (denial?.action === 'drop') return dropped(c)
    if (denial !== undefined) {
      const answer = await answerTo(denial, (body, init) => c.newResponse(body, init as Init))
      // Else it was passed on.
      if (!c.finalized && answer) c.res = answer as Response
    } else if (over === undefined) {
      await next()
    } else {
      replace(c, await overseen(over, c.req.raw, connectionOf(c), () => next().then(() => c.res)))
    }
    replace(c, placed(verdict, c.res))
  }
}

/** Hono knows its statuses one by one. */
type Init = Parameters<Context['newResponse']>[1]

function connectionOf({ env }: Context): Connection {
  return asConnection(env?.server ?? env)
}

/** Hono would put the fields of the former response over those of the new one. */
function replace(c: Context, response: Response): void {
  if (response === c.res) return
  c.res = undefined
  c.res = response
}

/** The client may have gone before, anywhere. */
function dropped(c: Context): Response {
  const { outgoing } = connectionOf(c)
  if (outgoing !== undefined) drop(outgoing)
  else if (!c.req.raw.signal.aborted) throw cannotDrop()
  return answerToNobody()
}
