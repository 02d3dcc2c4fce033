import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLimiter, type Limit, StoreUnavailableError, slidingWindow } from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { storeConformance } from '../../src/testing.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

/** All that the store needs of Redis. (The clients want +info and +client besides, but do without.) */
const COMMANDS = [
  ...['evalsha', 'eval', 'getrange', 'strlen', 'setrange', 'set', 'del', 'pexpire', 'time'],
  // Of logs that keep entries, as sorted sets and as streams.
  ...[
    'zadd',
    'zrem',
    'zrange',
    'zcount',
    'zcard',
    'zscore',
    'zrangebyscore',
    'zremrangebyrank',
    'zremrangebyscore',
  ],
  ...['xadd', 'xrange', 'xrevrange', 'xlen', 'xtrim', 'xdel', 'xsetid'],
  // Of overrides.
  ...['hget', 'hset', 'hdel', 'hscan', 'hmget', 'hlen', 'persist'],
]

let server: RedisServer
let admin: Redis
beforeAll(async () => {
  server = await startRedis()
  admin = new Redis(server.port)
})
afterAll(async () => {
  await admin.quit()
  await server.stop()
})

async function allow(username: string, commands: readonly string[]): Promise<void> {
  const rules = ['resetkeys', '~slidegate:*', 'resetchannels', '-@all', ...commands.map((name) => `+${name}`)]
  await admin.call('ACL', 'SETUSER', username, 'on', '>secret', ...rules)
}

function connect(username: string): Redis {
  // Its ready check would ask for INFO.
  return new Redis(server.port, { username, password: 'secret', enableReadyCheck: false })
}

async function conform(client: RedisClient): Promise<void> {
  const limits = [slidingWindow({ limit: 2, window: '1h' })]
  // First: requests go on without what cannot be read of them.
  await override(client, limits)
  for (const { run } of storeConformance) {
    await run(({ clock }) => redisStore(client, { clock, prefix: `slidegate:${randomUUID()}` }))
  }
  // Without a clock handed in it asks for the time.
  await createLimiter({ limits, store: redisStore(client), timeoutMs: 30_000 }).consume('k')
}

/** Lasting ones and others, read as a whole and what has changed, and removed. */
async function override(client: RedisClient, limits: readonly Limit[]): Promise<void> {
  const store = redisStore(client, { prefix: `slidegate:${randomUUID()}` })
  const [here, elsewhere] = Array.from({ length: 2 }, () =>
    createLimiter({ limits, overrides: true, store, timeoutMs: 30_000 }),
  )
  await here!.overrides.set('k', limits)
  await elsewhere!.overrides.set('other', limits, { ttl: '1h' })
  expect(await here!.overrides.list()).toHaveLength(2)
  expect(await elsewhere!.overrides.delete('k')).toBe(true)
  expect(await here!.overrides.list()).toHaveLength(1)
}

describe('a Redis user who may do nothing else', () => {
  beforeAll(() => allow('limiter', COMMANDS))

  it('passes the conformance suite by ioredis', async () => {
    const client = connect('limiter')
    await conform(client)
    await client.quit()
  })

  it('passes the conformance suite by node-redis', async () => {
    const client = createClient({ url: server.url, username: 'limiter', password: 'secret' })
    await client.connect()
    await conform(client)
    await client.close()
  })

  it('is refused beyond the prefix', async () => {
    const client = connect('limiter')
    const limits = [slidingWindow({ limit: 2, window: '1h' })]
    const limiter = createLimiter({
      limits,
      store: redisStore(client, { prefix: 'other' }),
      timeoutMs: 30_000,
    })
    await expect(limiter.consume('k')).rejects.toBeInstanceOf(StoreUnavailableError)
    await client.quit()
  })
})

it.each(COMMANDS)('without %s it would not do', async (missing) => {
  await admin.script('FLUSH')
  await allow(
    `without-${missing}`,
    COMMANDS.filter((name) => name !== missing),
  )
  const client = connect(`without-${missing}`)
  await expect(conform(client)).rejects.toThrow(StoreUnavailableError)
  await client.quit()
})
