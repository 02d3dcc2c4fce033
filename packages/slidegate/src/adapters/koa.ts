// The adapter for Koa 3 and 2.
import type { Middleware, Next, ParameterizedContext } from 'koa'
import { createGuard, type Denial } from '../http/guard.ts'
import { placeHeaders } from '../http/headers.ts'
import { promised } from '../http/maybe-async.ts'
import { NodeReply, nodeBinding } from '../http/node.ts'
import { checkRateLimit } from '../http/option-names.ts'
import { GUARD_NAMES, type GuardOptions } from '../http/options.ts'
import { spoofableAddress, trustsEveryone } from '../http/trust.ts'

type Context = ParameterizedContext

/** The options that all adapters share. Functions in them receive the context and `next`. */
export interface RateLimitOptions extends GuardOptions<[ctx: Context, next: Next]> {}

/**
 * Returns middleware for Koa 2.11 or later, including Koa 3.
 *
 *     app.use(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *     app.use(rateLimit({ limits, key: (ctx) => userKey(ctx.state.user?.id) }))
 *
 * The default key is the address in `ctx.ip`. Behind proxies, set the app's `proxy` to `true` and `maxIpsCount` to the number of
 * your proxies. Without `maxIpsCount`, requests fail with `invalid_option`, because clients could spoof their address. Errors,
 * such as `StoreUnavailableError`, are thrown.
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  checkRateLimit(options, GUARD_NAMES)
  const node = nodeBinding<[ctx: Context, next: Next]>(
    (ctx) => ctx.req,
    (ctx) => ctx.res,
  )
  const guard = createGuard(options, { ...node, address: clientAddress, proxySetting })
  return async (ctx, next) => {
    const { headers, denial, onFinished } = await promised(() => guard(ctx, next))
    const reply = new NodeReply(ctx.res)
    placeHeaders(headers, reply)
    if (onFinished !== undefined) reply.whenOver(onFinished)
    return denial === undefined ? await next() : await deny(ctx, denial, reply)
  }
}

/**
 * Koa uses the first of the last `maxIpsCount` addresses in the header. By default, it uses the very first address, which clients
 * can set.
 */
function clientAddress(ctx: Context): string | undefined {
  const { proxy, maxIpsCount } = ctx.app
  if (proxy && trustsEveryone((_, hop) => !(maxIpsCount > 0) || hop < maxIpsCount)) {
    throw spoofableAddress('proxy', 'set maxIpsCount to the number of your proxies')
  }
  return ctx.ip
}

function proxySetting({ app }: Context): string | undefined {
  return app.proxy ? undefined : "the app's proxy and maxIpsCount"
}

async function deny(ctx: Context, denial: Denial, reply: NodeReply): Promise<unknown> {
  if (denial.action === 'drop') {
    ctx.respond = false
    return reply.drop()
  }
  for (const { name, value } of denial.headers) ctx.set(name, value)
  if (denial.action === 'custom') return await promised(denial.answer)
  ctx.status = denial.status
  ctx.body = denial.body
  return undefined
}
