import type { Middleware, Next, ParameterizedContext } from 'koa'
import { checkOptions } from '../errors.ts'
import { promised } from '../http/at-once.ts'
import { createGuard, type Denial } from '../http/guard.ts'
import { placeHeaders } from '../http/headers.ts'
import { drop, NodeFields, nodeBinding, whenOver } from '../http/node.ts'
import { GUARD_NAMES, type GuardOptions } from '../http/options.ts'
import { believesAnybody, spoofableAddress } from '../http/trust.ts'

type Context = ParameterizedContext

/** As of every adapter; functions are given the context and `next`. */
export type RateLimitOptions = GuardOptions<[ctx: Context, next: Next]>

/**
 * Middleware for Koa 3, and 2 from 2.11.
 *
 *     app.use(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *     app.use(rateLimit({ limits, key: (ctx) => userKey(ctx.state.user?.id) }))
 *
 * Without a `key` function callers are told apart by `ctx.ip`. Behind proxies that is right only if the app's `proxy` is on
 * and its `maxIpsCount` is how many there are: where it is left out callers choose their own address, so that is refused
 * (`invalid_option`).
 * Errors, `StoreUnavailableError` among them, are thrown.
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

/** Of the addresses in the header Koa takes the last `maxIpsCount`, all of them unless told, and of these the first. */
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
