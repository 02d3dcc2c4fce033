// tier: integration
import { describe, expect, it } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { withRedis } from '../support/redis.ts'
import { testService } from '../support/service.ts'

const window = (limit: number) => [{ kind: 'slidingWindow', limit, window: '1h' }] as const

/** Long enough for a busy machine. */
const timeoutMs = 30_000

const config: Config = {
  limiters: {
    api: { limits: [...window(2)], timeoutMs },
    login: { limits: [...window(3)], timeoutMs },
    both: { dimensions: { user: [...window(2)], address: [...window(1)] } },
    banning: {
      ...{ dimensions: { user: [...window(1)], address: [...window(50)] }, timeoutMs },
      ban: { after: 1, within: '1h', for: '1m' },
    },
    audited: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1h', log: 'zset' }], timeoutMs },
    devices: { limits: [{ kind: 'distinct', limit: 1, window: '1h' }] },
    plans: { limits: [...window(1)], plans: { big: { limits: [...window(5)] } }, choosePlan: true },
    fixed: { limits: [...window(1)], plans: { big: { limits: [...window(5)] } } },
    shadowed: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1h', shadow: true }] },
  },
}

describe('one request', () => {
  it('gets the decision in the body and in the headers', async () => {
    await using service = await testService(config)
    const allowed = await service.post('/v1/consume', { limiter: 'api', key: 'ann', cost: 2 })
    expect(allowed).toMatchObject({
      status: 200,
      body: { limiter: 'api', allowed: true, cost: 2, remaining: 0, source: 'store' },
    })
    expect(allowed.headers.get('ratelimit-policy')).toBe('"2-per-1h";q=2;w=3600')
    expect(allowed.headers.get('ratelimit')).toMatch(/^"2-per-1h";r=0;t=3[56]\d\d$/)
    expect(allowed.headers.get('retry-after')).toBeNull()
    const denied = await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
    expect(denied).toMatchObject({ status: 429, body: { allowed: false, deniedBy: ['2-per-1h'] } })
    expect(Number(denied.headers.get('retry-after'))).toBe(Math.ceil(denied.body.retryAfterMs / 1000))
  })

  it('gets no Retry-After if its cost exceeds the limit', async () => {
    await using service = await testService(config)
    const denied = await service.post('/v1/consume', { limiter: 'api', key: 'ann', cost: 3 })
    expect(denied).toMatchObject({ status: 429, body: { retryAfterMs: null } })
    expect(denied.headers.get('retry-after')).toBeNull()
  })

  it('gets remaining null if no limit is enforced', async () => {
    await using service = await testService(config)
    const answer = await service.post('/v1/consume', { limiter: 'shadowed', key: 'ann' })
    expect(answer).toMatchObject({ status: 200, body: { remaining: null } })
    expect(answer.headers.get('ratelimit')).toBeNull()
  })

  it('requires a key or null for every dimension', async () => {
    await using service = await testService(config)
    const ask = (key: object) => service.post('/v1/consume', { limiter: 'both', key })
    expect((await ask({ user: 'ann', address: '192.0.2.1' })).status).toBe(200)
    expect((await ask({ user: 'ann', address: null })).status).toBe(200)
    expect(await ask({ user: 'ann', address: '192.0.2.2' })).toMatchObject({
      status: 429,
      body: { deniedBy: ['user.2-per-1h'] },
    })
    expect(await ask({ user: 'ann' })).toMatchObject({ status: 400, body: { code: 'invalid_key' } })
  })

  it('during a ban gets the name of the ban, the state of each limit, and the longest wait', async () => {
    await using service = await testService(config)
    const ask = () =>
      service.post('/v1/consume', { limiter: 'banning', key: { user: 'ann', address: '192.0.2.1' } })
    for (let i = 0; i < 2; i++) await ask()
    const banned = await ask()
    expect(banned).toMatchObject({
      status: 429,
      body: {
        ...{ remaining: 0, deniedBy: ['user.ban', 'user.1-per-1h'], blockedMs: expect.any(Number) },
        limits: [
          { allowed: false, remaining: 0 },
          { allowed: true, remaining: 49, retryAfterMs: 0 },
        ],
      },
    })
    expect(banned.body.blockedMs).toBeLessThanOrEqual(60_000)
    expect(Number(banned.headers.get('retry-after'))).toBeGreaterThan(3000)
    expect(banned.headers.get('ratelimit')).toMatch(
      /^"user.ban";r=0;t=\d\d, "user.1-per-1h";r=0;t=3[56]\d\d, "address.50-per-1h";r=49$/,
    )
    const { body } = await service.post('/v1/explain', { limiter: 'banning', key: { user: 'ann' } })
    expect(body.deniedBy).toEqual(banned.body.deniedBy)
  })

  it('with a repeated id is charged once', async () => {
    await using service = await testService(config)
    const ask = (requestId: string) =>
      service.post('/v1/consume', { limiter: 'audited', key: 'ann', requestId })
    expect((await ask('order-1')).status).toBe(200)
    expect((await ask('order-1')).status).toBe(200)
    expect((await ask('order-2')).status).toBe(429)
  })

  it('fails if it repeats an id with a higher cost, and the others in its call are not charged', async () => {
    await using service = await testService(config)
    const greedy = { limiter: 'audited', key: 'ann', requestId: 'order-1', cost: 2 }
    expect((await service.post('/v1/consume', { ...greedy, cost: 1 })).body).toMatchObject({ cost: 1 })
    const refused = { status: 422, body: { status: 422, code: 'reused_request_id' } }
    expect(await service.post('/v1/consume', greedy)).toMatchObject(refused)
    const many = { requests: [{ limiter: 'api', key: 'ann' }, greedy] }
    expect(await service.post('/v1/consume', many)).toMatchObject(refused)
    const left = await service.post('/v1/peek', { limiter: 'api', key: 'ann' })
    expect(left.body).toMatchObject({ remaining: 2, resetAfterMs: 0 })
  })

  it('requires a value if the limiter counts values', async () => {
    await using service = await testService(config)
    const ask = (value?: string) => service.post('/v1/consume', { limiter: 'devices', key: 'ann', value })
    expect((await ask('phone')).status).toBe(200)
    expect((await ask('phone')).status).toBe(200)
    expect((await ask('tablet')).status).toBe(429)
    expect(await ask()).toMatchObject({ status: 400, body: { code: 'invalid_value' } })
  })

  it('chooses a plan only if the limiter allows it', async () => {
    await using service = await testService(config)
    const ask = (limiter: string, plan: string) =>
      service.post('/v1/consume', { limiter, key: 'ann', cost: 5, plan })
    expect((await ask('plans', 'big')).status).toBe(200)
    expect(await ask('plans', 'huge')).toMatchObject({ status: 400, body: { code: 'unknown_plan' } })
    expect(await ask('fixed', 'big')).toMatchObject({ status: 403, body: { code: 'plan_not_allowed' } })
    expect(await ask('plans', 'constructor')).toMatchObject({ status: 400, body: { code: 'unknown_plan' } })
  })
})

