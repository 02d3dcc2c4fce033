// tier: system
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import {
  createClientPool,
  createCluster,
  createClient as createNodeRedis6,
  createSentinel as createNodeRedisSentinel,
} from 'redis'
import { createClient as createNodeRedis5 } from 'redis5'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Connection, connectionOf, type RedisClient } from '../../src/stores/redis/clients.ts'
import { OwnConnection } from '../../src/stores/redis/connect.ts'
import { loadIoredis, loadNodeRedis } from '../../src/stores/redis/create-client.ts'
import { crc16, tagsOf } from '../../src/stores/redis/keyspace.ts'
import { codeBlocks, ROOT } from '../docs/markdown.ts'
import { CLIENTS, CLUSTER_CLIENTS } from '../stores/conformance-clients.ts'
import { rulesFor } from '../support/access.ts'
import { ask } from '../support/ask.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startSentinel } from '../support/redis-sentinel.ts'
import { startRedis } from '../support/redis-server.ts'
import { limiterOn } from './store-on.ts'

// Tests clients with exactly the rights in the table of docs/production.md.

const page = readFileSync(join(ROOT, 'docs/production.md'), 'utf8')

interface Needs {
  /** Commands that the client can't work without. */
  readonly needed: readonly string[]
  /** Commands that the client tries, but can do without. */
  readonly wished: readonly string[]
}

/** From Redis 7.2 on, clients send it to report their name. The page documents that they work without it. */
const NAMING = 'client|setinfo'

/** Returns the distinct commands that an ACL log shows as denied. */
function refusedIn(entries: readonly (readonly string[])[]): string[] {
  const refused = new Set(entries.map((entry) => entry[entry.indexOf('object') + 1]!))
  refused.delete(NAMING)
  return Array.from(refused).sort()
}

/** Reads a row of the table. */
function needsOf(kind: string): Needs {
  const row = page.split('\n').find((line) => line.startsWith(`| ${kind} |`))!
  const [, , needed, wished] = row.split(/(?<!\\)\|/).map((cell) => cell.replaceAll('\\', ''))
  const rulesIn = (cell = '') => cell.match(/\+[\w|]+/g) ?? []
  return { needed: rulesIn(needed), wished: rulesIn(wished) }
}

/** Connects a client that is closed after the test, whatever happens. */
type Connect = (port: number) => Promise<Connection>

const host = '127.0.0.1'

function ended(client: unknown): Connection {
  const { destroy, disconnect, close } = client as Record<string, (() => unknown) | undefined>
  onTestFinished(async () => {
    await (destroy ?? disconnect ?? close)!.call(client)
  })
  return connectionOf(client as RedisClient)
}

/** Connects as the conformance suite does. */
const usual =
  (connect: (typeof CLIENTS)[string]): Connect =>
  async (port) =>
    ended((await connect(port)).client)

const opened =
  (
    make: (port: number) => { on(name: 'error', listener: () => void): unknown; connect(): Promise<unknown> },
  ): Connect =>
  async (port) => {
    const client = make(port)
    client.on('error', () => {})
    await client.connect()
    return ended(client)
  }

const own =
  (load: typeof loadIoredis, cluster?: true): Connect =>
  async (port) => {
    const connection = new OwnConnection(
      { url: `redis://${host}:${port}`, ...(cluster && { cluster }) },
      load,
    )
    onTestFinished(() => connection.close())
    return connection
  }

const pingInterval = 20

const SINGLE: Readonly<Record<string, Readonly<Record<string, Connect>>>> = {
  'ioredis, iovalkey': {
    'ioredis 5': usual(CLIENTS['ioredis 5']!),
    'ioredis 6': usual(CLIENTS['ioredis 6']!),
    iovalkey: usual(CLIENTS.iovalkey!),
    '{ url }': own(loadIoredis),
  },
  'node-redis, with or without a pool': {
    'node-redis 5': opened((port) => createNodeRedis5({ socket: { port }, pingInterval })),
    'node-redis 6': opened((port) => createNodeRedis6({ socket: { port }, pingInterval })),
    'a pool': opened((port) => createClientPool({ socket: { port }, pingInterval })),
    '{ url }': own(loadNodeRedis),
  },
  'Valkey GLIDE': { 'Valkey GLIDE': usual(CLIENTS['Valkey GLIDE']!) },
}

