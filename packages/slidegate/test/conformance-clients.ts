import { Redis as Ioredis5 } from 'ioredis'
import { Redis as Ioredis6 } from 'ioredis6'
import { createClient as createNodeRedis6 } from 'redis'
import { createClient as createNodeRedis5 } from 'redis5'
import type { RedisClient } from '../src/stores/redis/index.ts'

/** A connected client, and how to end it. */
export interface Connection {
  readonly client: RedisClient
  close(): Promise<unknown>
}

/** Every client that the store is made for, with its own defaults. */
export const CLIENTS: Readonly<Record<string, (port: number) => Promise<Connection>>> = {
  'ioredis 5': async (port) => {
    const client = new Ioredis5(port)
    return { client, close: () => client.quit() }
  },
  'ioredis 6': async (port) => {
    const client = new Ioredis6(port)
    return { client, close: () => client.quit() }
  },
  'node-redis 5': async (port) => {
    const client = createNodeRedis5({ socket: { port } })
    await client.connect()
    return { client, close: () => client.close() }
  },
  'node-redis 6': async (port) => {
    const client = createNodeRedis6({ socket: { port } })
    await client.connect()
    return { client, close: () => client.close() }
  },
  '{ command(words) }': async (port) => {
    const redis = new Ioredis5(port)
    const client = { command: ([name = '', ...words]: readonly string[]) => redis.call(name, ...words) }
    return { client, close: () => redis.quit() }
  },
}
