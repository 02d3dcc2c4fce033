import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type ServerType, serve as serveWithNode } from '@hono/node-server'
import { Hono, type MiddlewareHandler } from 'hono'
import { RedisStore, rateLimiter } from 'hono-rate-limiter'
import type { Redis } from 'ioredis'
import type { Policy } from '../../peers/peer.ts'
import { type App, BODY, KEEP_ALIVE_MS, type Served, USER_HEADER } from '../app.ts'

/** Returns Hono apps with one route, by limiter. */
export function honoApps({ limit, windowMs }: Policy): Readonly<Record<string, App>> {
  return {
    bare: (_redis) => serve(),
    'hono-rate-limiter': (redis) =>
      serve(
        rateLimiter({
          limit,
          windowMs,
          standardHeaders: 'draft-7',
          keyGenerator: (c) => c.req.header(USER_HEADER)!,
          store: redis && new RedisStore({ client: clientOf(redis) }),
        }),
      ),
  }
}

/** Wraps ioredis as the Upstash client that the store expects. */
function clientOf(redis: Redis) {
  return {
    scriptLoad: (script: string) => redis.script('LOAD', script) as Promise<string>,
    evalsha: <Args extends unknown[], Data>(sha1: string, keys: string[], args: Args) =>
      redis.evalsha(sha1, keys.length, ...keys, ...(args as string[])) as Promise<Data>,
    decr: (key: string) => redis.decr(key),
    del: (key: string) => redis.del(key),
  }
}

async function serve(...middlewares: MiddlewareHandler[]): Promise<Served> {
  const app = new Hono()
  for (const middleware of middlewares) app.use(middleware)
  app.get('/', (c) => c.json(BODY))
  const server: ServerType = serveWithNode({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 })
  if ('keepAliveTimeout' in server) server.keepAliveTimeout = KEEP_ALIVE_MS
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port }
}