describe('many requests', () => {
  it('get decisions in order, each from its own limiter', async () => {
    await using service = await testService(config)
    const answer = await service.post('/v1/consume', {
      limiter: 'api',
      requests: [{ key: 'ann' }, { limiter: 'login', key: 'ann', cost: 3 }, { key: 'ann' }],
    })
    expect(answer.status).toBe(200)
    expect(answer.body.decisions).toMatchObject([
      { limiter: 'api', allowed: true, remaining: 1 },
      { limiter: 'login', allowed: true, remaining: 0 },
      { limiter: 'api', allowed: true, remaining: 0 },
    ])
    const next = await service.post('/v1/consume', {
      requests: [
        { limiter: 'api', key: 'bob' },
        { limiter: 'login', key: 'ann' },
      ],
    })
    expect(next.status).toBe(429)
    expect(next.body.decisions).toMatchObject([{ allowed: true }, { allowed: false }])
  })

  it('charge nothing if one of them is invalid', async () => {
    await using service = await testService(config)
    const wrong = [
      { limiter: 'both', key: 'bob' },
      { limiter: 'login', key: '\ud800' },
      { limiter: 'devices', key: 'bob' },
      { limiter: 'login', key: 'bob', requestId: 'order-1' },
    ]
    for (const request of wrong) {
      const { status, body } = await service.post('/v1/consume', {
        requests: [{ limiter: 'api', key: 'ann' }, request],
      })
      expect(status).toBe(400)
      expect(body.detail).toMatch(/^requests\[1\]: /)
    }
    expect(await service.post('/v1/consume', { requests: [{ key: 'ann' }] })).toMatchObject({
      status: 400,
      body: { detail: 'requests[0] has no limiter, and neither does the body' },
    })
    const metrics = await service.get('/metrics')
    expect(metrics.body).not.toMatch(/^slidegate_decisions_total\{.*\} [1-9]/m)
  })

  it('fail if they use more than four limits per caps.requestsPerCall', async () => {
    const limits = Array.from({ length: 5 }, (_, i) => ({
      ...{ kind: 'fixedWindow' as const, limit: 9, window: 60_000 + i, name: `l${i}` },
    }))
    await using service = await testService({ limiters: { api: { limits, timeoutMs: 30_000 } } })
    const ask = async (length: number) => {
      const requests = Array.from({ length }, (_, i) => ({ key: `k${i}` }))
      const { status, body } = await service.post('/v1/consume', { limiter: 'api', requests })
      return [status, body.code]
    }
    expect(await ask(800)).toEqual([200, undefined])
    expect(await ask(801)).toEqual([413, 'batch_too_large'])
  })

  it('fail if they cost more than 10,000 units of limits that store each unit', async () => {
    const zset = { kind: 'slidingWindow' as const, limit: 10_000, window: 60_000, log: 'zset' as const }
    const common = { timeoutMs: 30_000 }
    await using service = await testService({
      limiters: {
        zset: { limits: [zset], ...common },
        plans: {
          limits: [{ kind: 'fixedWindow', limit: 9, window: 60_000 }],
          plans: { pro: { limits: [{ kind: 'concurrency', limit: 10_000, ttl: 60_000 }] } },
          ...common,
        },
        bucket: { limits: [{ kind: 'tokenBucket', capacity: 20_000, refill: 1, interval: 1000 }], ...common },
      },
    })
    const ask = async (limiter: string, costs: readonly number[]) => {
      const requestId = limiter === 'bucket' ? {} : { requestId: 'r' }
      const requests = costs.map((cost, i) => ({ key: `${costs.length}.${i}`, cost, ...requestId }))
      const { status, body } = await service.post('/v1/consume', { limiter, requests })
      return [status, body.code]
    }
    expect(await ask('zset', [10_000])).toEqual([200, undefined])
    expect(await ask('zset', [5000, 4999, 1])).toEqual([200, undefined])
    expect(await ask('zset', [5000, 5001])).toEqual([413, 'batch_too_large'])
    // A cost above the limit is denied without storing anything.
    expect(await ask('zset', [1, 20_000])).toEqual([429, undefined])
    expect(await ask('plans', [5000, 5001])).toEqual([413, 'batch_too_large'])
    expect(await ask('bucket', [10_000, 10_000])).toEqual([200, undefined])
  })

  it('fail if they outnumber caps.requestsPerCall', async () => {
    await using service = await testService({ ...config, caps: { requestsPerCall: 2 } })
    const ask = (length: number) =>
      service.post('/v1/consume', {
        limiter: 'login',
        requests: Array.from({ length }, () => ({ key: 'ann' })),
      })
    expect((await ask(2)).status).toBe(200)
    expect(await ask(3)).toMatchObject({ status: 413, body: { code: 'batch_too_large' } })
    expect(await ask(0)).toMatchObject({ status: 200, body: { decisions: [] } })
  })

  it('leave nothing charged if the store fails for some of them', async () => {
    await using redis = await withRedis()
    await using service = await testService({ ...config, store: { redis: { url: redis.url } } })
    // Damages the stored state of one key of one limiter.
    await service.post('/v1/consume', { limiter: 'login', key: 'bob' })
    const [damaged] = (await redis.client.keys('*')).filter((key) => key.includes('bob'))
    await redis.client.set(damaged!, 'damaged')
    const failed = await service.post('/v1/consume', {
      requests: [
        { limiter: 'api', key: 'ann' },
        { limiter: 'login', key: 'bob' },
        { limiter: 'audited', key: 'ann', requestId: 'order-1' },
      ],
    })
    expect(failed).toMatchObject({
      status: 503,
      body: { code: 'store_invalid_state', detail: 'the stored state of this key is damaged' },
    })
    expect(failed.headers.get('retry-after')).toBe('1')
    const left = await service.post('/v1/peek', { limiter: 'api', key: 'ann' })
    expect(left.body).toMatchObject({ remaining: 2, resetAfterMs: 0 })
    // A request with an id can be retried, so its charge stays.
    const kept = await service.post('/v1/peek', { limiter: 'audited', key: 'ann' })
    expect(kept.body).toMatchObject({ remaining: 0 })
  })
})

