import { Redis } from 'ioredis'
import { allowAll } from '../../../packages/slidegate/test/support/access.ts'
import { type RedisServer, startRedis } from '../../../packages/slidegate/test/support/redis-server.ts'

/** Connects without automatic resending, so that calls need no receipts. */
export function connect(url: string): Redis {
  return new Redis(url, { autoResendUnfulfilledCommands: false })
}

/** Starts a redis-server without the restrictions of test servers. */
export async function startOpenRedis(): Promise<RedisServer> {
  const server = await startRedis()
  await allowAll(server.port)
  return server
}

/** Runs `use` with a client for a temporary redis-server, and that server's process id. */
export async function withRedis<Result>(
  use: (redis: Redis, pid: number) => Promise<Result>,
): Promise<Result> {
  const server = await startOpenRedis()
  const redis = connect(server.url)
  try {
    return await use(redis, server.pid)
  } finally {
    redis.disconnect()
    await server.stop()
  }
}
