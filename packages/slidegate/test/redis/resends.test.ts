// tier: system
import { setTimeout as delay } from 'node:timers/promises'
import { GlideClient, Logger } from '@valkey/valkey-glide'
import { Cluster as Cluster5, Redis as Ioredis5 } from 'ioredis'
import { Redis as Ioredis6 } from 'ioredis6'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { createClient as createClient5 } from 'redis5'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connectionOf, type RedisClient } from '../../src/stores/redis/clients.ts'
import { crc16 } from '../../src/stores/redis/keyspace.ts'
import { ask } from '../support/ask.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import type { RedisProcess } from '../support/redis-process.ts'
import { type RedisSentinel, startSentinel } from '../support/redis-sentinel.ts'
import { startRedis } from '../support/redis-server.ts'

Logger.init('off')

interface Connected {
  readonly client: RedisClient
  readonly resends: boolean
  end(): unknown
}

type Connect = (port: number) => Promise<Connected>

const host = '127.0.0.1'

/** Adds an error listener. Without one, Node would end the process. */
function withErrorListener<Client extends { on(event: 'error', listener: () => void): unknown }>(
  client: Client,
): Client {
  client.on('error', () => {})
  return client
}

const PATIENT_GLIDE = {
  requestTimeout: 15_000,
  advancedConfiguration: { connectionTimeout: 15_000 },
} as const

const SINGLE: Readonly<Record<string, Connect>> = {
  'ioredis 5': async (port) => {
    const client = withErrorListener(new Ioredis5(port))
    return { client, resends: true, end: () => client.disconnect() }
  },
  'ioredis 6': async (port) => {
    const client = withErrorListener(new Ioredis6(port))
    return { client, resends: true, end: () => client.disconnect() }
  },
  'ioredis 6 without autoResendUnfulfilledCommands': async (port) => {
    const client = withErrorListener(new Ioredis6(port, { autoResendUnfulfilledCommands: false }))
    return { client, resends: false, end: () => client.disconnect() }
  },
  iovalkey: async (port) => {
    const client = withErrorListener(new Iovalkey(port))
    return { client, resends: true, end: () => client.disconnect() }
  },
  'iovalkey without autoResendUnfulfilledCommands': async (port) => {
    const client = withErrorListener(new Iovalkey(port, { autoResendUnfulfilledCommands: false }))
    return { client, resends: false, end: () => client.disconnect() }
  },
  'node-redis 5': async (port) => {
    const client = withErrorListener(createClient5({ socket: { port } }))
    await client.connect()
    return { client, resends: false, end: () => client.destroy() }
  },
  'node-redis 6': async (port) => {
    const client = withErrorListener(createClient({ socket: { port } }))
    await client.connect()
    return { client, resends: false, end: () => client.destroy() }
  },
  'a pool of node-redis 6': async (port) => {
    const client = withErrorListener(createClientPool({ socket: { port } }))
    await client.connect()
    return { client, resends: false, end: () => client.destroy() }
  },
  'Valkey GLIDE': async (port) => {
    const client = await GlideClient.createClient({ addresses: [{ host, port }], ...PATIENT_GLIDE })
    return { client, resends: false, end: () => client.close() }
  },
}

/** A restarted server of a Cluster rejects writes for 2 s. The default retries don't last that long. */
const PATIENT = { maxRedirections: 64 }

const CLUSTER: Readonly<Record<string, Connect>> = {
  'ioredis 5': async (port) => {
    const client = withErrorListener(new Cluster5([{ host, port }], PATIENT))
    return { client, resends: true, end: () => client.disconnect() }
  },
  'node-redis 6': async (port) => {
    const client = withErrorListener(createCluster({ rootNodes: [{ socket: { host, port } }] }))
    await client.connect()
    return { client, resends: false, end: () => client.destroy() }
  },
}

const SCRIPT = "return redis.call('INCR', KEYS[1])"

/** Returns how long to wait for a resend, or to exclude one. */
const withinMs = ({ resends }: Connected, notMs: number): number => (resends ? 30_000 : notMs)

/** Kills a server that has received a command. If the restarted server executes the command, it was sent twice. */
async function isSentTwice(
  { client }: Connected,
  server: Pick<RedisProcess, 'port' | 'freeze' | 'kill' | 'start'>,
  withinMs: number,
): Promise<boolean> {
  const send = connectionOf(client).sender()
  await send('EVAL', SCRIPT, 1, ['slidegate:before{counter}'])
  server.freeze()
  void send('EVAL', SCRIPT, 1, ['slidegate:{counter}']).catch(() => {})
  // Waits until the command is sent.
  await delay(300)
  await server.kill()
  await server.start()
  const untilMs = performance.now() + withinMs
  while (performance.now() < untilMs) {
    const count = await ask(server.port, 'EXISTS', 'slidegate:{counter}').catch(() => 0)
    if (Number(count) === 1) return true
    await delay(50)
  }
  return false
}

describe('a command whose reply is lost', () => {
  // These tests mostly wait, so they run concurrently, each with its own server.
  it.concurrent.for(Object.entries(SINGLE))(
    'connectionOf knows whether %s resends it',
    async ([, connect], test) => {
      const server = await startRedis()
      test.onTestFinished(() => server.stop())
      const connected = await connect(server.port)
      expect(connectionOf(connected.client)).toMatchObject({ isCluster: false, resends: connected.resends })
      expect(await isSentTwice(connected, server, withinMs(connected, 1500))).toBe(connected.resends)
      await connected.end()
    },
  )
})

describe('a command to a Cluster whose reply is lost', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startCluster({ masters: 3, replicas: 0 })
  })
  afterAll(() => cluster.stop())

  it.each(Object.entries(CLUSTER))('connectionOf knows whether %s resends it', async (_, connect) => {
    await cluster.settled()
    // The other servers redirect clients while it is down.
    const node = await cluster.masterOf(crc16('counter') % 16_384)
    const connected = await connect(node.port)
    expect(connectionOf(connected.client)).toMatchObject({ isCluster: true, resends: connected.resends })
    expect(await isSentTwice(connected, node, withinMs(connected, 4000))).toBe(connected.resends)
    await connected.end()
  })
})

describe('a command to the master behind a Sentinel whose reply is lost', () => {
  let sentinel: RedisSentinel
  beforeAll(async () => {
    sentinel = await startSentinel({ replicas: 0 })
  })
  afterAll(() => sentinel.stop())

  it('node-redis 6 resends it', async () => {
    const client = withErrorListener(
      createSentinel({
        name: sentinel.masterName,
        sentinelRootNodes: [{ host, port: sentinel.sentinels[0]! }],
      }),
    )
    await client.connect()
    const connected = { client, resends: true, end: () => client.destroy() }
    expect(connectionOf(client)).toMatchObject({ isCluster: false, resends: true })
    expect(await isSentTwice(connected, sentinel.servers[0]!, 30_000)).toBe(true)
    await connected.end()
  })
})
