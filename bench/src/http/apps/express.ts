import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express, { type Request, type RequestHandler } from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import type { Redis } from 'ioredis'
import { type RedisReply, RedisStore } from 'rate-limit-redis'
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import { rateLimit } from 'slidegate/express'
import type { Policy } from '../../peers/peer.ts'
import { type App, BODY, KEEP_ALIVE_MS, type Served, USER_HEADER } from '../app.ts'
import { slidegateLimiter } from '../limiter.ts'

const userOf = (req: Request) => req.headers[USER_HEADER] as string

/** Express apps with one route, by limiter. */
export function expressApps({ limit, windowMs }: Policy): Readonly<Record<string, App>> {
  return {
    bare: (_redis) => serve(),
    slidegate: (redis) =>
      serve(rateLimit({ limiter: slidegateLimiter(redis, { limit, windowMs }), key: userOf })),
    'express-rate-limit': (redis) =>
      serve(
        expressRateLimit({
          limit,
          windowMs,
          standardHeaders: 'draft-8',
          legacyHeaders: false,
          keyGenerator: userOf,
          store: redis && new RedisStore({ sendCommand: sendCommandOf(redis) }),
        }),
      ),
    'rate-limiter-flexible': (redis) => {
      const options = { points: limit, duration: windowMs / 1000 }
      const limiter = redis
        ? new RateLimiterRedis({ ...options, storeClient: redis })
        : new RateLimiterMemory(options)
      return serve((req, res, next) => {
        limiter
          .consume(userOf(req))
          .then(() => next())
          .catch(() => res.status(429).send('Too Many Requests'))
      })
    },
  }
}

function sendCommandOf(redis: Redis) {
  return (command: string, ...args: string[]) => redis.call(command, ...args) as Promise<RedisReply>
}

async function serve(...middlewares: RequestHandler[]): Promise<Served> {
  const app = express()
  for (const middleware of middlewares) app.use(middleware)
  app.get('/', (_req, res) => {
    res.json(BODY)
  })
  const server = app.listen(0, '127.0.0.1')
  server.keepAliveTimeout = KEEP_ALIVE_MS
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port }
}
