// Koa 3 and 2.
import type { Middleware, Next, ParameterizedContext } from 'koa'
import { checkOptions } from '../errors.ts'
import { createGuard, type Denial } from '../http/guard.ts'
import { placeHeaders } from '../http/headers.ts'
import { promised } from '../http/maybe-async.ts'
import { drop, NodeFields, nodeBinding, whenOver } from '../http/node.ts'
import { GUARD_NAMES, type GuardOptions } from '../http/options.ts'
import { believesAnybody, spoofableAddress } from '../http/trust.ts'

type Context = ParameterizedContext

/** The options of every adapter. Functions get the context and `next`. */
export type RateLimitOptions = GuardOptions<[ctx: Context, next: Next]>

/**
 * Middleware for Koa 3, and 2 from 2.11.
 *
 *     app.use(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *     app.use(rateLimit({ limits, key: (ctx) => userKey(ctx.state.user?.id) }))
 *
 * The default key is the address in `ctx.ip`. Behind proxies the app needs `proxy` and their number as `maxIpsCount`: without
 * that number callers choose their own address, so requests fail (`invalid_option`). Errors, such as `StoreUnavailableError`,
 * are thrown.
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  checkOptions(options, 'rateLimit', GUARD_NAMES)
  const node = nodeBinding<[ctx: Context, next: Next]>(
    (ctx) => ctx.req,
    (ctx) => ctx.res,
  )
  const guard = createGuard(options, { ...node, address: clientAddress })
  return async (ctx, next) => {
    const { headers, denial, over } = await promised(() => guard(ctx, next))
    placeHeaders(headers, new NodeFields(ctx.res))
    if (over !== undefined) whenOver(ctx.res, over)
    return denial === undefined ? await next() : await deny(ctx, denial)
  }
}

/** Koa takes the last `maxIpsCount` addresses in the header, by default all of them, and of these the first. */
function clientAddress(ctx: Context): string | undefined {
  const { proxy, maxIpsCount } = ctx.app
  if (proxy && believesAnybody((_, hop) => !(maxIpsCount > 0) || hop < maxIpsCount)) {
    throw spoofableAddress('proxy', 'set maxIpsCount to the number of your proxies')
  }
  return ctx.ip
}

async function deny(ctx: Context, denial: Denial): Promise<unknown> {
  if (denial.action === 'drop') {
    ctx.respond = false
    return drop(ctx.res)
  }
  for (const { name, value } of denial.headers) ctx.set(name, value)
  if (denial.action === 'custom') return await promised(denial.answer)
  ctx.status = denial.status
  ctx.body = denial.body
  return undefined
}
