// tier: system
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLimiter, type Limiter, StoreUnavailableError, slidingWindow } from '../../src/index.ts'
import { type CommandClient, redisStore } from '../../src/stores/redis/index.ts'
import { fullestWindow } from '../audit/fullest-window.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { CLIENTS, type Connection } from './clients.ts'
import { expectExact, expectOrderly, Traffic, untilAnswered } from './traffic.ts'

const TIMEOUT_MS = 100

describe('a frozen Redis', () => {
  let server: RedisServer
  let connection: Connection
  let limiter: Limiter
  /** On the same store, and not to be put off by a slow machine. */
  let patient: Limiter
  beforeEach(async () => {
    server = await startRedis()
  })
  afterEach(async () => {
    limiter.close()
    connection.end()
    await server.stop()
  })

  describe.each(Object.entries(CLIENTS))('%s', (_, connect) => {
    async function limit(units: number, window: string): Promise<void> {
      connection = await connect(server.port)
      const limits = [slidingWindow({ limit: units, window })]
      const store = redisStore(connection.client)
      limiter = createLimiter({ limits, store, timeoutMs: TIMEOUT_MS, logger: false })
      patient = createLimiter({ limits, store, timeoutMs: 30_000 })
      await untilAnswered(patient)
    }

    it('is given up in time, and never over once it goes on', async () => {
      await limit(40, '1s')
      const traffic = new Traffic(limiter, ['a'])
      await delay(200)
      server.freeze()
      await delay(500)
      await until('requests are given up', async () => traffic.errors.length > 0)
      server.thaw()
      await untilAnswered(patient)
      await delay(1000)
      await traffic.stop()
      expectOrderly(traffic, TIMEOUT_MS)
      expect(fullestWindow(traffic.admitted, 1000)).toBeLessThanOrEqual(40)
      await expectExact(patient, 'new')
    })

    it('is not kept busy with more than a bounded number of requests', async () => {
      await limit(100, '1h')
      server.freeze()
      const settled = await Promise.all(
        Array.from({ length: 70_000 }, (_, i) =>
          limiter.consume(`${i % 7}`).catch((error: unknown) => error),
        ),
      )
      expect(settled.every((error) => error instanceof StoreUnavailableError)).toBe(true)
      const reasons = new Set(settled.map((error) => (error as StoreUnavailableError).reason))
      expect([...reasons].sort()).toEqual(['overload', 'timeout'])
      server.thaw()
      await untilAnswered(patient)
      await expectExact(patient, 'new')
    })
  })

  it('a client that waits for a silent Redis is not given more and more to send', async () => {
    const redis = new Redis(server.port)
    connection = { client: redis, end: () => redis.disconnect() }
    let sent = 0
    const client: CommandClient = {
      command([name = '', ...words]) {
        sent++
        return redis.call(name, ...words)
      },
    }
    const limits = [slidingWindow({ limit: 100, window: '1h' })]
    limiter = createLimiter({ limits, store: redisStore(client), timeoutMs: 20 })
    await limiter.consume('warm').catch(() => undefined)
    server.freeze()
    sent = 0
    const keys = Array.from({ length: 1000 }, (_, i) => `key${i}`)
    const sinceMs = performance.now()
    const traffic = new Traffic(limiter, keys, keys.length)
    await delay(1500)
    await until('all are given up, and ask again', async () => traffic.errors.length > keys.length)
    const sentWhileSilent = sent
    const silentMs = performance.now() - sinceMs
    server.thaw()
    await traffic.stop()
    expectOrderly(traffic, 20)
    // As many as may be in flight, and now and then one to see whether it is back.
    expect(sentWhileSilent).toBeLessThan(40 + silentMs / 25)
  })
})

// All wait for their deadlines: at the same time, each at a server of its own.
it.concurrent.for(Object.entries(CLIENTS))(
  '%s: a frozen Redis does not charge later what was given up before it was sent',
  async ([, connect], test) => {
    const server = await startRedis()
    test.onTestFinished(() => server.stop())
    const connection = await connect(server.port)
    test.onTestFinished(() => connection.end())
    const limits = [slidingWindow({ limit: 100, window: '1h' })]
    const store = redisStore(connection.client)
    // All are asked for before any is given up, which would be room for others to be sent.
    const limiter = createLimiter({ limits, store, timeoutMs: 2000, logger: false })
    const patient = createLimiter({ limits, store, timeoutMs: 30_000 })
    test.onTestFinished(() => limiter.close())
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
  },
)
