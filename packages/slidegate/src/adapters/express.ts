// The adapter for Express 5 and 4.
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { createGuard } from '../http/guard.ts'
import { connect, nodeBinding } from '../http/node.ts'
import { checkRateLimit } from '../http/option-names.ts'
import { GUARD_NAMES, type GuardOptions } from '../http/options.ts'
import { expressProxySetting, type IsTrusted, unlessTrustsEveryone } from '../http/trust.ts'

/** The options that all adapters share. Functions in them receive `req`, `res` and `next`. */
export interface RateLimitOptions extends GuardOptions<[req: Request, res: Response, next: NextFunction]> {}

/**
 * Returns middleware for Express 5 and 4.
 *
 *     app.use(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *
 * The default key is the address in `req.ip`. List your proxies in the app's `trust proxy` setting. If that
 * setting trusts every client, requests fail with `invalid_option`, because clients could spoof their
 * address. Errors, such as `StoreUnavailableError`, are passed to `next`.
 */
export function rateLimit(options: RateLimitOptions): RequestHandler {
  checkRateLimit(options, GUARD_NAMES)
  const node = nodeBinding<[req: Request, res: Response, next: NextFunction]>(
    (req) => req,
    (_, res) => res,
  )
  const address = unlessTrustsEveryone<Request>(
    "'trust proxy'",
    (req) => req.app.get('trust proxy fn') as IsTrusted,
    (req) => req.ip,
  )
  return connect(
    createGuard(options, { ...node, address, proxySetting: (req) => expressProxySetting(req.app) }),
  )
}
