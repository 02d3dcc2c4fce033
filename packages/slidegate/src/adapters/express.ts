import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { addressKey } from '../http/address.ts'
import { after, settle } from '../http/at-once.ts'
import { mayBeCut } from '../http/client-address.ts'
import { createGuard, type Denial } from '../http/guard.ts'
import type { Header } from '../http/headers.ts'
import type { GuardOptions } from '../http/options.ts'
import { believesAnybody, type IsTrusted, spoofableAddress } from '../http/trust.ts'

export type RateLimitOptions = GuardOptions<[req: Request, res: Response, next: NextFunction]>

/**
 * Middleware for Express 5 and 4.
 *
 *     app.use(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *
 * Without a `key` function callers are told apart by `req.ip`, which is right only if the app's `trust proxy`
 * names its proxies: where it trusts everybody callers choose their own address, so that is refused
 * (`invalid_option`).
 * Errors, `StoreUnavailableError` among them, go to `next`.
 */
export function rateLimit(options: RateLimitOptions): RequestHandler {
  const guard = createGuard(options, clientAddressKey())
  const { onDenied } = options

  function admits(req: Request, res: Response, next: NextFunction): boolean | PromiseLike<boolean> {
    return after(guard(req), ({ headers, denial }) => {
      setHeaders(res, headers)
      if (denial === undefined) return true
      if (onDenied !== undefined) return after(onDenied(denial.decision, req, res, next), () => false)
      send(res, denial)
      return false
    })
  }

  // What is thrown downstream of next() is not ours to handle. And no promise is returned, for Express 5 would
  // pass its rejection to next once more.
  return (req, res, next) =>
    settle(
      () => admits(req, res, next),
      (admitted) => {
        if (admitted) next()
      },
      next,
    )
}

/** The setting may change while the app is put together. */
function clientAddressKey(): (req: Request) => string {
  let checked: IsTrusted | undefined
  return (req) => {
    const isTrusted = req.app.get('trust proxy fn') as IsTrusted
    if (isTrusted !== checked) {
      if (believesAnybody(isTrusted)) throw spoofableAddress("'trust proxy'")
      checked = isTrusted
    }
    return addressKey(mayBeCut(req) ? undefined : req.ip)
  }
}

function setHeaders(res: Response, headers: readonly Header[]): void {
  for (const { name, value, append } of headers) {
    const earlier = append && res.getHeader(name)
    res.setHeader(name, earlier === undefined ? value : append!(String(earlier), value))
  }
}

function send(res: Response, denial: Denial): void {
  res.statusCode = denial.status
  setHeaders(res, denial.headers)
  res.end(denial.body)
}
