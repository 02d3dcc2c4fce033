import fc from 'fast-check'
import { Cluster, Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { generalDriverClient } from './general-driver.ts'
import { historyOf, type Scale } from './histories.ts'
import { play, type StoreOf } from './play.ts'

// The same random history through an oracle of true events, through memory and through Redis: every field of
// every decision must be equal, so that nothing is admitted that should not be, and nothing denied.

let server: RedisServer
let servers: RedisCluster
let stores: Record<string, StoreOf>
let end: () => Promise<unknown>

beforeAll(async () => {
  server = await startRedis()
  servers = await startCluster({ masters: 3, replicas: 0 })
  const ioredis = new Redis(server.port)
  const nodeRedis = createClient({ url: server.url })
  await nodeRedis.connect()
  const cluster = new Cluster(servers.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
  const general = await generalDriverClient(ioredis)
  stores = {
    memory: (clock) => memoryStore({ clock: clock.now }),
    ioredis: (clock) => redisStore(ioredis, { clock: clock.now }),
    'node-redis': (clock) => redisStore(nodeRedis, { prefix: 'node-redis', clock: clock.now }),
    'ioredis on a Cluster': (clock) => redisStore(cluster, { clock: clock.now }),
    'the general driver alone': (clock) => redisStore(general, { prefix: 'general', clock: clock.now }),
  }
  end = () => Promise.all([ioredis.quit(), nodeRedis.close(), cluster.quit()])
})

afterAll(async () => {
  await end()
  await server.stop()
  await servers.stop()
})

const SCALES: Record<string, Scale & { decisions: number }> = {
  'small limits, everything happening': {
    ...{ limit: 6, windowMs: 200, events: 60, longWaits: 5, oneLog: false, clockSteps: false },
    decisions: 12_000,
  },
  'the clock set back now and then': {
    ...{ limit: 6, windowMs: 3000, events: 60, longWaits: 5, oneLog: false, clockSteps: true },
    decisions: 5000,
  },
  'logs of hundreds of records, larger than one read': {
    ...{ limit: 400, windowMs: 2000, events: 900, longWaits: 1, oneLog: false, clockSteps: false },
    decisions: 8000,
  },
  'several windows on one long log': {
    ...{ limit: 300, windowMs: 1000, events: 900, longWaits: 1, oneLog: true, clockSteps: false },
    decisions: 8000,
  },
  'several windows on one short log': {
    ...{ limit: 20, windowMs: 100, events: 100, longWaits: 4, oneLog: true, clockSteps: false },
    decisions: 8000,
  },
  'bursts, of which many records leave at once': {
    ...{ limit: 50, windowMs: 100, events: 30, longWaits: 4, oneLog: true, clockSteps: false, burst: 40 },
    decisions: 8000,
  },
  'bursts in grains, the clock set back': {
    ...{ limit: 30, windowMs: 300, events: 30, longWaits: 4, oneLog: false, clockSteps: true, burst: 25 },
    decisions: 4000,
  },
}

describe('memory, Redis and the oracle agree in every field of every decision', () => {
  test.for(Object.entries(SCALES))('%s', { timeout: 300_000 }, async ([, scale]) => {
    let decisions = 0
    while (decisions < scale.decisions) {
      const property = fc.asyncProperty(historyOf(scale), async (history) => {
        decisions += await play(history, stores)
      })
      await fc.assert(property, { numRuns: 20 })
    }
    expect(decisions).toBeGreaterThanOrEqual(scale.decisions)
  })
})
