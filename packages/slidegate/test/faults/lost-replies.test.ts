import { setImmediate as nextTurn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLimiter, type StoreUnavailableError, slidingWindow } from '../../src/index.ts'
import { type CommandClient, redisStore } from '../../src/stores/redis/index.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { expectExact } from './traffic.ts'

// Some clients never settle a command whose connection was lost: neither a reply nor an error.

let server: RedisServer
let redis: Redis
beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.port)
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

it.each([1, 2, 16, 50])('after %i calls that were never answered the next one is', async (calls) => {
  let lost = 0
  const client: CommandClient = {
    async command([name = '', ...words]) {
      const reply = await redis.call(name, ...words)
      return lost++ < calls ? new Promise(() => {}) : reply
    },
  }
  const limits = [slidingWindow({ limit: 100, window: '1h' })]
  const store = redisStore(client, { prefix: `lost:${calls}` })
  const limiter = createLimiter({ limits, store, timeoutMs: 20 })
  const patient = createLimiter({ limits, store, timeoutMs: 2000 })
  for (let i = 0; i < calls; i++) {
    const error = await limiter.consume('k').catch((reason: unknown) => reason)
    expect((error as StoreUnavailableError).reason).toBe('timeout')
  }
  expect((await patient.peek('k')).allowed).toBe(true)
  await expectExact(patient, 'new')
})

it('ioredis that does not resend: what a crash has swallowed does not block what comes after', async () => {
  const own = await startRedis()
  const client = new Redis(own.port, { autoResendUnfulfilledCommands: false })
  client.on('error', () => {})
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 100, window: '1h' })],
    store: redisStore(client),
    timeoutMs: 2000,
  })
  await limiter.consume('k')
  process.kill(own.pid, 'SIGSTOP')
  const swallowed: Promise<unknown>[] = []
  for (let i = 0; i < 10; i++) {
    swallowed.push(limiter.consume(`swallowed${i}`))
    await nextTurn()
  }
  const settled = Promise.allSettled(swallowed)
  await own.kill()
  await own.start()
  await settled
  await expectExact(limiter, 'new')
  client.disconnect()
  await own.stop()
})
