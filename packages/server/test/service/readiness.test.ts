// tier: integration
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import type { Config } from '../../src/config/schema.ts'
import { type TestService, testService } from '../support/service.ts'

const limits: Config['limiters'][string]['limits'] = [{ kind: 'slidingWindow', limit: 10, window: '1h' }]
const limiters: Config['limiters'] = {
  api: { limits },
  login: { limits, onStoreError: 'deny' },
  search: { limits, onStoreError: 'allow' },
  web: { limits, onStoreError: 'local' },
}
const READ = 'a-token-of-a-reader'
const NARROW = 'a-token-of-a-narrow-reader'
const CHECK = 'a-token-of-a-checker'
const auth: Config['auth'] = {
  tokens: [
    { name: 'reader', role: 'read', token: READ },
    { name: 'narrow', role: 'read', token: NARROW, limiters: ['web'] },
    { name: 'checker', role: 'check', token: CHECK },
  ],
}

describe('/readyz while the store is down', () => {
  let service: TestService
  let store: NonNullable<Config['store']>
  beforeAll(async () => {
    const redis = await startRedis()
    store = { redis: { url: redis.url } }
    service = await testService({ limiters, store })
    const { status, body } = await service.get('/readyz')
    expect([status, body]).toEqual([
      200,
      { ready: true, degraded: false, reasons: [], config: { valid: true } },
    ])
    await redis.stop()
    await until('the outage to be noticed', async () => (await service.get('/readyz')).body.degraded)
  })
  afterAll(() => service[Symbol.asyncDispose]())

  async function readyWith(config: Partial<Config>, headers = {}) {
    service.reload({ config: { limiters, store, ...config }, folder: '/', files: [] })
    const { status, body } = await service.get('/readyz', headers)
    expect(body.ready).toBe(status === 200)
    return { status, body }
  }

  it('returns 200 with degraded and the policy of each limiter', async () => {
    expect(await readyWith({})).toEqual({
      status: 200,
      body: {
        ready: true,
        degraded: true,
        reasons: ["the store doesn't respond"],
        limiters: { api: 'throw', login: 'deny', search: 'allow', web: 'local' },
        config: { valid: true },
      },
    })
  })

  it('returns 503 with readiness: store if a limiter throws or denies', async () => {
    const { login, search, web, api } = limiters as Required<typeof limiters>
    const statusWith = async (some: Config['limiters']) =>
      (await readyWith({ limiters: some, readiness: 'store' })).status
    expect(await statusWith({ login: login!, web: web! })).toBe(503)
    expect(await statusWith({ api: api!, web: web! })).toBe(503)
    expect(await statusWith({ search: search!, web: web! })).toBe(200)
    expect((await readyWith({ readiness: 'always' })).status).toBe(200)
  })

  it('lists limiters only to callers that may see them', async () => {
    const namesFor = async (token?: string) => {
      const { status, body } = await readyWith({ auth }, { authorization: token ? `Bearer ${token}` : '' })
      expect([status, body.degraded]).toEqual([200, true])
      return Object.keys(body.limiters)
    }
    expect(await namesFor(READ)).toEqual(['api', 'login', 'search', 'web'])
    expect(await namesFor(NARROW)).toEqual(['web'])
    expect(await namesFor(CHECK)).toEqual([])
    expect(await namesFor()).toEqual([])
    expect(await namesFor('a-token-of-nobody')).toEqual([])
  })
})
