// tier: integration
import { expect, it } from 'vitest'
import { type TestRedis, withRedis } from '../support/redis.ts'
import { testService } from '../support/service.ts'

const REQUESTS = 600
const CONNECTIONS = 60

/** Returns the number of script calls so far, by any command. */
async function scriptCalls({ client }: TestRedis): Promise<number> {
  const stats = await client.info('commandstats')
  const calls = stats.matchAll(/^cmdstat_(?:evalsha|eval|fcall)(?:_ro)?:calls=(\d+)/gm)
  return Array.from(calls, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0)
}

it('requests that arrive together share calls of the store', async () => {
  await using redis = await withRedis()
  await using service = await testService({
    limiters: {
      api: { limits: [{ kind: 'slidingWindow', limit: 1_000_000, window: '1h' }], timeoutMs: 30_000 },
    },
    store: { redis: { url: redis.url } },
  })
  const ask = (key: string) => service.post('/v1/consume', { limiter: 'api', key })
  await ask('first')
  const before = await scriptCalls(redis)
  let sent = 0
  const connection = async () => {
    while (sent < REQUESTS) expect((await ask(`key-${sent++ % 50}`)).status).toBe(200)
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, connection))
  const calls = (await scriptCalls(redis)) - before
  expect(calls).toBeGreaterThan(0)
  expect(calls).toBeLessThan(REQUESTS / 2)
  // Sequential requests each need their own call.
  const between = await scriptCalls(redis)
  for (let i = 0; i < 10; i++) await ask('alone')
  expect((await scriptCalls(redis)) - between).toBeGreaterThanOrEqual(10)
  console.info(`${REQUESTS} requests in ${calls} calls of the script`)
})
