import { Redis } from 'ioredis'
import { allowAll } from '../support/access.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

/** A server without key restrictions, for other packages, and a client. */
export interface OpenRedis {
  readonly server: RedisServer
  readonly redis: Redis
  stop(): Promise<void>
}

export async function startOpenRedis(): Promise<OpenRedis> {
  const server = await startRedis()
  await allowAll(server.port)
  const redis = new Redis(server.url)
  return {
    server,
    redis,
    async stop() {
      await redis.quit()
      await server.stop()
    },
  }
}
