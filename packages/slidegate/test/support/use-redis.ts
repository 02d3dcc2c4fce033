import { Redis } from 'ioredis'
import { afterAll } from 'vitest'
import { type RedisServer, startRedis } from './redis-server.ts'

/** A server for all tests of a file, and a client on it that leaves no receipts; both are ended after the last. */
export async function useRedis(): Promise<{ server: RedisServer; redis: Redis }> {
  const server = await startRedis()
  const redis = new Redis(server.port, { autoResendUnfulfilledCommands: false })
  // Tests may keep the process from noticing that it is connected.
  await redis.ping()
  afterAll(async () => {
    await redis.quit()
    await server.stop()
  })
  return { server, redis }
}
