// tier: system
import { Cluster as Cluster5, Redis as Ioredis5 } from 'ioredis'
import { Cluster as Cluster6, Redis as Ioredis6 } from 'ioredis6'
import { Redis as Iovalkey } from 'iovalkey'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createLimiter, fixedWindow, slidingWindow } from '../../src/index.ts'
import { type CommandClient, type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { useRedis } from '../support/use-redis.ts'

// Some clients resend a command if its reply was lost. It must be charged only once.

const { redis, server } = await useRedis()
beforeEach(() => redis.flushall())

const TTL_MS = 600_000
const SLIDING = [slidingWindow({ limit: 1000, window: '1h' })]
const MIXED = [slidingWindow({ limit: 1000, window: '1h' }), fixedWindow({ limit: 1000, window: '1d' })]

const limiterOn = (client: RedisClient, limits = SLIDING) =>
  createLimiter({ limits, store: redisStore(client), timeoutMs: 30_000, logger: false })

const receipts = async () => (await redis.keys('*}:~*')).sort()

const CLIENTS = {
  'ioredis 5': (port: number) => new Ioredis5(port),
  'ioredis 6': (port: number) => new Ioredis6(port),
  iovalkey: (port: number) => new Iovalkey(port),
}

describe.each(Object.entries(CLIENTS))('%s with a connection that breaks after the request', (_, connect) => {
  let proxy: TcpProxy
  let client: ReturnType<typeof connect>
  beforeAll(async () => {
    proxy = await startProxy(server.port)
    client = connect(proxy.port)
    client.on('error', () => {})
  })
  afterAll(async () => {
    client.disconnect()
    await proxy.stop()
  })

  it("charges twice if the store doesn't know that the client resends", async () => {
    const command: CommandClient['command'] = ([name = '', ...words]) => client.call(name, ...words)
    const limiter = limiterOn({ command })
    await limiter.consume('k')
    proxy.cutAfterRequest()
    expect((await limiter.consume('k')).remaining).toBe(997)
    expect(await receipts()).toEqual([])
  })

  it('charges a single request once', async () => {
    const limiter = limiterOn(client)
    await limiter.consume('k')
    const connections = proxy.accepted
    proxy.cutAfterRequest()
    expect((await limiter.consume('k')).remaining).toBe(998)
    expect(proxy.accepted).toBeGreaterThan(connections)
    expect((await limiter.peek('k')).remaining).toBe(998)
  })

  it('charges a batch of many keys and costs once', async () => {
    const limiter = limiterOn(client)
    await limiter.consume('k')
    proxy.cutAfterRequest()
    const keys = Array.from({ length: 300 }, (_, i) => `user:${i}`)
    const decisions = await Promise.all(keys.map((key, i) => limiter.consume(key, { cost: 1 + (i % 3) })))
    expect(decisions.map(({ remaining }) => remaining)).toEqual(keys.map((_, i) => 999 - (i % 3)))
    const peeks = await Promise.all(keys.map((key) => limiter.peek(key)))
    expect(peeks.map(({ remaining }) => remaining)).toEqual(keys.map((_, i) => 999 - (i % 3)))
  })
})

/** Sends each command twice in a row, like a client that lost the first reply. Keeps all replies. */
class Twice implements CommandClient {
  readonly resends = true
  readonly replies: unknown[][] = []
  readonly sent: (readonly string[])[] = []
  async command(words: readonly string[]): Promise<unknown> {
    const [name = '', ...rest] = words
    this.sent.push(words)
    const replies = [await redis.call(name, ...rest), await redis.call(name, ...rest)]
    this.replies.push(replies)
    return replies[1]
  }
}

describe('a call that is executed twice in a row', () => {
  it.each([
    ['sliding windows', SLIDING],
    ['windows of two kinds', MIXED],
  ])('charges once and returns equal replies: %s', async (_, limits) => {
    const client = new Twice()
    const limiter = limiterOn(client, limits)
    await limiter.consume('warm')
    const asks = [1, 5, 900, 200].map((cost) => limiter.consume(`k${cost}`, { cost }))
    const [first] = await Promise.all([...asks, limiter.charge('charged', 7), limiter.consume('k1')])
    await Promise.all([limiter.refund('k1', first!), limiter.charge('charged', 3)])
    expect((await limiter.peek('charged')).remaining).toBe(990)
    expect((await limiter.peek('k1')).remaining).toBe(999)
    expect((await limiter.peek('k900')).remaining).toBe(100)
    for (const [once, again] of client.replies.slice(0, -3)) expect(again).toEqual(once)
  })

  it("returns equal replies if an op can't be decided", async () => {
    const client = new Twice()
    const limiter = limiterOn(client)
    await limiter.consume('bad')
    const [log] = await redis.keys('*:bad:*')
    await redis.set(log!, 'x'.repeat(100), 'KEEPTTL')
    const results = await Promise.allSettled(['a', 'bad', 'b'].map((key) => limiter.consume(key)))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(results[1]).toMatchObject({ reason: { reason: 'invalid_state' } })
    const [once, again] = client.replies.at(-1)!
    expect(again).toEqual(once)
    expect((await limiter.peek('b')).remaining).toBe(999)
  })

  it("doesn't reset twice", async () => {
    const client = new Twice()
    const limiter = limiterOn(client)
    await limiter.consume('k')
    await limiter.reset('k')
    const words = client.sent.at(-1)!
    await limiterOn(redis).charge('k', 5)
    await redis.call(words[0]!, ...words.slice(1))
    expect((await limiter.peek('k')).remaining).toBe(995)
  })

  it('leaves a receipt that expires', async () => {
    const limiter = limiterOn(new Twice())
    await limiter.consume('k')
    const keys = await receipts()
    expect(keys).toHaveLength(1)
    const ttlMs = await redis.pttl(keys[0]!)
    expect(ttlMs).toBeGreaterThan(TTL_MS - 60_000)
    expect(ttlMs).toBeLessThanOrEqual(TTL_MS)
  })

  it('leaves no receipt if nothing was charged', async () => {
    for (const limits of [SLIDING, MIXED]) {
      const limiter = limiterOn(new Twice(), limits)
      await limiterOn(redis, limits).charge('full', 1000)
      const asks = [limiter.consume('full'), limiter.consume('full', { cost: 2 }), limiter.peek('full')]
      const allowed = (await Promise.all(asks)).map(({ allowed }) => allowed)
      expect(allowed).toEqual([false, false, false])
      expect(await receipts()).toEqual([])
      await redis.flushall()
    }
  })
})

it("a call that arrives after a later one from the same place isn't executed", async () => {
  const client = new Twice()
  const limiter = limiterOn(client)
  await limiter.consume('warm')
  await limiter.consume('k')
  const [name = '', ...words] = client.sent.at(-1)!
  await limiter.consume('k')
  expect(client.sent.at(-1)![4]).toBe(words[3])
  expect(await redis.call(name, ...words)).toEqual([-1])
  expect((await limiter.peek('k')).remaining).toBe(998)
})

it('a call that arrives too late is rejected with a timeout', async () => {
  let late: readonly string[] = []
  const client: CommandClient = {
    resends: true,
    command: async ([name = '', ...words]) => {
      late = late.length === 0 && name === 'EVALSHA' ? [name, ...words] : late
      return redis.call(name, ...words)
    },
  }
  const limiter = limiterOn(client)
  await limiter.consume('a')
  await limiter.consume('a')
  const tooLate = limiterOn({ command: () => redis.call(late[0]!, ...late.slice(1)) })
  await expect(tooLate.consume('a')).rejects.toMatchObject({ reason: 'timeout' })
})

it('if memory is full, calls that write nothing work as they do without receipts', async () => {
  const limiter = limiterOn(new Twice())
  await limiter.charge('full', 1000)
  await limiter.consume('bad')
  await redis.set((await redis.keys('*:bad:*'))[0]!, 'x', 'KEEPTTL')
  await redis.config('SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction')
  try {
    expect((await limiter.consume('full')).allowed).toBe(false)
    await expect(limiter.consume('bad')).rejects.toMatchObject({ reason: 'invalid_state' })
    await expect(limiter.consume('new')).rejects.toMatchObject({ reason: 'error' })
    await limiter.reset('full')
  } finally {
    await redis.config('SET', 'maxmemory', '0')
  }
  expect((await limiter.peek('full')).remaining).toBe(1000)
})

describe('on a Cluster whose connections break after the request', async () => {
  const cluster = await startCluster({ masters: 3, replicas: 0 })
  const proxies = await Promise.all(cluster.nodes.map(({ port }) => startProxy(port)))
  afterAll(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop()))
    await cluster.stop()
  })
  const nodes = proxies.map(({ port }) => ({ host: '127.0.0.1', port }))
  const natMap = Object.fromEntries(cluster.nodes.map(({ port }, i) => [`127.0.0.1:${port}`, nodes[i]!]))
  const options = { natMap, redisOptions: { maxRetriesPerRequest: 0 } }
  const clients = {
    'ioredis 5': () => new Cluster5(nodes, options),
    'ioredis 6': () => new Cluster6(nodes, options),
  }

  it.each(Object.entries(clients))(
    'requests for many keys are charged once each: %s',
    async (name, connect) => {
      const client = connect()
      client.on('error', () => {})
      const keys = Array.from({ length: 300 }, (_, i) => `${name.replace(' ', '')}:${i}`)
      const ask = (limiter: ReturnType<typeof limiterOn>) =>
        Promise.all(keys.map((key) => limiter.consume(key)))
      const left = (decisions: { remaining: number }[]) => [
        ...new Set(decisions.map(({ remaining }) => remaining)),
      ]
      try {
        const limiter = limiterOn(client)
        expect(left(await ask(limiter))).toEqual([999])
        for (const proxy of proxies) proxy.cutAfterRequest()
        expect(left(await ask(limiter))).toEqual([998])
        const command: CommandClient['command'] = ([name = '', ...words]) => client.call(name, ...words)
        const careless = limiterOn({ command, isCluster: true })
        for (const proxy of proxies) proxy.cutAfterRequest()
        // The number of commands that each lost connection had in flight varies.
        expect(left(await ask(careless))).toContain(996)
      } finally {
        client.disconnect()
      }
    },
  )
})
