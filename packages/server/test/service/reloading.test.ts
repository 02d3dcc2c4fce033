// tier: system
import { writeFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { temporaryFolder } from '../support/cli.ts'
import { startFlow } from '../support/flow.ts'
import { startProcess } from '../support/service-process.ts'

const RELOADS = 100
const KEYS = 10

const folder = temporaryFolder()
const configOf = (limit: number) =>
  JSON.stringify({
    limiters: {
      api: { timeoutMs: 10_000, limits: [{ kind: 'slidingWindow', limit, window: '1h', precision: '1s' }] },
    },
  })

let redis: RedisServer | undefined
afterEach(() => redis?.stop())

describe.each(['memory', 'Redis'])('reloads under load, in %s', (store) => {
  it('fail no request and keep all usage, and a broken file changes nothing', async () => {
    redis = store === 'Redis' ? await startRedis() : undefined
    const file = folder.write(`${store}.json`, configOf(1_000_000))
    await using service = await startProcess(['--config', file], redis && { REDIS_URL: redis.url })
    const statuses = new Map<number, number>()
    const flow = startFlow({
      url: service.url,
      width: 16,
      most: 500_000,
      body: (number) => ({ limiter: 'api', key: `key-${number % KEYS}` }),
      answered: ({ status }) => statuses.set(status, (statuses.get(status) ?? 0) + 1),
    })
    const reload = async (text: string, said: string, times: number) => {
      writeFileSync(file, text)
      service.kill('SIGHUP')
      await service.says(said, times)
    }
    for (let i = 1; i <= RELOADS; i++) {
      await reload(configOf(1_000_000 + i), 'the configuration was applied', i)
      if (i % 10 === 0)
        await reload('{"limiters": {', 'the configuration is invalid: the previous one stays active', i / 10)
    }
    flow.stop()
    const { answered, errors } = await flow.done
    expect(errors).toEqual([])
    expect([...statuses.keys()]).toEqual([200])
    let used = 0
    for (let i = 0; i < KEYS; i++) {
      const response = await fetch(`${service.url}/v1/explain`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ limiter: 'api', key: `key-${i}` }),
      })
      const { limits } = (await response.json()) as { limits: { used: number; limit: number }[] }
      expect(limits[0]!.limit).toBe(1_000_000 + RELOADS)
      used += limits[0]!.used
    }
    expect(used).toBe(answered)
  })
})
