// tier: integration
import { expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import type { Config, LimiterConfig } from '../../src/config/schema.ts'
import { type AdminService, adminService, forEachStore } from './support.ts'

const timeoutMs = 30_000
const TOKENS = { admin: 'a-token-for-everything', api: 'a-token-for-api-only' } as const

const LIMITERS: Config['limiters'] = {
  api: {
    limits: [
      { kind: 'slidingWindow', limit: 2, window: '1h', name: 'hourly' },
      { kind: 'slidingWindow', limit: 100, window: '1d', name: 'daily' },
    ],
    ban: { after: 2, within: '1h', for: '10m' },
    timeoutMs,
  },
  login: {
    dimensions: {
      user: [{ kind: 'slidingWindow', limit: 5, window: '1h', name: 'tries' }],
      address: [{ kind: 'slidingWindow', limit: 50, window: '1h', name: 'tries' }],
    },
    timeoutMs,
  },
  search: { limits: [{ kind: 'tokenBucket', capacity: 10, refill: 1, interval: '1h' }], timeoutMs },
  declared: {
    limits: [{ kind: 'slidingWindow', limit: 5, window: '1h' }],
    overrides: [{ key: 'user:42', limits: [{ kind: 'slidingWindow', limit: 50, window: '1h' }] }],
    timeoutMs,
  },
  secretive: {
    limits: [{ kind: 'slidingWindow', limit: 5, window: '1h' }],
    hashKeys: 'a secret of sixteen bytes',
    timeoutMs,
  },
}

const configOn = (store: NonNullable<Config['store']>, limiters = LIMITERS): Config => ({
  ...{ limiters, store },
  auth: {
    tokens: [
      { name: 'ops', role: 'admin', token: TOKENS.admin },
      { name: 'api-team', role: 'read', token: TOKENS.api, limiters: ['api'] },
    ],
  },
})

const post = (service: AdminService, path: string, body: object) =>
  service.ask('POST', path, body, TOKENS.admin)

async function find(service: AdminService, key: string, token: string = TOKENS.admin) {
  const { status, body } = await service.ask(
    'GET',
    `/v1/admin/keys?key=${encodeURIComponent(key)}`,
    undefined,
    token,
  )
  expect(status).toBe(200)
  return body as { found: Record<string, unknown>[]; checked: number; isComplete: boolean }
}

forEachStore((store) => {
  it('finds the limiters and dimensions that know a key, and charges nothing', async () => {
    await using service = await adminService(configOn(store()))
    const key = 'user:42'
    await post(service, '/v1/consume', { limiter: 'api', key })
    await post(service, '/v1/consume', { limiter: 'login', key: { user: key, address: '192.0.2.7' } })
    await post(service, '/v1/consume', { limiter: 'secretive', key })
    await post(service, '/v1/admin/block', { limiter: 'search', key })
    const expected = {
      found: [
        { limiter: 'api', allowed: true, fullest: { name: 'hourly', used: 1, limit: 2 } },
        {
          ...{ limiter: 'login', dimension: 'user', allowed: true },
          fullest: { name: 'user.tries', used: 1, limit: 5 },
        },
        { limiter: 'search', allowed: false, blockedUntilMs: null },
        { limiter: 'declared', allowed: true, override: 'configured' },
        { limiter: 'secretive', allowed: true, fullest: { name: '5-per-1h', used: 1, limit: 5 } },
      ],
      ...{ checked: 6, isComplete: true },
    }
    expect(await find(service, key)).toEqual(expected)
    expect(await find(service, key)).toEqual(expected)
    expect((await find(service, 'another')).found).toEqual([])
    expect(await find(service, key, TOKENS.api)).toMatchObject({ found: [{ limiter: 'api' }], checked: 1 })
  })

  it('shows bans, overrides, and when the key was last denied', async () => {
    await using service = await adminService(configOn(store()))
    const beforeMs = Date.now() - 60_000
    for (let i = 0; i < 3; i++) await post(service, '/v1/consume', { limiter: 'api', key: 'ann' })
    const [counted] = (await find(service, 'ann')).found
    expect(counted).toMatchObject({ allowed: false, bans: 0, denials: 1 })
    expect(counted!.lastDeniedAtMs).toBeGreaterThan(beforeMs)
    await post(service, '/v1/consume', { limiter: 'api', key: 'ann' })
    const body = { limiter: 'api', key: 'ann', limits: { hourly: { limit: 50 } } }
    await service.ask('PUT', '/v1/admin/overrides', body, TOKENS.admin)
    const [banned] = (await find(service, 'ann')).found
    expect(banned).toMatchObject({
      ...{ limiter: 'api', allowed: false, bans: 1, denials: 0, override: 'limits' },
      fullest: { name: 'hourly', used: 2, limit: 50 },
    })
    expect(banned!.bannedUntilMs).toBeGreaterThan(Date.now())
  })

  it('rejects an empty and a missing key', async () => {
    await using service = await adminService(configOn(store()))
    for (const query of ['', '?key=', '?key=a&limiter=api']) {
      const answer = await service.ask('GET', `/v1/admin/keys${query}`, undefined, TOKENS.admin)
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    }
  })
})

it('finds a key with 200 limiters, in 4 rounds of calls', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const limit: LimiterConfig = {
    limits: [{ kind: 'slidingWindow', limit: 5, window: '1h' }],
    timeoutMs,
  }
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`limiter-${i}`, limit]))
  await using service = await adminService(configOn({ redis: { url: server.url } }, many))
  await post(service, '/v1/consume', { limiter: 'limiter-150', key: 'ann' })
  const calls = () =>
    (service.running.service.store as unknown as { stats(): { calls: number } }).stats().calls
  const before = calls()
  expect(await find(service, 'ann')).toMatchObject({ found: [{ limiter: 'limiter-150' }], checked: 200 })
  // 25 full calls. The last ops of a round may be divided between two.
  const made = calls() - before
  expect(made).toBeGreaterThanOrEqual(25)
  expect(made).toBeLessThanOrEqual(29)
})

it('learns from other instances when a key was last denied', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const config = configOn({ redis: { url: server.url } })
  await using one = await adminService(config)
  await using two = await adminService(config)
  for (let i = 0; i < 3; i++) await post(one, '/v1/consume', { limiter: 'api', key: 'ann' })
  await expect
    .poll(async () => (await find(two, 'ann')).found)
    .toMatchObject([{ limiter: 'api', lastDeniedAtMs: expect.any(Number) }])
})

it('reports a limiter whose state it cannot read, beside the others', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  await using service = await adminService(configOn({ redis: { url: server.url } }))
  await post(service, '/v1/consume', { limiter: 'api', key: 'ann' })
  await post(service, '/v1/consume', { limiter: 'search', key: 'ann' })
  const { Redis } = await import('ioredis')
  const redis = new Redis(server.url)
  onTestFinished(() => redis.disconnect())
  const [key] = await redis.keys('slidegate:*:search:ann:*')
  await redis.set(key!, 'damaged')
  expect((await find(service, 'ann')).found).toMatchObject([
    { limiter: 'api', allowed: true },
    { limiter: 'search', problem: 'store_invalid_state' },
  ])
})
