import autocannon from 'autocannon'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { HandlerArguments } from '../../../src/http/index.ts'
import { createLimiter } from '../../../src/index.ts'
import { redisStore } from '../../../src/stores/redis/index.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { type AdapterUnderTest, limitedTo, perMinute, START_MS, serve, time } from './fixture.ts'

const AMOUNT = 600
const LIMIT = 200
/** Autocannon checks for the last response every 20 ms. */
const LOAD = { amount: AMOUNT, connections: 20, sampleInt: 20 }

/** Tests exact limits with many concurrent requests on many connections. */
export function loadSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  let server: RedisServer
  let redis: Redis
  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.port)
  })
  afterAll(async () => {
    await redis.quit()
    await server.stop()
  })

  it('limits exactly under load', async () => {
    const server = await serve(adapter, limitedTo(LIMIT))
    const result = await autocannon({ ...LOAD, url: server.url, pipelining: 1 })
    expect(result).toMatchObject({ '2xx': LIMIT, '4xx': AMOUNT - LIMIT, '5xx': 0, errors: 0, timeouts: 0 })
    expect([server.served(), server.errors]).toEqual([LIMIT, []])
  })

  it('limits exactly under load, with pipelined requests on each connection', async () => {
    const server = await serve(adapter, limitedTo(LIMIT))
    // Autocannon doesn't count the last responses of each connection, so there are many more than are allowed.
    const result = await autocannon({ ...LOAD, amount: 1500, url: server.url, pipelining: 8 })
    expect(result).toMatchObject({ '2xx': LIMIT, '5xx': 0, errors: 0, timeouts: 0 })
    expect(result['4xx']).toBeGreaterThan(0)
    expect([server.served(), server.errors]).toEqual([LIMIT, []])
  })

  it('limits exactly under load, with several limiters that share Redis', async () => {
    await redis.flushall()
    const store = redisStore(redis, { clock: () => time.nowMs })
    const limiter = createLimiter({ limits: [perMinute(LIMIT)], store, timeoutMs: 30_000 })
    time.nowMs = START_MS
    const server = await serve(adapter, [{ limiter }, limitedTo(AMOUNT)])
    const result = await autocannon({ ...LOAD, url: server.url, pipelining: 1 })
    expect(result).toMatchObject({ '2xx': LIMIT, '4xx': AMOUNT - LIMIT, errors: 0, timeouts: 0 })
    expect([server.served(), server.errors]).toEqual([LIMIT, []])
  })
}
