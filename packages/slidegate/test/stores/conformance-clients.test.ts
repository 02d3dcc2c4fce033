// tier: system
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe } from 'vitest'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ask } from '../support/ask.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { type RedisSentinel, startSentinel } from '../support/redis-sentinel.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { conforms, conformsBy } from './conformance.ts'
import { CLIENTS, CLUSTER_CLIENTS, SENTINEL_CLIENTS } from './conformance-clients.ts'

/** Each client runs every third case. Clients differ in how they send and read, but not in decisions. */
const shareOf = (nth: number) => ({ place: nth, of: 3 })

const numbered = <Connect>(clients: Readonly<Record<string, Connect>>) =>
  Object.entries(clients).map(([name, connect], nth) => [name, connect, nth] as const)

/** Uses one bucket for this case, so that its keys share a call. Otherwise that is rare. */
const bucketsOnCluster = (name: string) => (name === SEVERAL_KEYS ? 1 : 64)
const SEVERAL_KEYS = 'a request with several keys is charged to all of them or none'

describe('Redis', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  describe.each(numbered(CLIENTS))('with %s', (_, connect, nth) => {
    conformsBy(() => connect(server.port), undefined, shareOf(nth))
  })

  describe('with a URL', () =>
    conforms(
      ({ clock }) => redisStore({ url: server.url }, { clock, prefix: `slidegate:test:${randomUUID()}` }),
      shareOf(0),
    ))
})

describe('Redis with Sentinel', () => {
  let sentinel: RedisSentinel
  beforeAll(async () => {
    sentinel = await startSentinel()
    const { sentinels, masterName } = sentinel
    // Prevents a failover from a master that hangs, because its replica may lack recent charges.
    for (const port of sentinels)
      await ask(port, 'SENTINEL', 'SET', masterName, 'down-after-milliseconds', 60_000)
  })
  afterAll(() => sentinel.stop())

  describe.each(numbered(SENTINEL_CLIENTS))('with %s', (_, connect, nth) => {
    conformsBy(() => connect(sentinel.sentinels[0]!, sentinel.masterName), undefined, shareOf(nth))
  })
})

describe('Redis Cluster', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startCluster({ masters: 3, replicas: 0 })
  })
  afterAll(() => cluster.stop())

  describe.each(numbered(CLUSTER_CLIENTS))('with %s', (_, connect, nth) => {
    conformsBy(() => connect(cluster.nodes[0]!.port), bucketsOnCluster, shareOf(nth))
  })
})
