import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { SlidegateError } from '../errors.ts'
import { addressKey } from '../http/address.ts'
import { createGuard, type Denial } from '../http/guard.ts'
import type { Header } from '../http/headers.ts'
import type { GuardOptions } from '../http/options.ts'

export type RateLimitOptions = GuardOptions<[req: Request, res: Response, next: NextFunction]>

/**
 * Middleware for Express 5 and 4.
 *
 *     app.use(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *
 * Without a `key` function callers are told apart by `req.ip`, which is right only if the app's `trust proxy`
 * names its proxies: with `true` callers choose their own address, so that is refused (`invalid_option`).
 * Errors, `StoreUnavailableError` among them, go to `next`.
 */
export function rateLimit(options: RateLimitOptions): RequestHandler {
  const guard = createGuard(options, clientAddressKey)
  const { onDenied } = options

  async function admits(req: Request, res: Response, next: NextFunction): Promise<boolean> {
    const { headers, denial } = await guard(req)
    setHeaders(res, headers)
    if (denial === undefined) return true
    if (onDenied === undefined) send(res, denial)
    else await onDenied(denial.decision, req, res, next)
    return false
  }

  return (req, res, next) => {
    // Two arguments rather than a catch: what is thrown downstream of next() is not ours to handle. And no
    // promise is returned, for Express 5 would pass its rejection to next once more.
    admits(req, res, next).then(
      (admitted) => {
        if (admitted) next()
      },
      (reason) => next(asError(reason)),
    )
  }
}

function clientAddressKey(req: Request): string {
  const trustProxy: unknown = req.app.get('trust proxy')
  if (trustProxy === true) {
    throw new SlidegateError(
      'invalid_option',
      "with 'trust proxy' set to true the client's address is whatever the client says; set it to the number or the addresses of your proxies, or give a key function",
      trustProxy,
    )
  }
  return addressKey(req.ip)
}

function setHeaders(res: Response, headers: readonly Header[]): void {
  for (const { name, value, append } of headers) {
    const earlier = res.getHeader(name)
    const isBegun = append !== undefined && earlier !== undefined
    res.setHeader(name, isBegun ? append(String(earlier)) : value)
  }
}

function send(res: Response, denial: Denial): void {
  res.statusCode = denial.status
  setHeaders(res, denial.headers)
  res.end(denial.body)
}

/** To `next`, nothing and words like `route` mean to go on: thrown, they must not lead around the limit. */
function asError(reason: unknown): unknown {
  return typeof reason === 'object' && reason !== null
    ? reason
    : new Error(`thrown: ${String(reason)}`, { cause: reason })
}
