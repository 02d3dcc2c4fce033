// tier: system
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLimiter, slidingWindow } from '../../src/index.ts'
import { type CommandClient, redisStore } from '../../src/stores/redis/index.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { Traffic, untilAnswered } from './traffic.ts'

// Tests which calls a frozen Redis receives. The matrix tests which answers callers get, for every client.

let server: RedisServer
let redis: Redis
beforeEach(async () => {
  server = await startRedis()
  redis = new Redis(server.port)
})
afterEach(async () => {
  redis.disconnect()
  await server.stop()
})

it("a client that waits for a silent Redis isn't sent more and more calls", async () => {
  let sent = 0
  const client: CommandClient = {
    command([name = '', ...words]) {
      sent++
      return redis.call(name, ...words)
    },
  }
  const limits = [slidingWindow({ limit: 100, window: '1h' })]
  const limiter = createLimiter({ limits, store: redisStore(client), timeoutMs: 20, logger: false })
  await limiter.consume('warm').catch(() => undefined)
  server.freeze()
  sent = 0
  const keys = Array.from({ length: 1000 }, (_, i) => `key${i}`)
  const sinceMs = performance.now()
  const traffic = new Traffic(limiter, keys, keys.length)
  await delay(1500)
  await until(
    'all requests have timed out, and callers have retried',
    async () => traffic.errors.length > keys.length,
  )
  const [sentWhileSilent, silentMs] = [sent, performance.now() - sinceMs]
  server.thaw()
  await traffic.stop()
  // Only the calls that may be in flight and an occasional probe were sent.
  expect(sentWhileSilent).toBeLessThan(40 + silentMs / 25)
})

it("a silent Redis doesn't charge requests later that timed out before they were sent", async () => {
  const limits = [slidingWindow({ limit: 100, window: '1h' })]
  const store = redisStore(redis)
  // All requests are made before any of them times out, because a timeout lets another be sent.
  const limiter = createLimiter({ limits, store, timeoutMs: 2000, logger: false })
  const patient = createLimiter({ limits, store, timeoutMs: 30_000 })
  await untilAnswered(patient)
  server.freeze()
  const sent: Promise<unknown>[] = []
  // This many calls are sent without waiting for a reply.
  for (let i = 0; i < 20; i++) {
    sent.push(limiter.consume(`sent${i}`).catch((error: unknown) => error))
    await nextTurn()
  }
  const keys = Array.from({ length: 60 }, (_, i) => `waiting${i % 30}`)
  const waiting = await Promise.allSettled(keys.map((key) => limiter.consume(key)))
  expect(waiting.map(({ status }) => status)).toEqual(keys.map(() => 'rejected'))
  await Promise.all(sent)
  server.thaw()
  await untilAnswered(patient)
  const peeked = await Promise.all(keys.map((key) => patient.peek(key)))
  expect(peeked.map(({ remaining }) => remaining)).toEqual(keys.map(() => 100))
})
