import { GlideClient, Logger } from '@valkey/valkey-glide'
import { Redis as Ioredis5 } from 'ioredis'
import { Redis as Ioredis6 } from 'ioredis6'
import { Redis as Iovalkey } from 'iovalkey'
import { createClientPool, createClient as createNodeRedis6 } from 'redis'
import { createClient as createNodeRedis5 } from 'redis5'
import type { RedisClient } from '../../src/stores/redis/index.ts'

export interface Connection {
  readonly client: RedisClient
  end(): void
}

type Connect = (port: number) => Promise<Connection>

// It writes a line for each error that a server answers.
Logger.init('off')

/** What a busy machine may take for a request, or to connect. */
const PATIENT_MS = 30_000

/**
 * Clients with the settings that they have by themselves, but for timeouts that a busy machine does not keep; they
 * reconnect for ever. Their errors are events that somebody has to listen to.
 */
export const CLIENTS: Readonly<Record<string, Connect>> = {
  'ioredis 5': async (port) => ofIoredis(new Ioredis5(port)),
  'ioredis 6': async (port) => ofIoredis(new Ioredis6(port)),
  iovalkey: async (port) => ofIoredis(new Iovalkey(port)),
  'node-redis 5': async (port) => ofNodeRedis(createNodeRedis5({ socket: { port } })),
  'node-redis 6': async (port) => ofNodeRedis(createNodeRedis6({ socket: { port } })),
  'node-redis-6 pool': async (port) =>
    ofNodeRedis(createClientPool({ socket: { port } }, { acquireTimeout: PATIENT_MS })),
  'Valkey GLIDE': async (port) => {
    const client = await GlideClient.createClient({
      addresses: [{ host: '127.0.0.1', port }],
      requestTimeout: PATIENT_MS,
      advancedConfiguration: { connectionTimeout: PATIENT_MS },
    })
    return { client, end: () => client.close() }
  },
}

function ofIoredis(client: Ioredis5 | Ioredis6 | Iovalkey): Connection {
  client.on('error', () => {})
  return { client, end: () => client.disconnect() }
}

interface NodeRedis {
  on(event: 'error', listener: () => void): unknown
  connect(): Promise<unknown>
  destroy(): void
}

async function ofNodeRedis(client: RedisClient & NodeRedis): Promise<Connection> {
  client.on('error', () => {})
  await client.connect()
  return { client, end: () => client.destroy() }
}
