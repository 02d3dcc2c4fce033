import { Redis } from 'ioredis'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'

export interface TestRedis extends AsyncDisposable {
  readonly url: string
  /** A connected client. */
  readonly client: Redis
}

/** Starts a separate Redis server. Stop it with `await using`. */
export async function withRedis(): Promise<TestRedis> {
  const server = await startRedis()
  const client = new Redis(server.url)
  return {
    url: server.url,
    client,
    [Symbol.asyncDispose]: async () => {
      client.disconnect()
      await server.stop()
    },
  }
}
