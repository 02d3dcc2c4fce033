import { Cluster, Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import type { StoreOf } from './play.ts'
import { anewClient, rareWayClient } from './rare-way.ts'

/** Creates all stores for a test file, and closes them after the last test. */
export function useStores(): Record<string, StoreOf> {
  const stores: Record<string, StoreOf> = {}
  let server: RedisServer
  let servers: RedisCluster
  let end: () => Promise<unknown>

  beforeAll(async () => {
    server = await startRedis()
    servers = await startCluster({ masters: 3, replicas: 0 })
    const ioredis = new Redis(server.port)
    const nodeRedis = createClient({ url: server.url })
    await nodeRedis.connect()
    const cluster = new Cluster(servers.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
    const rare = rareWayClient(ioredis)
    const anew = anewClient(ioredis)
    Object.assign(stores, {
      memory: (clock) => memoryStore({ clock: clock.now }),
      ioredis: (clock) => redisStore(ioredis, { clock: clock.now }),
      'node-redis': (clock) => redisStore(nodeRedis, { prefix: 'slidegate:node-redis', clock: clock.now }),
      'ioredis on a Cluster': (clock) => redisStore(cluster, { clock: clock.now }),
      'the slow path': (clock) => redisStore(rare, { prefix: 'slidegate:rare', clock: clock.now }),
      'full rewrites': (clock) => redisStore(anew, { prefix: 'slidegate:anew', clock: clock.now }),
    } satisfies Record<string, StoreOf>)
    end = () => Promise.all([ioredis.quit(), nodeRedis.close(), cluster.quit()])
  })

  afterAll(async () => {
    await end()
    await server.stop()
    await servers.stop()
  })

  return stores
}
