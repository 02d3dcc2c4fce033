import { expect, it } from 'vitest'
import { testService } from '../support/service.ts'

it('a service returns decisions with their source', async () => {
  await using service = await testService({
    limiters: { api: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1m' }] } },
  })
  const first = await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
  expect(first).toMatchObject({ status: 200, body: { allowed: true, remaining: 0, source: 'store' } })
  const second = await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
  expect(second).toMatchObject({ status: 429, body: { allowed: false, deniedBy: ['1-per-1m'] } })
})
