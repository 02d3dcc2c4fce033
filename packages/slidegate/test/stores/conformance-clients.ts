import { GlideClient, GlideClusterClient, Logger } from '@valkey/valkey-glide'
import { Cluster as Cluster5, Redis as Ioredis5 } from 'ioredis'
import { Cluster as Cluster6, Redis as Ioredis6 } from 'ioredis6'
import { Redis as Iovalkey, Cluster as IovalkeyCluster } from 'iovalkey'
import {
  createClientPool,
  createCluster,
  createClient as createNodeRedis6,
  createSentinel as createSentinel6,
} from 'redis'
import { createClient as createNodeRedis5, createSentinel as createSentinel5 } from 'redis5'
import type { Connection } from './conformance.ts'

type Connect = (port: number) => Promise<Connection>

// Otherwise GLIDE logs a line for each error reply, including NOSCRIPT.
Logger.init('off')

const host = '127.0.0.1'

/** By default, GLIDE requests time out after 250 ms and connections after 2 s. */
const PATIENT_GLIDE = { requestTimeout: 30_000, advancedConfiguration: { connectionTimeout: 30_000 } }

/** Connects every supported client to a port, with its default settings. */
export const CLIENTS: Readonly<Record<string, Connect>> = {
  'ioredis 5': async (port) => {
    const client = new Ioredis5(port)
    return { client, close: () => client.quit() }
  },
  'ioredis 6': async (port) => {
    const client = new Ioredis6(port)
    return { client, close: () => client.quit() }
  },
  iovalkey: async (port) => {
    const client = new Iovalkey(port)
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
  'a pool of node-redis 6': async (port) => {
    // Calls on several connections may overtake each other. One connection keeps the order of a list.
    const pool = { minimum: 1, maximum: 1, acquireTimeout: 30_000 }
    const client = createClientPool({ socket: { port } }, pool)
    await client.connect()
    return { client, close: () => client.close() }
  },
  'Valkey GLIDE': async (port) => {
    const client = await GlideClient.createClient({ addresses: [{ host, port }], ...PATIENT_GLIDE })
    return { client, close: async () => client.close() }
  },
  '{ command(words) }': async (port) => {
    const redis = new Ioredis5(port)
    const client = { command: ([name = '', ...words]: readonly string[]) => redis.call(name, ...words) }
    return { client, close: () => redis.quit() }
  },
}

/** Connects through the sentinel on a port to the named master. */
export const SENTINEL_CLIENTS: Readonly<
  Record<string, (port: number, masterName: string) => Promise<Connection>>
> = {
  'ioredis 5': async (port, name) => {
    const client = new Ioredis5({ sentinels: [{ host, port }], name })
    return { client, close: () => client.quit() }
  },
  'ioredis 6': async (port, name) => {
    const client = new Ioredis6({ sentinels: [{ host, port }], name })
    return { client, close: () => client.quit() }
  },
  iovalkey: async (port, name) => {
    const client = new Iovalkey({ sentinels: [{ host, port }], name })
    return { client, close: () => client.quit() }
  },
  'node-redis 5': async (port, name) => {
    const client = createSentinel5({ sentinelRootNodes: [{ host, port }], name })
    await client.connect()
    return { client, close: () => client.close() }
  },
  'node-redis 6': async (port, name) => {
    const client = createSentinel6({ sentinelRootNodes: [{ host, port }], name })
    await client.connect()
    return { client, close: () => client.close() }
  },
}

/** Connects to a Cluster through the server on a port. */
export const CLUSTER_CLIENTS: Readonly<Record<string, Connect>> = {
  'ioredis 5': async (port) => {
    const client = new Cluster5([{ host, port }])
    return { client, close: () => client.quit() }
  },
  'ioredis 6': async (port) => {
    const client = new Cluster6([{ host, port }])
    return { client, close: () => client.quit() }
  },
  iovalkey: async (port) => {
    const client = new IovalkeyCluster([{ host, port }])
    return { client, close: () => client.quit() }
  },
  'node-redis 6': async (port) => {
    const client = createCluster({ rootNodes: [{ socket: { host, port } }] })
    await client.connect()
    return { client, close: () => client.close() }
  },
  'Valkey GLIDE': async (port) => {
    const addresses = [{ host, port }]
    const client = await GlideClusterClient.createClient({ addresses, ...PATIENT_GLIDE })
    return { client, close: async () => client.close() }
  },
}
