// tier: integration
import { describe, expect, it } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { withRedis } from '../support/redis.ts'
import { testService } from '../support/service.ts'

const window = (limit: number) => [{ kind: 'slidingWindow', limit, window: '1h' }] as const

const limiters: Config['limiters'] = {
  api: { limits: [...window(10)], timeoutMs: 30_000 },
  other: { limits: [...window(10)] },
  plans: {
    limits: [...window(5)],
    plans: { big: { limits: [{ kind: 'tokenBucket', capacity: 50, refill: 1, interval: '1h' }] } },
    choosePlan: true,
  },
  zset: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1h', log: 'zset' }] },
  stream: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1h', log: 'stream' }] },
  held: { limits: [{ kind: 'concurrency', limit: 1, ttl: '1m' }] },
  devices: { limits: [{ kind: 'distinct', limit: 1, window: '1h' }] },
}

describe('a refund', () => {
  it('returns units of a charge once, on any instance', async () => {
    await using redis = await withRedis()
    const config = { limiters, store: { redis: { url: redis.url } } }
    await using one = await testService(config)
    await using other = await testService(config)
    const charge = await one.post('/v1/consume', { limiter: 'api', key: 'ann', cost: 5, refundable: true })
    expect(charge).toMatchObject({ status: 200, body: { allowed: true, remaining: 5 } })
    const { refundToken: token } = charge.body
    expect(await other.post('/v1/refund', { limiter: 'api', token, units: 3 })).toMatchObject({
      status: 200,
      body: { returned: 3 },
    })
    const again = await one.post('/v1/refund', { limiter: 'api', token, units: 2 })
    expect(again).toMatchObject({ status: 400, body: { code: 'invalid_reservation' } })
    expect((await one.post('/v1/peek', { limiter: 'api', key: 'ann' })).body.remaining).toBe(8)
  })

  it('returns all units by default, and never more than were charged', async () => {
    await using service = await testService({ limiters })
    const { body } = await service.post('/v1/consume', {
      limiter: 'api',
      key: 'ann',
      cost: 5,
      refundable: true,
    })
    const token = body.refundToken
    const much = await service.post('/v1/refund', { limiter: 'api', token, units: 6 })
    expect(much).toMatchObject({ status: 400, body: { code: 'invalid_refund' } })
    const all = await service.post('/v1/refund', { limiter: 'api', token })
    expect(all).toMatchObject({ status: 200, body: { returned: 5 } })
  })

  it('requires an allowed request: a denied one gets no token', async () => {
    await using service = await testService({ limiters })
    const { status, body } = await service.post('/v1/consume', {
      limiter: 'api',
      key: 'ann',
      cost: 11,
      refundable: true,
    })
    expect(status).toBe(429)
    expect(body).not.toHaveProperty('refundToken')
  })

  it.each(['zset', 'stream', 'held', 'devices'])(
    'fails for %s, which stores each request',
    async (limiter) => {
      await using service = await testService({ limiters })
      const { status, body } = await service.post('/v1/consume', { limiter, key: 'ann', refundable: true })
      expect(status).toBe(400)
      expect(body.detail).toContain('stores each request separately')
    },
  )
})

describe('a token', () => {
  it('works for its own limiter only', async () => {
    await using service = await testService({ limiters })
    const { body } = await service.post('/v1/reserve', { limiter: 'api', key: 'ann', estimate: 5 })
    for (const path of ['/v1/settle', '/v1/cancel', '/v1/refund']) {
      const more = path === '/v1/settle' ? { actual: 1 } : {}
      const answer = await service.post(path, { limiter: 'other', token: body.token, ...more })
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_reservation' } })
    }
  })

  it('fails if it is forged', async () => {
    await using service = await testService({ limiters })
    const { token } = (await service.post('/v1/reserve', { limiter: 'api', key: 'ann', estimate: 5 })).body
    const [own] = token.split('~')
    const forged = [
      'x',
      '~~',
      own,
      `${own}~-1~`,
      `${own}~1e3~`,
      `${own}~5~~`,
      `${own.slice(0, -4)}~5~`,
      `~5~`,
      `${Buffer.from('[1,"api",{"__proto__":1},1,"a.1",[],[]]').toString('base64url')}~1~`,
    ]
    for (const each of forged) {
      const { status } = await service.post('/v1/cancel', { limiter: 'api', token: each })
      expect([each, status]).toEqual([each, 400])
    }
    expect((await service.post('/v1/peek', { limiter: 'api', key: 'ann' })).body.remaining).toBe(5)
  })

  it('settles the plan that was charged', async () => {
    await using service = await testService({ limiters })
    const { body } = await service.post('/v1/reserve', {
      limiter: 'plans',
      key: 'ann',
      estimate: 20,
      plan: 'big',
    })
    const { token } = body
    const settled = await service.post('/v1/settle', { limiter: 'plans', token, actual: 25 })
    expect(settled).toMatchObject({ status: 200, body: { returned: 0, added: 5 } })
    const peeked = await service.post('/v1/peek', { limiter: 'plans', key: 'ann', plan: 'big' })
    expect(peeked.body.remaining).toBe(25)
  })

  it('for a removed plan of another kind leaves the current limits unchanged', async () => {
    await using service = await testService({ limiters })
    const reservation = { limiter: 'plans', key: 'ann', estimate: 20, plan: 'big' }
    const { token } = (await service.post('/v1/reserve', reservation)).body
    const config = { limiters: { plans: { limits: [...window(25)] } } }
    service.reload({ config, folder: '', files: [] })
    await service.post('/v1/consume', { limiter: 'plans', key: 'ann' })
    const cancelled = await service.post('/v1/cancel', { limiter: 'plans', token })
    expect(cancelled).toMatchObject({ status: 200, body: { returned: 0 } })
    const peeked = await service.post('/v1/peek', { limiter: 'plans', key: 'ann' })
    expect(peeked.body.remaining).toBe(24)
  })
})

describe('a reservation', () => {
  it('settles with a lower, a higher or no cost', async () => {
    await using service = await testService({ limiters })
    const reserve = async (estimate: number) =>
      (await service.post('/v1/reserve', { limiter: 'api', key: 'ann', estimate })).body.token
    const remaining = async () =>
      (await service.post('/v1/peek', { limiter: 'api', key: 'ann' })).body.remaining
    const less = await reserve(4)
    expect((await service.post('/v1/settle', { limiter: 'api', token: less, actual: 1 })).body).toEqual({
      returned: 3,
      added: 0,
    })
    expect(await remaining()).toBe(9)
    const more = await reserve(4)
    expect((await service.post('/v1/settle', { limiter: 'api', token: more, actual: 6 })).body).toEqual({
      returned: 0,
      added: 2,
    })
    expect(await remaining()).toBe(3)
    const none = await reserve(3)
    expect((await service.post('/v1/cancel', { limiter: 'api', token: none })).body).toEqual({
      returned: 3,
      added: 0,
    })
    expect(await remaining()).toBe(3)
  })

  it('gets no token if it is denied', async () => {
    await using service = await testService({ limiters })
    const denied = await service.post('/v1/reserve', { limiter: 'api', key: 'ann', estimate: 11 })
    expect(denied).toMatchObject({ status: 429, body: { allowed: false } })
    expect(denied.body).not.toHaveProperty('token')
  })
})
