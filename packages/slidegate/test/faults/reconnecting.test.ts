// tier: system
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLimiter, slidingWindow } from '../../src/index.ts'
import { batchedStore } from '../../src/stores/redis/batcher.ts'
import { connectionOf } from '../../src/stores/redis/clients.ts'
import { keyspace } from '../../src/stores/redis/keyspace.ts'
import { Backlog } from '../../src/stores/redis/queue.ts'
import { ScriptTransport } from '../../src/stores/redis/transport.ts'
import type { Store } from '../../src/stores/store.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

// While a client has no connection it would queue what it is given, and send it when nobody waits for it any more.

let server: RedisServer
let client: Redis
let backlog: Backlog
beforeEach(async () => {
  server = await startRedis()
  client = new Redis(server.port, { retryStrategy: () => 20 })
  client.on('error', () => {})
  backlog = new Backlog()
})
afterEach(async () => {
  client.disconnect()
  await server.stop()
})

const limits = [slidingWindow({ limit: 100_000, window: '1h' })]

function limiterOf(timeoutMs: number) {
  const transport = new ScriptTransport(connectionOf(client), keyspace('slidegate', 64))
  const options = { maxCalls: 16, readsFirst: false }
  const { apply } = batchedStore([transport], options, () => 0, undefined, backlog)
  const store: Store = { apply, close() {} }
  const breaker = { minRequests: 2 ** 20 }
  return createLimiter({ limits, store, timeoutMs, breaker, logger: false })
}

it('nothing piles up, and nothing of it is charged when Redis is back', async () => {
  const limiter = limiterOf(30)
  await limiterOf(30_000).consume('k')
  await server.kill()
  await until('the client has noticed', async () => client.status !== 'ready')
  for (let round = 0; round < 20; round++) {
    const asked = Array.from({ length: 500 }, (_, i) => limiter.consume(`key${round * 500 + i}`))
    const settled = await Promise.allSettled(asked)
    expect(settled.every(({ status }) => status === 'rejected')).toBe(true)
  }
  await until('what was given up is forgotten', async () => backlog.size === 0)
  await server.start()
  expect((await limiterOf(30_000).consume('k')).remaining).toBe(99_999)
  expect(await client.keys('*:key*')).toEqual([])
})
