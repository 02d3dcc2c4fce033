import { Redis } from 'ioredis'
import { afterAll } from 'vitest'
import { type RedisServer, startRedis } from './redis-server.ts'

/** Starts a server and a client for all tests of a file. The client writes no receipts. */
export async function useRedis(): Promise<{ server: RedisServer; redis: Redis }> {
  const server = await startRedis()
  const redis = new Redis(server.port, { autoResendUnfulfilledCommands: false })
  // Waits until the client is connected, because a test may block the event loop.
  await redis.ping()
  afterAll(async () => {
    await redis.quit()
    await server.stop()
  })
  return { server, redis }
}