const CLUSTER: Readonly<Record<string, Readonly<Record<string, Connect>>>> = {
  'ioredis or iovalkey Cluster': {
    'ioredis 5': usual(CLUSTER_CLIENTS['ioredis 5']!),
    'ioredis 6': usual(CLUSTER_CLIENTS['ioredis 6']!),
    iovalkey: usual(CLUSTER_CLIENTS.iovalkey!),
    '{ url }': own(loadIoredis, true),
  },
  'node-redis Cluster': {
    'node-redis 6': opened((port) =>
      createCluster({ rootNodes: [{ socket: { host, port } }], defaults: { pingInterval } }),
    ),
    '{ url }': own(loadNodeRedis, true),
  },
  'Valkey GLIDE Cluster': { 'Valkey GLIDE': usual(CLUSTER_CLIENTS['Valkey GLIDE']!) },
}

/** Servers whose default user can be restricted, with an owner who has all rights. */
class Guarded {
  readonly ports: readonly number[]
  readonly #owners: readonly Redis[]

  private constructor(ports: readonly number[]) {
    this.ports = ports
    this.#owners = ports.map((port) => new Redis(port, { username: 'owner', password: 'secret' }))
  }

  static async of(servers: readonly { readonly port: number }[]): Promise<Guarded> {
    for (const { port } of servers) {
      const redis = new Redis(port)
      await redis.call('ACL', 'SETUSER', 'owner', 'on', '>secret', 'allkeys', 'allchannels', 'allcommands')
      await redis.quit()
    }
    return new Guarded(servers.map(({ port }) => port))
  }

  async allow(...rules: readonly string[]): Promise<void> {
    for (const owner of this.#owners) {
      await owner.call('ACL', 'SETUSER', 'default', 'reset', 'on', 'nopass', ...rules)
      await owner.call('ACL', 'LOG', 'RESET')
      await owner.config('RESETSTAT')
    }
  }

