// tier: integration
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { createLimiter, slidingWindow } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

function openStore() {
  const lines: string[] = []
  const store = redisStore({ url: server.url })
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 1000, window: '1h' })],
    store,
    logger: { warn: (line) => void lines.push(line) },
  })
  return { store, limiter, lines }
}

it('a closed store finishes requests in flight without a warning', async () => {
  const { store, limiter, lines } = openStore()
  await store.ready()
  // Some are sent before the store is closed, others are still queued.
  const requests = Array.from({ length: 50 }, (_, i) => limiter.consume(`in-flight-${i}`))
  const closed = store.close()
  const decisions = await Promise.all(requests)
  await closed
  expect(decisions.map(({ source }) => source)).toEqual(decisions.map(() => 'store'))
  await expect(limiter.consume('later')).rejects.toMatchObject({ code: 'closed' })
  expect(lines).toEqual([])
})

it('a store that is closed while it connects finishes its first requests', async () => {
  const { store, limiter, lines } = openStore()
  const request = limiter.consume('first')
  const closed = store.close()
  expect(await request).toMatchObject({ source: 'store' })
  await closed
  expect(lines).toEqual([])
})

it('a store with a silent Redis closes once its requests have failed', async () => {
  const { store, limiter } = openStore()
  await store.ready()
  server.freeze()
  onTestFinished(() => server.thaw())
  const request = limiter.consume('silent').catch((error: unknown) => error)
  await store.close()
  expect(await request).toMatchObject({ reason: 'timeout' })
})
