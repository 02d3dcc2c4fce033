// tier: integration
import { expect, it } from 'vitest'
import { withRedis } from '../support/redis.ts'
import { testService } from '../support/service.ts'

it('reads for people succeed while Redis is too slow for requests, and leave the breaker of requests alone', async () => {
  await using redis = await withRedis()
  const limits = [{ kind: 'slidingWindow' as const, limit: 9, window: '1h' }]
  const limiters = { api: { limits, timeoutMs: 50 } }
  await using service = await testService({ limiters, store: { redis: { url: redis.url } } })
  const body = { limiter: 'api', key: 'ann' }
  await expect.poll(async () => (await service.post('/v1/consume', body)).status).toBe(200)
  await expect.poll(async () => (await service.post('/v1/admin/block', body)).status).toBe(200)
  await redis.client.call('CLIENT', 'PAUSE', '600', 'ALL')
  const [request, explained, found, bans] = await Promise.all([
    service.post('/v1/consume', body),
    service.post('/v1/explain', body),
    service.get('/v1/admin/keys?key=ann'),
    service.get('/v1/admin/bans'),
  ])
  expect([request.status, request.body.code]).toEqual([503, 'store_timeout'])
  expect(explained).toMatchObject({ status: 200, body: { limits: [{ limit: 9 }] } })
  expect(found).toMatchObject({ status: 200, body: { found: [{ limiter: 'api', blockedUntilMs: null }] } })
  expect(bans).toMatchObject({ status: 200, body: { bans: [{ limiter: 'api', key: 'ann' }] } })
  expect(service.service.get('api').limiter.stats().isStoreDown).toBe(false)
})
