// The adapter for node:http, node:https, node:http2 and Connect.
import { createGuard } from '../http/guard.ts'
import { connect, type NodeRequest, type NodeResponse, nodeBinding } from '../http/node.ts'
import { checkRateLimit } from '../http/option-names.ts'
import { GUARD_NAMES, type GuardOptions } from '../http/options.ts'

type Next = (error?: unknown) => void

/** The options that all adapters share. Functions in them receive `req`, `res` and `next`. */
export interface RateLimitOptions extends GuardOptions<[req: NodeRequest, res: NodeResponse, next: Next]> {}

/**
 * Returns middleware for `node:http`, `node:https` and `node:http2` servers, and for Connect.
 *
 *     const limit = rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] })
 *     createServer((req, res) => limit(req, res, (error) => (error ? fail(error, res) : handle(req, res))))
 *
 * It calls `next()` for admitted requests, and passes errors such as `StoreUnavailableError` to `next`. The
 * default key is the address of the connection's peer. Behind proxies, set `address`.
 */
export function rateLimit(
  options: RateLimitOptions,
): (req: NodeRequest, res: NodeResponse, next: Next) => void {
  checkRateLimit(options, GUARD_NAMES)
  const node = nodeBinding<[req: NodeRequest, res: NodeResponse, next: Next]>(
    (req) => req,
    (_, res) => res,
  )
  return connect(createGuard(options, { ...node, address: node.peer }))
}
