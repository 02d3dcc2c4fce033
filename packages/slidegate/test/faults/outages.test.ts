// tier: system
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLimiter, type Limiter, StoreUnavailableError, slidingWindow } from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { freePort, type RedisServer, startRedis } from '../support/redis-server.ts'
import { untilAnswered } from './traffic.ts'

let server: RedisServer
let redis: Redis
let admin: Redis
beforeAll(async () => {
  server = await startRedis(['--busy-reply-threshold', '10'])
  redis = new Redis(server.port)
  admin = new Redis(server.port)
})
afterAll(async () => {
  redis.disconnect()
  admin.disconnect()
  await server.stop()
})

const limiterOn = (client: RedisClient): Limiter =>
  createLimiter({
    limits: [slidingWindow({ limit: 9, window: '1h' })],
    store: redisStore(client),
    timeoutMs: 30_000,
  })

async function reasonOf(request: Promise<unknown>): Promise<StoreUnavailableError> {
  const error = await request.catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(StoreUnavailableError)
  return error as StoreUnavailableError
}

it('a Redis that was made a replica is unavailable until it is a primary again', async () => {
  const limiter = limiterOn(redis)
  await limiter.consume('k')
  await admin.replicaof('127.0.0.1', await freePort())
  const error = await reasonOf(limiter.consume('k'))
  expect(error).toMatchObject({ reason: 'error', message: expect.stringContaining('READONLY') })
  expect(error.cause).toBeInstanceOf(Error)
  await admin.replicaof('NO', 'ONE')
  expect((await limiter.consume('k')).remaining).toBe(7)
})

it("a Redis that is busy with another client's script is unavailable until the script ends", async () => {
  const limiter = limiterOn(redis)
  await limiter.reset('k')
  await limiter.consume('k')
  const endless = new Redis(server.port)
  const killed = endless.eval('while true do end', 0).catch((error: unknown) => error)
  while (!/BUSY/.test(await admin.ping().catch((error: unknown) => String(error))));
  expect(await reasonOf(limiter.consume('k'))).toMatchObject({
    reason: 'error',
    message: expect.stringContaining('BUSY'),
  })
  await admin.script('KILL')
  await killed
  endless.disconnect()
  await untilAnswered(limiter)
  expect((await limiter.consume('k')).remaining).toBe(7)
})

describe('a client that was closed counts as an outage', () => {
  it('ioredis', async () => {
    const client = new Redis(server.port)
    const limiter = limiterOn(client)
    await limiter.consume('ended')
    await client.quit()
    expect((await reasonOf(limiter.consume('ended'))).reason).toBe('error')
  })

  it('node-redis', async () => {
    const client = createClient({ url: server.url })
    await client.connect()
    const limiter = limiterOn(client)
    await limiter.consume('ended')
    await client.close()
    expect((await reasonOf(limiter.consume('ended'))).reason).toBe('error')
  })
})

it.each<[string, () => unknown]>([
  [
    'throws',
    () => {
      throw new TypeError('not connected')
    },
  ],
  ["rejects with a value that isn't an error", () => Promise.reject('no')],
  ['returns nothing', async () => undefined],
  ['returns an unexpected reply', async () => ['OK']],
])('a client that %s causes a StoreUnavailableError', async (_, command) => {
  const limiter = limiterOn({ command: command as () => Promise<unknown> })
  for (const ask of [() => limiter.consume('k'), () => limiter.peek('k'), () => limiter.charge('k', 1)]) {
    expect((await reasonOf(ask())).reason).toBe('error')
  }
})
