// tier: system
import { expect, it, onTestFinished } from 'vitest'
import { until } from '../../../slidegate/test/support/until.ts'
import { useRedis } from '../../../slidegate/test/support/use-redis.ts'
import { temporaryFolder } from '../support/cli.ts'
import { startProcess } from '../support/service-process.ts'
import { promtool, Scraped } from './support.ts'

const { server } = await useRedis()

it('metrics of two workers are summed, and shared ones are reported once', async () => {
  const folder = temporaryFolder()
  onTestFinished(() => folder.remove())
  const limits = '[{ kind: slidingWindow, limit: 100, window: 1h, name: all }]'
  const file = folder.write(
    'slidegate.yaml',
    `store: { redis: { url: '${server.url}' } }\nlimiters: { api: { limits: ${limits}, timeoutMs: 30000 } }\n`,
  )
  await using service = await startProcess(['--config', file, '--workers', '2'])
  await service.says('all workers are ready')
  // A new connection per request: the primary alternates between workers.
  const scrape = async () => {
    const response = await fetch(`${service.url}/metrics`, { headers: { connection: 'close' } })
    return new Scraped(await response.text())
  }
  const asked = await Promise.all(
    Array.from({ length: 300 }, async (_, i) => {
      const response = await fetch(`${service.url}/v1/consume`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', connection: 'close' },
        body: JSON.stringify({ limiter: 'api', key: i % 3 === 0 ? 'ann' : 'bob' }),
      })
      return response.status
    }),
  )
  expect(asked.filter((status) => status === 200)).toHaveLength(200)
  const labels = { limiter: 'api', limit: 'all' }
  // Every worker returns the same values.
  for (let i = 0; i < 4; i++) {
    // A scrape doesn't wait for slow workers or a slow Redis.
    const scraped = await until('both workers and Redis to respond', async () => {
      const found = await scrape()
      const decided = found.values('slidegate_decisions_total', { limiter: 'api', source: 'store' })
      const isUp = Object.values(found.values('slidegate_redis_up')).join() === '1'
      return isUp && decided.allowed === 200 && decided.denied === 100 && found
    })
    expect(scraped.value('slidegate_limit_denials_total', labels)).toBe(100)
    expect(scraped.value('slidegate_limit_utilization_ratio_count', labels)).toBe(300)
    expect(scraped.value('slidegate_limit_utilization_ratio_bucket', { ...labels, le: '+Inf' })).toBe(300)
    expect(scraped.value('slidegate_limit_utilization_ratio_bucket', { ...labels, le: '0.5' })).toBe(100)
    expect(scraped.value('slidegate_store_call_requests_sum')).toBeGreaterThanOrEqual(300)
    expect(scraped.values('slidegate_redis_up')).toEqual({ [`127.0.0.1:${server.port}`]: 1 })
    const used = scraped.value('slidegate_redis_memory_used_bytes', { node: `127.0.0.1:${server.port}` })
    expect(used).toBeGreaterThan(100_000)
    expect(used).toBeLessThan(20_000_000)
    expect(scraped.value('slidegate_store_down', { limiter: 'api' })).toBe(0)
    expect(scraped.value('slidegate_config_valid')).toBe(1)
    expect(scraped.value('slidegate_instances')).toBe(1)
    expect(Object.values(scraped.values('slidegate_build_info'))).toEqual([1])
    expect(scraped.value('slidegate_distinct_callers', { limiter: 'api' })).toBe(2)
    expect(scraped.value('slidegate_top_caller_ratio', { limiter: 'api' })).toBeCloseTo(2 / 3)
    expect(await promtool(scraped.text)).toBe('')
  }
  // Another instance on the same store is included, but only with its own decisions.
  await using other = await startProcess(['--config', file])
  const told = await until('the other instance', async () => {
    const scraped = await scrape()
    const denied = scraped.value('slidegate_limit_denials_total', labels)
    return scraped.value('slidegate_instances') === 2 && denied === 100 && scraped
  })
  expect(told.value('slidegate_limit_utilization_ratio_count', labels)).toBe(300)
  const text = await (await fetch(`${other.url}/metrics`)).text()
  expect(new Scraped(text).value('slidegate_limit_denials_total', labels)).toBeUndefined()
})