it('peek and explain report the state of a key without charging it', async () => {
  await using service = await testService(config)
  await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
  for (let i = 0; i < 3; i++) {
    const peeked = await service.post('/v1/peek', { limiter: 'api', key: 'ann' })
    expect(peeked).toMatchObject({ status: 200, body: { allowed: true, remaining: 1 } })
    expect(peeked.headers.get('ratelimit')).toContain('r=1')
  }
  const peeked = await service.post('/v1/peek', { limiter: 'api', key: 'ann', cost: 2 })
  expect(peeked).toMatchObject({ status: 200, body: { allowed: false } })
  const { limiter } = service.service.get('api')
  await limiter.overrides.set('ann', 'exempt')
  const { body } = await service.post('/v1/explain', { limiter: 'api', key: 'ann' })
  expect(body).toMatchObject({
    limiter: 'api',
    allowed: true,
    limits: [{ name: '2-per-1h', used: 1, frees: [{ units: 1 }] }],
    overrides: [{ key: 'ann', exempt: true }],
  })
  expect(body.limits[0]).not.toHaveProperty('charges')
  const charged = await service.post('/v1/explain', { limiter: 'api', key: 'ann', charges: true })
  expect(charged.body.limits).toMatchObject([
    {
      charges: [{ atMs: charged.body.limits[0].oldestAtMs, units: 1 }],
      olderUnits: 0,
      declared: { kind: 'slidingWindow', limit: 2, window: 3_600_000 },
    },
  ])
  const some = await service.post('/v1/explain', { limiter: 'both', key: { user: 'ann' } })
  expect(some).toMatchObject({ status: 200, body: { limits: [{ name: 'user.2-per-1h' }] } })
})
