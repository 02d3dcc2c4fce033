// tier: system
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLimiter, slidingWindow } from '../../src/index.ts'
import { type CommandClient, redisStore } from '../../src/stores/redis/index.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { Traffic, untilAnswered } from './traffic.ts'

// What a Redis that stands still is sent. What callers are told meanwhile is in the matrix, for every client.

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

it('a client that waits for a silent Redis is not given more and more to send', async () => {
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
  await until('all are given up, and ask again', async () => traffic.errors.length > keys.length)
  const [sentWhileSilent, silentMs] = [sent, performance.now() - sinceMs]
  server.thaw()
  await traffic.stop()
  // As many as may be in flight, and now and then one to see whether it is back.
  expect(sentWhileSilent).toBeLessThan(40 + silentMs / 25)
})

it('a silent Redis does not charge later what was given up before it was sent', async () => {
  const limits = [slidingWindow({ limit: 100, window: '1h' })]
  const store = redisStore(redis)
  // All are asked for before any is given up, which would be room for others to be sent.
  const limiter = createLimiter({ limits, store, timeoutMs: 2000, logger: false })
  const patient = createLimiter({ limits, store, timeoutMs: 30_000 })
  await untilAnswered(patient)
  server.freeze()
  const sent: Promise<unknown>[] = []
  // As many as are sent off without waiting for an answer.
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
