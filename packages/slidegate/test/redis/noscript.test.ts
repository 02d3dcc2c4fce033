// tier: system
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createLimiter, type Limiter, StoreUnavailableError, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { SCRIPT_SHA1 } from '../../src/stores/redis/script.generated.ts'
import type { Connection } from '../stores/conformance.ts'
import { CLIENTS } from '../stores/conformance-clients.ts'
import { rulesFor } from '../support/access.ts'
import { useRedis } from '../support/use-redis.ts'

const { server, redis: admin } = await useRedis()

const limits = [slidingWindow({ limit: 2, window: '1h' })]

async function calls(command: string): Promise<number> {
  const stats = await admin.info('commandstats')
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
}

describe.each(Object.entries(CLIENTS))('%s', (_, connect) => {
  let connection: Connection
  let limiter: Limiter
  beforeAll(async () => {
    connection = await connect(server.port)
    limiter = createLimiter({ limits, store: redisStore(connection.client), timeoutMs: 30_000 })
    await admin.flushall()
  })
  afterAll(() => connection.close())

  it('loads a missing script with a request, and charges the request once', async () => {
    await admin.script('FLUSH')
    expect((await limiter.consume('lone')).remaining).toBe(1)
    expect(await admin.script('EXISTS', SCRIPT_SHA1)).toEqual([1])
    await admin.config('RESETSTAT')
    expect((await limiter.consume('lone')).remaining).toBe(0)
    expect([await calls('evalsha'), await calls('eval')]).toEqual([1, 0])
  })

  it('loads a missing script with thousands of concurrent requests, and charges each once', async () => {
    await admin.script('FLUSH')
    const keys = Array.from({ length: 3000 }, (_, i) => `many${i}`)
    const all = keys.map((key) => limiter.consume(key))
    await admin.script('FLUSH')
    expect((await Promise.all(all)).map(({ remaining }) => remaining)).toEqual(keys.map(() => 1))
    const peeked = await Promise.all(keys.map((key) => limiter.peek(key)))
    expect(peeked.map(({ remaining }) => remaining)).toEqual(keys.map(() => 1))
  })

  it('charges each request once while the script is flushed repeatedly', async () => {
    let isDone = false
    const flushing = (async () => {
      while (!isDone) await admin.script('FLUSH')
    })()
    onTestFinished(async () => {
      isDone = true
      await flushing
    })
    for (let round = 0; round < 20; round++) {
      const keys = Array.from({ length: 300 }, (_, i) => `round${round} ${i}`)
      const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
      expect(decisions.every(({ remaining }) => remaining === 1)).toBe(true)
    }
  })
})

it('a Redis that rejected the script gets it again with the next request', async () => {
  await admin.script('FLUSH')
  await admin.call('ACL', 'SETUSER', 'half', 'on', '>secret', ...rulesFor(), '-eval')
  const client = new Redis(server.port, { username: 'half', password: 'secret', enableReadyCheck: false })
  const limiter = createLimiter({
    limits,
    store: redisStore(client, { prefix: 'slidegate:half' }),
    timeoutMs: 30_000,
  })
  const refused = await limiter.consume('k').catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(StoreUnavailableError)
  expect(refused).toMatchObject({ reason: 'error', message: expect.stringContaining('NOPERM') })
  await admin.call('ACL', 'SETUSER', 'half', '+eval')
  expect((await limiter.consume('k')).remaining).toBe(1)
  await client.quit()
})
