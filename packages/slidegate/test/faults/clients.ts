import { Redis } from 'ioredis'
import { createClient } from 'redis'
import type { RedisClient } from '../../src/stores/redis/index.ts'

export interface Connection {
  readonly client: RedisClient
  end(): void
}

/**
 * Clients with the settings that they have by themselves; they reconnect for ever. Their errors are events
 * that somebody has to listen to.
 */
export const CLIENTS: Readonly<Record<string, (port: number) => Promise<Connection>>> = {
  'ioredis 5': async (port) => {
    const client = new Redis(port)
    client.on('error', () => {})
    return { client, end: () => client.disconnect() }
  },
  'node-redis 6': async (port) => {
    const client = createClient({ socket: { port } })
    client.on('error', () => {})
    await client.connect()
    return { client, end: () => client.destroy() }
  },
}
