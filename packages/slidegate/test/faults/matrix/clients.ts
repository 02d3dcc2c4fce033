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
import type { RedisClient, redisStore } from '../../../src/stores/redis/index.ts'
import {
  GLIDE,
  IOREDIS,
  IOREDIS_CLUSTER,
  IOREDIS_SENTINEL,
  NODE_REDIS,
  NODE_REDIS_CLUSTER,
} from './client-settings.ts'
import type { Place, Target } from './fault.ts'

/** The argument of `redisStore`. */
export type RedisArgument = Parameters<typeof redisStore>[0]

export interface Connected {
  readonly client: RedisArgument
  end(): unknown
}

export interface MatrixClient {
  /** The name on the command line. */
  readonly name: string
  readonly title: string
  /** Connects the client, if it supports this setup. */
  readonly single?: (target: Target) => Promise<Connected>
  readonly sentinel?: (target: Target) => Promise<Connected>
  readonly cluster?: (target: Target) => Promise<Connected>
}

// Otherwise GLIDE logs a line for each error.
Logger.init('off')

const host = '127.0.0.1'

type Emitter = { on(event: 'error', listener: () => void): unknown }

/** Adds a listener for errors, which would throw otherwise. */
function withErrorListener<Client extends Emitter>(client: Client): Client {
  client.on('error', () => {})
  return client
}

type Ioredis = RedisClient & Emitter & { disconnect(): void }

async function ioredis(client: Ioredis): Promise<Connected> {
  withErrorListener(client)
  return { client, end: () => client.disconnect() }
}

type NodeRedis = RedisClient & Emitter & { connect(): Promise<unknown>; destroy(): unknown }

async function nodeRedis(client: NodeRedis): Promise<Connected> {
  withErrorListener(client)
  await client.connect()
  return { client, end: () => client.destroy() }
}

const sentinelsOf = ({ port, masterName = '' }: Target) => ({ sentinels: [{ host, port }], name: masterName })

const rootsOf = ({ port, masterName = '' }: Target) => ({
  sentinelRootNodes: [{ host, port }],
  name: masterName,
})

/** Clients with their default settings, and some with recommended settings. */
export const CLIENTS: readonly MatrixClient[] = [
  {
    name: 'ioredis-5',
    title: 'ioredis 5',
    single: ({ port }) => ioredis(new Ioredis5(port, host)),
    sentinel: (target) => ioredis(new Ioredis5(sentinelsOf(target))),
    cluster: ({ port }) => ioredis(new Cluster5([{ host, port }])),
  },
  {
    name: 'ioredis-6',
    title: 'ioredis 6',
    single: ({ port }) => ioredis(new Ioredis6(port, host)),
    sentinel: (target) => ioredis(new Ioredis6(sentinelsOf(target))),
    cluster: ({ port }) => ioredis(new Cluster6([{ host, port }])),
  },
  {
    name: 'iovalkey',
    title: 'iovalkey',
    single: ({ port }) => ioredis(new Iovalkey(port, host)),
    sentinel: (target) => ioredis(new Iovalkey(sentinelsOf(target))),
    cluster: ({ port }) => ioredis(new IovalkeyCluster([{ host, port }])),
  },
  {
    name: 'node-redis-5',
    title: 'node-redis 5',
    single: ({ port }) => nodeRedis(createNodeRedis5({ socket: { host, port } })),
    sentinel: (target) => nodeRedis(createSentinel5(rootsOf(target))),
  },
  {
    name: 'node-redis-6',
    title: 'node-redis 6',
    single: ({ port }) => nodeRedis(createNodeRedis6({ socket: { host, port } })),
    sentinel: (target) => nodeRedis(createSentinel6(rootsOf(target))),
    cluster: ({ port }) => nodeRedis(createCluster({ rootNodes: [{ socket: { host, port } }] })),
  },
  {
    name: 'node-redis-6-pool',
    title: 'a pool of node-redis 6',
    single: ({ port }) => nodeRedis(createClientPool({ socket: { host, port } })),
  },
  {
    name: 'glide',
    title: 'Valkey GLIDE',
    async single({ port }) {
      const client = await GlideClient.createClient({ addresses: [{ host, port }] })
      return { client, end: () => client.close() }
    },
    async cluster({ port }) {
      const client = await GlideClusterClient.createClient({ addresses: [{ host, port }] })
      return { client, end: () => client.close() }
    },
  },
  {
    name: 'ioredis-5-set',
    title: 'ioredis 5, set',
    single: ({ port }) => ioredis(new Ioredis5({ ...IOREDIS, port, host })),
    sentinel: (target) => ioredis(new Ioredis5({ ...IOREDIS_SENTINEL, ...sentinelsOf(target) })),
    cluster: ({ port }) => ioredis(new Cluster5([{ host, port }], IOREDIS_CLUSTER)),
  },
  {
    name: 'node-redis-6-set',
    title: 'node-redis 6, set',
    single: ({ port }) =>
      nodeRedis(createNodeRedis6({ ...NODE_REDIS, socket: { ...NODE_REDIS.socket, host, port } })),
    sentinel: (target) => nodeRedis(createSentinel6({ ...rootsOf(target), nodeClientOptions: NODE_REDIS })),
    cluster: ({ port }) =>
      nodeRedis(createCluster({ ...NODE_REDIS_CLUSTER, rootNodes: [{ socket: { host, port } }] })),
  },
  {
    name: 'glide-set',
    title: 'GLIDE, set',
    async single({ port }) {
      const client = await GlideClient.createClient({ addresses: [{ host, port }], ...GLIDE })
      return { client, end: () => client.close() }
    },
    async cluster({ port }) {
      const client = await GlideClusterClient.createClient({ addresses: [{ host, port }], ...GLIDE })
      return { client, end: () => client.close() }
    },
  },
  {
    name: 'own',
    title: '`redisStore({ url })`',
    single: async ({ port }) => ({ client: { url: `redis://${host}:${port}` }, end: () => {} }),
    cluster: async ({ port }) => ({
      client: { url: `redis://${host}:${port}`, cluster: true },
      end: () => {},
    }),
  },
]

export function connectorOf(client: MatrixClient, on: Place): MatrixClient['single'] {
  return on === 'server' || on === 'proxy' ? client.single : client[on]
}
