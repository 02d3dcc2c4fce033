// tier: integration
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  createLimiter,
  type Decision,
  type Limiter,
  type OnStoreError,
  StoreUnavailableError,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

const limits = [slidingWindow({ limit: 4, window: '1h' })]

let server: RedisServer
let client: Redis
beforeEach(async () => {
  server = await startRedis()
  client = new Redis(server.port)
  client.on('error', () => {})
})
afterEach(async () => {
  client.disconnect()
  await server.stop()
})

const OUTAGES = {
  frozen: { begin: async () => server.freeze(), end: async () => server.thaw() },
  killed: { begin: () => server.kill(), end: () => server.start() },
}

const cases = Object.entries(OUTAGES).flatMap(([name, outage]) =>
  (['throw', 'deny', 'allow', 'local'] as const).map((policy) => [name, policy, outage] as const),
)

/** The first answer of the store, on a machine that may be too slow for its timeout now and then. */
const fromStore = (ask: () => Promise<Decision>): Promise<Decision> =>
  vi.waitUntil(
    async () => {
      const decision = await ask().catch(() => undefined)
      return decision?.source === 'store' && decision
    },
    { timeout: 20_000 },
  )

describe.each(cases)('a Redis that is %s, %s', (_, onStoreError: OnStoreError, outage) => {
  it('each request has its answer, the breaker opens, and all is as before once it is back', async () => {
    const store = redisStore(client)
    const limiter: Limiter = createLimiter({ limits, store, onStoreError, instances: 2, logger: false })
    const patient = createLimiter({ limits, store, timeoutMs: 30_000, logger: false })
    await patient.peek('before')
    const before = await fromStore(() => limiter.consume('before'))
    const events: string[] = []
    limiter.on('storeDown', () => events.push('down')).on('storeUp', () => events.push('up'))

    await outage.begin()
    const answers: unknown[] = []
    const ask = async () => void answers.push(await limiter.consume('k').catch((error: unknown) => error))
    for (let i = 0; i < 3; i++) await ask()
    // Many at once: most of them when it is not asked any more.
    await vi.waitUntil(
      async () => {
        await Promise.all(Array.from({ length: 10 }, ask))
        return events.length > 0
      },
      { timeout: 20_000 },
    )
    // One may be sent to find out; the other is not, then.
    await Promise.all([ask(), ask()])
    const allowed = answers.filter((answer) => (answer as { allowed?: boolean }).allowed)
    const sources = new Set(answers.map((answer) => (answer as { source?: string }).source))
    switch (onStoreError) {
      case 'throw':
        expect(answers.every((answer) => answer instanceof StoreUnavailableError)).toBe(true)
        expect(answers).toContainEqual(expect.objectContaining({ reason: 'down' }))
        break
      case 'deny':
        expect([[...sources], allowed.length]).toEqual([['failClosed'], 0])
        break
      case 'allow':
        expect([[...sources], allowed.length]).toEqual([['failOpen'], answers.length])
        break
      case 'local':
        expect([[...sources], allowed.length]).toEqual([['fallback'], 2])
    }
    for (const fails of [
      () => limiter.charge('k', 1),
      () => limiter.reset('k'),
      () => limiter.refund('before', before),
    ]) {
      await expect(fails()).rejects.toBeInstanceOf(StoreUnavailableError)
    }

    await outage.end()
    await fromStore(() => limiter.peek('before'))
    expect(events).toEqual(['down', 'up'])
    let tries = 0
    expect(await fromStore(() => limiter.consume(`new${tries++}`))).toMatchObject({ remaining: 3 })
  })
})