  /** Commands that were denied since the last `allow`. */
  async refused(): Promise<string[]> {
    const logs = await Promise.all(this.#owners.map((owner) => owner.call('ACL', 'LOG')))
    return refusedIn(logs.flat() as string[][])
  }

  /** Commands that were executed since the last `allow`, as text. */
  async executed(): Promise<string> {
    return (await Promise.all(this.#owners.map((owner) => owner.info('commandstats')))).join()
  }

  close(): void {
    for (const owner of this.#owners) owner.disconnect()
  }
}

/** Connects, and makes requests until one is allowed. */
async function work(connect: Connect, port: number): Promise<Connection> {
  const connection = await connect(port)
  const limiter = limiterOn(connection)
  await vi.waitFor(async () => expect((await limiter.consume('k')).allowed).toBe(true), { timeout: 30_000 })
  return connection
}

describe.each([
  ['one server', SINGLE, startRedis],
  ['a Cluster', CLUSTER, () => startCluster({ masters: 3, replicas: 0 })],
] as const)('on %s', (_, clients, start) => {
  let stop: () => Promise<void>
  let guarded: Guarded
  beforeAll(async () => {
    const started = await start()
    stop = started.stop
    guarded = await Guarded.of('nodes' in started ? started.nodes : [started])
  })
  afterAll(async () => {
    guarded.close()
    await stop()
  })

  describe.each(Object.entries(clients))('%s', (kind, connects) => {
    const { needed, wished } = needsOf(kind)
    const names = wished.map((rule) => rule.slice(1)).sort()

    it.each(Object.entries(connects))('%s tries exactly the optional commands', async (_, connect) => {
      // ioredis warns about them.
      const warn = vi.spyOn(console, 'warn').mockReturnValue()
      onTestFinished(() => warn.mockRestore())
      await guarded.allow(...rulesFor(), ...needed)
      await work(connect, guarded.ports[0]!)
      await vi.waitFor(async () => expect(await guarded.refused()).toEqual(names), { timeout: 30_000 })
    })

    it.each(Object.entries(connects))('%s tries no other commands', async (_, connect) => {
      await guarded.allow(...rulesFor(), ...needed, ...wished)
      await work(connect, guarded.ports[0]!)
      await vi.waitFor(
        async () => {
          for (const name of names) expect(await guarded.executed()).toContain(`cmdstat_${name}:`)
        },
        { timeout: 30_000 },
      )
      expect(await guarded.refused()).toEqual([])
    })

    if (needed.length === 0) return
    const without = needed.flatMap((rule) => Object.entries(connects).map((each) => [rule, ...each] as const))
    it.each(without)("without %s, %s doesn't work", async (rule, _, connect) => {
      const log = [vi.spyOn(console, 'warn'), vi.spyOn(console, 'error')].map((spy) => spy.mockReturnValue())
      onTestFinished(() => {
        for (const spy of log) spy.mockRestore()
      })
      await guarded.allow(...rulesFor(), ...needed.filter((each) => each !== rule), ...wished)
      const working = async () => limiterOn(await connect(guarded.ports[0]!), { timeoutMs: 500 }).consume('k')
      await expect(working()).rejects.toThrow()
      // The request may have timed out before the client sent its command.
      await expect.poll(() => guarded.refused()).toContain(rule.slice(1))
    })
  })
})

/** Collects unhandled rejections until the end of the test. */
function unhandledRejections(): unknown[] {
  const rejections: unknown[] = []
  const before = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', (reason) => rejections.push(reason))
  onTestFinished(() => {
    process.removeAllListeners('unhandledRejection')
    for (const listener of before) process.on('unhandledRejection', listener)
  })
  return rejections
}

describe('while a slot of a Cluster is migrated', () => {
  const [line = ''] = codeBlocks(page)
    .map(({ code }) => code)
    .filter((code) => code.includes('+asking'))
  const additions = line.replaceAll("'", '').split(' ').slice(4)

  it.each(['ioredis 5', 'node-redis 6'].map((name) => [name, CLUSTER_CLIENTS[name]!] as const))(
    '%s needs the right to `ASKING`',
    async (name, connect) => {
      // Created first, so that it still collects when the client and the servers close.
      const rejections = unhandledRejections()
      const cluster = await startCluster({ masters: 3, replicas: 0 })
      onTestFinished(() => cluster.stop())
      const guarded = await Guarded.of(cluster.nodes)
      onTestFinished(() => guarded.close())
      await guarded.allow(...rulesFor(), ...additions)
      const connection = await work(usual(connect), guarded.ports[0]!)

      await guarded.allow('allkeys', 'allcommands')
      const slot = crc16(tagsOf(1)[0]!) % 16_384
      const from = await cluster.masterOf(slot)
      const open = await cluster.openSlot(slot, cluster.nodes.find(({ id }) => id !== from.id)!)
      expect(await open.move(1000)).toBeGreaterThan(0)

      const limiter = limiterOn(connection, { timeoutMs: 500 })
      await guarded.allow(...rulesFor(), ...additions.filter((rule) => rule !== '+asking'))
      rejections.length = 0
      await expect(limiter.consume('k')).rejects.toThrow()
      // The request may have timed out before the client sent its command.
      await expect.poll(() => guarded.refused()).toContain('asking')
      // These would end the process.
      await expect.poll(() => rejections.length > 0).toBe(/^io/.test(name))
      await guarded.allow(...rulesFor(), ...additions)
      await vi.waitFor(async () => expect((await limiter.consume('k')).allowed).toBe(true), {
        timeout: 20_000,
      })
      expect(await guarded.refused()).not.toContain('asking')
    },
  )
})

describe('behind a Sentinel, servers need no more rights', () => {
  const user = { username: 'limiter', password: 'secret' }

  it.each<[string, (port: number, name: string) => Promise<Connection>]>([
    [
      'ioredis',
      async (port, name) =>
        ended(new Redis({ sentinels: [{ host, port }], name, ...user, enableReadyCheck: false })),
    ],
    [
      'node-redis',
      async (port, name) => {
        const sentinelRootNodes = [{ host, port }]
        const client = createNodeRedisSentinel({ sentinelRootNodes, name, nodeClientOptions: user })
        await client.connect()
        return ended(client)
      },
    ],
  ])('for %s', async (_, connect) => {
    const sentinel = await startSentinel()
    onTestFinished(() => sentinel.stop())
    for (const { port } of sentinel.servers) {
      await ask(port, 'ACL', 'SETUSER', 'limiter', 'on', '>secret', ...rulesFor())
      await ask(port, 'ACL', 'LOG', 'RESET')
    }
    await work((port) => connect(port, sentinel.masterName), sentinel.sentinels[0]!)
    for (const { port } of sentinel.servers) {
      expect(refusedIn((await ask(port, 'ACL', 'LOG')) as string[][])).toEqual([])
    }
  })
})
