import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express, { type Request, type RequestHandler } from 'express'
import { createLimiter, slidingWindow, withDenyCache } from 'slidegate'
import { serviceStore } from 'slidegate/client'
import { rateLimit } from 'slidegate/express'
import { redisStore } from 'slidegate/redis'
import { BODY, KEEP_ALIVE_MS, USER_HEADER } from '../http/app.ts'
import { connect } from '../redis/with-redis.ts'
import { PATIENCE_MS } from '../sides.ts'
import { serve } from '../workers.ts'

/** Starts an Express app. */
export interface FloodedApp {
  /** The name of the limiter. */
  readonly name: string
  readonly limit: number
  readonly windowMs: number
  /** The port of its store. Without one, the app has no limiter. */
  readonly store?: { readonly redis: number } | { readonly service: number }
  readonly isCached?: boolean
}

// Express reads NODE_ENV when it loads.
process.env.NODE_ENV = 'production'

serve<FloodedApp, number>(async (options) => {
  const app = express()
  if (options.store !== undefined) app.use(limited(options, options.store))
  app.get('/', (_req, res) => {
    res.json(BODY)
  })
  const server = app.listen(0, '127.0.0.1')
  server.keepAliveTimeout = KEEP_ALIVE_MS
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
})

function limited(
  { name, limit, windowMs, isCached }: FloodedApp,
  at: NonNullable<FloodedApp['store']>,
): RequestHandler {
  const store =
    'redis' in at
      ? redisStore(connect(`redis://127.0.0.1:${at.redis}`))
      : serviceStore(`http://127.0.0.1:${at.service}`)
  const limiter = createLimiter({
    name,
    limits: [slidingWindow({ limit, window: windowMs })],
    store: isCached ? withDenyCache(store) : store,
    timeoutMs: PATIENCE_MS,
  })
  return rateLimit({ limiter, key: (req: Request) => req.headers[USER_HEADER] as string })
}
