// tier: system
import { randomUUID } from 'node:crypto'
import { Cluster as Ioredis } from 'ioredis'
import { Cluster as Iovalkey } from 'iovalkey'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createLimiter, distinct, type Limiter, slidingWindow } from '../../src/index.ts'
import { connectionOf } from '../../src/stores/redis/clients.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { crc16, tagsOf } from '../../src/stores/redis/keyspace.ts'
import { SCRIPT_SHA1 } from '../../src/stores/redis/script.generated.ts'
import type { Connection } from '../stores/conformance.ts'
import { CLUSTER_CLIENTS } from '../stores/conformance-clients.ts'
import { ask } from '../support/ask.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { limiterOn } from './store-on.ts'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster({ masters: 3, replicas: 0 })
})
afterAll(() => cluster.stop())

const limits = [slidingWindow({ limit: 10, window: '1h' })]
const keys = Array.from({ length: 200 }, (_, i) => `k${i}`)

function limiterOf(client: RedisClient, buckets: number): Limiter {
  const store = redisStore(client, { buckets })
  return createLimiter({ name: randomUUID(), limits, store, timeoutMs: 30_000 })
}

/** Flushes the scripts of each server. */
const flushScripts = () => Promise.all(cluster.nodes.map(({ port }) => ask(port, 'SCRIPT', 'FLUSH')))
const knowsScript = async (port: number) => ask(port, 'SCRIPT', 'EXISTS', SCRIPT_SHA1)

describe.each(Object.entries(CLUSTER_CLIENTS))('%s', (_, connect) => {
  let connection: Connection
  beforeAll(async () => {
    connection = await connect(cluster.nodes[0]!.port)
  })
  afterAll(() => connection.close())

  it('loads the script on each server with the first request, and charges each request once', async () => {
    const limiter = limiterOf(connection.client, 64)
    const remaining = async () =>
      new Set((await Promise.all(keys.map((key) => limiter.consume(key)))).map((d) => d.remaining))
    await flushScripts()
    expect(await remaining()).toEqual(new Set([9]))
    expect(await Promise.all(cluster.nodes.map(({ port }) => knowsScript(port)))).toEqual([[1], [1], [1]])
    await ask(cluster.nodes[1]!.port, 'SCRIPT', 'FLUSH')
    expect(await remaining()).toEqual(new Set([8]))
    const racing = keys.map((key) => limiter.consume(key))
    await flushScripts()
    expect(new Set((await Promise.all(racing)).map((d) => d.remaining))).toEqual(new Set([7]))
  })

  it('loads the script on the target server of a slot migration', async () => {
    // One key per call, because a call with keys on different servers gets TRYAGAIN instead of ASK.
    const limiter = limiterOn({ ...connectionOf(connection.client), resends: false })
    await limiter.consume('moved')
    const slot = crc16(tagsOf(1)[0]!) % 16_384
    const from = await cluster.masterOf(slot)
    const to = cluster.nodes.find(({ id }) => id !== from.id)!
    const open = await cluster.openSlot(slot, to)
    await open.move(1000)
    await ask(to.port, 'SCRIPT', 'FLUSH')
    // The source server doesn't have the key any more, and answers ASK.
    expect((await limiter.consume('moved')).remaining).toBe(998)
    expect(await knowsScript(to.port)).toEqual([1])
    expect((await limiter.consume('new')).remaining).toBe(999)
    while ((await open.move(1000)) > 0);
    await open.finish()
    // Now the source server answers MOVED.
    expect((await limiter.consume('moved')).remaining).toBe(997)
  })
})

describe('if half of a slot has been migrated', () => {
  const names = Array.from({ length: 20 }, (_, i) => `half${i}`)

  /** Charges all keys, moves half of them, and charges all again. Retries until each is answered. */
  async function remainingOf(client: RedisClient, timeoutMs: number): Promise<number[]> {
    const limiter = limiterOn(connectionOf(client), { timeoutMs })
    const askAll = async () =>
      (await Promise.all(names.map((name) => limiter.consume(name)))).map(({ remaining }) => remaining)
    // With a short timeout, the client may not have connected yet.
    await vi.waitFor(askAll, { timeout: 20_000, interval: 50 })
    const slot = crc16(tagsOf(1)[0]!) % 16_384
    const from = await cluster.masterOf(slot)
    const open = await cluster.openSlot(slot, cluster.nodes.find(({ id }) => id !== from.id)!)
    try {
      const moved = (await ask(from.port, 'CLUSTER', 'GETKEYSINSLOT', String(slot), '1000')) as string[]
      await open.move(moved.filter((key) => /:half[0-9]:/.test(key)))
      return await vi.waitFor(askAll, { timeout: 20_000, interval: 50 })
    } finally {
      while ((await open.move(1000)) > 0);
      await open.finish()
    }
  }

  it('node-redis gets TRYAGAIN, and the store sends keys one at a time', async () => {
    const connection = await CLUSTER_CLIENTS['node-redis 6']!(cluster.nodes[0]!.port)
    expect(await remainingOf(connection.client, 10_000)).toEqual(names.map(() => 998))
    await connection.close()
  })

  it('ioredis waits first, and the store sends the next keys one at a time', async () => {
    const client = new Ioredis([{ host: '127.0.0.1', port: cluster.nodes[0]!.port }])
    const remaining = await remainingOf(client, 200)
    expect(remaining.every((left) => left < 999)).toBe(true)
    client.disconnect()
  })
})

it('an approximate limit is unavailable while some of its keys have moved, and loses nothing', async () => {
  const connection = await CLUSTER_CLIENTS['node-redis 6']!(cluster.nodes[0]!.port)
  const store = redisStore(connection.client, { buckets: 1 })
  const limiter = createLimiter({
    name: randomUUID(),
    limits: [distinct({ limit: 9, window: '1h', approximate: true })],
    store,
    timeoutMs: 10_000,
  })
  const remaining = async (value: string) => (await limiter.consume('k', { value })).remaining
  expect(await remaining('a')).toBe(8)
  const slot = crc16(tagsOf(1)[0]!) % 16_384
  const from = await cluster.masterOf(slot)
  const open = await cluster.openSlot(slot, cluster.nodes.find(({ id }) => id !== from.id)!)
  const keys = (await open.keysLeft()).filter((key) => key.includes(':k:e3600000')).sort()
  expect(keys).toHaveLength(12)
  await open.move(keys.slice(0, 4))
  await expect(remaining('b')).rejects.toMatchObject({ code: 'store_unavailable' })
  while ((await open.move(1000)) > 0);
  expect(await remaining('c')).toBe(7)
  await open.finish()
  expect(await remaining('d')).toBe(6)
  await connection.close()
})

it.each([
  ['ioredis', Ioredis, []],
  ['iovalkey, excluding script commands', Iovalkey, ['evalsha', 'eval']],
] as const)('%s charges each key once with automatic pipelines', async (_, Cluster, ignored) => {
  const { port } = cluster.nodes[0]!
  const client = new Cluster([{ host: '127.0.0.1', port }], {
    enableAutoPipelining: true,
    autoPipeliningIgnoredCommands: [...ignored],
  })
  const limiter = limiterOf(client, 64)
  const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
  expect(new Set(decisions.map(({ remaining }) => remaining))).toEqual(new Set([9]))
  await client.quit()
})
