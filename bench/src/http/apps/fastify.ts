import fastifyRateLimit from '@fastify/rate-limit'
import { type FastifyInstance, type FastifyRequest, fastify } from 'fastify'
import { rateLimit } from 'slidegate/fastify'
import type { Policy } from '../../peers/peer.ts'
import { type App, BODY, KEEP_ALIVE_MS, type Served, USER_HEADER } from '../app.ts'
import { slidegateLimiter } from '../limiter.ts'

const userOf = (request: FastifyRequest) => request.headers[USER_HEADER] as string

/** Returns Fastify apps with one route, by limiter. */
export function fastifyApps({ limit, windowMs }: Policy): Readonly<Record<string, App>> {
  return {
    bare: (_redis) => serve(async () => {}),
    slidegate: (redis) =>
      serve(async (app) => {
        await app.register(rateLimit({ limiter: slidegateLimiter(redis, { limit, windowMs }), key: userOf }))
      }),
    '@fastify/rate-limit': (redis) =>
      serve(async (app) => {
        await app.register(fastifyRateLimit, {
          max: limit,
          timeWindow: windowMs,
          enableDraftSpec: true,
          keyGenerator: userOf,
          // The default of 5,000 would evict users.
          cache: 1_000_000,
          redis,
        })
      }),
  }
}

async function serve(plug: (app: FastifyInstance) => Promise<void>): Promise<Served> {
  const app = fastify({ keepAliveTimeout: KEEP_ALIVE_MS })
  await plug(app)
  app.get('/', async () => BODY)
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return { port: Number(new URL(url).port) }
}
