// tier: system
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../../slidegate/test/support/redis-server.ts'
import type { Config, StoreConfig } from '../../src/config/schema.ts'
import { Scraped } from '../metrics/support.ts'
import { testService } from '../support/service.ts'
import {
  type Behind,
  CONNECTIONS,
  type Gateway,
  startCaddy,
  startNginx,
  startUpstream,
  wrk,
} from './support/programs.ts'

const TOKEN = 'a-token-of-the-gateway'
const READ_TOKEN = 'a-token-of-the-observer'
const LIMIT = 200

function configOf(store: StoreConfig): Config {
  return {
    store,
    limiters: {
      keys: { limits: [{ kind: 'slidingWindow', limit: LIMIT, window: '1h' }], timeoutMs: 10_000 },
      logins: { limits: [{ kind: 'slidingWindow', limit: 2, window: '1h' }] },
      costly: { limits: [{ kind: 'slidingWindow', limit: 10, window: '1h' }] },
    },
    forwardAuth: {
      rules: [
        { when: { method: 'OPTIONS' }, allow: true },
        { when: { path: '/login', method: 'POST' }, limiter: 'logins' },
        { when: { path: '/free/*' }, allow: true },
        { when: { path: '/keys/*' }, limiter: 'keys', key: '{header:x-api-key}' },
        { when: { path: '/costly', host: 'shop.example' }, limiter: 'costly', cost: 4 },
        { when: { path: '/forbidden' }, allow: true },
      ],
    },
    auth: {
      tokens: [
        { name: 'gateway', role: 'check', token: TOKEN },
        { name: 'observer', role: 'read', token: READ_TOKEN },
      ],
    },
  }
}

const GATEWAYS: Readonly<Record<string, (behind: Behind) => Promise<Gateway>>> = {
  nginx: startNginx,
  caddy: startCaddy,
}

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const STORES: Readonly<Record<string, () => StoreConfig>> = {
  memory: () => ({ memory: {} }),
  redis: () => ({ redis: { url: redis.url } }),
}

describe.each(Object.entries(GATEWAYS))('behind %s', (name, start) => {
  async function world(store: StoreConfig = { memory: {} }, changes?: Behind['changes']) {
    const service = await testService(configOf(store))
    const upstream = await startUpstream()
    const slidegate = new URL(service.httpUrl).host
    const gateway = await start({
      slidegate,
      upstream: upstream.address,
      token: TOKEN,
      ...(changes && { changes }),
    })
    // Forgets the readiness request that was sent before.
    ;(upstream.served as unknown[]).length = 0
    return {
      service,
      upstream,
      ask: (path: string, init?: RequestInit) => fetch(gateway.url + path, init),
      gateway,
      async decisions(outcome: 'allowed' | 'denied') {
        const { body } = await service.get('/metrics', { authorization: `Bearer ${READ_TOKEN}` })
        const labels = { limiter: 'keys', outcome, source: 'store' }
        return new Scraped(body).value('slidegate_decisions_total', labels) ?? 0
      },
      async [Symbol.asyncDispose]() {
        await gateway[Symbol.asyncDispose]()
        await upstream[Symbol.asyncDispose]()
        await service[Symbol.asyncDispose]()
      },
    }
  }

  test.each(Object.entries(STORES))(
    'exactly the limit passes under load, with state in %s',
    async (kind, store) => {
      await using all = await world(store())
      // Redis keeps state across gateways, so each has a different key.
      const headers = { 'X-Api-Key': `${name}-${kind}` }
      const path = '/keys/of-ann?page=1'
      const load = await wrk(all.gateway.url + path, headers, async () => {
        const denied = await all.decisions('denied')
        return denied > 10 * LIMIT && all.upstream.served.length >= LIMIT
      })

      const allowed = await all.decisions('allowed')
      expect(allowed).toBe(LIMIT)
      expect(all.upstream.served.map(({ url }) => url)).toEqual(Array(LIMIT).fill(path))
      expect(load.requests).toBeGreaterThan(2 * LIMIT)
      // Requests in flight when wrk stopped aren't in its count.
      const { 200: admitted = 0, 429: denied = 0, ...others } = load.statuses
      expect(others).toEqual({})
      expect(admitted).toBeLessThanOrEqual(LIMIT)
      expect(admitted).toBeGreaterThanOrEqual(LIMIT - CONNECTIONS)
      expect(denied).toBe(load.requests - admitted)
      expect(load.untold).toBe(0)
    },
  )

  test('a response has the limits, and a denial has the time to retry', async () => {
    await using all = await world()
    const login = () => all.ask('/login?next=%2F', { method: 'POST', body: 'name=ann' })
    const first = await login()
    expect(first.status).toBe(200)
    expect(first.headers.get('ratelimit')).toMatch(/^"2-per-1h";r=1;t=36\d\d$/)
    expect(first.headers.get('ratelimit-policy')).toBe('"2-per-1h";q=2;w=3600')
    expect(await first.text()).toBe('hello\n')
    expect((await login()).status).toBe(200)
    const denied = await login()
    expect(denied.status).toBe(429)
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(3500)
    expect(denied.headers.get('ratelimit')).toMatch(/^"2-per-1h";r=0;t=\d+$/)
    expect(denied.headers.get('ratelimit-policy')).toBe('"2-per-1h";q=2;w=3600')
    expect(denied.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(await denied.json()).toMatchObject({ status: 429 })

    expect(all.upstream.served.map(({ method, url, body }) => [method, url, body])).toEqual([
      ['POST', '/login?next=%2F', 'name=ann'],
      ['POST', '/login?next=%2F', 'name=ann'],
    ])
  })

  test('an exempt request gets no limit headers', async () => {
    await using all = await world()
    const answer = await all.ask('/free/lunch')
    expect(answer.status).toBe(200)
    expect([...answer.headers.keys()].filter((header) => /ratelimit|retry|slidegate/.test(header))).toEqual(
      [],
    )
  })

  test('headers of a client have no effect', async () => {
    await using all = await world()
    for (let i = 0; i < 4; i++) {
      const answer = await all.ask('/login?deny=200&x-forwarded-uri=/free/lunch', {
        method: 'POST',
        headers: {
          'X-Forwarded-For': `192.0.2.${i}`,
          'X-Forwarded-Uri': '/free/lunch',
          'X-Forwarded-Method': 'OPTIONS',
          'X-Forwarded-Host': 'shop.example',
          'X-Original-URI': '/free/lunch',
          'X-Real-IP': `192.0.2.${i}`,
          Forwarded: `for=192.0.2.${i}`,
          'X-Slidegate-Token': 'of-the-client-itself',
          'X-Slidegate-Limiter': 'keys',
          'X-Slidegate-Key': `key-${i}`,
          Authorization: 'Bearer of-the-client-itself',
        },
      })
      expect(answer.status).toBe(i < 2 ? 200 : 429)
    }
  })

  test('every spelling of a path is limited or rejected', async () => {
    await using all = await world()
    const spellings = [
      '/login',
      '/LOGIN',
      '/login/',
      '/%6cogin',
      '/login?x',
      '//login',
      '/login;x=1',
      '/free/../login',
    ]
    const encoded = [
      '/free/%2e%2e/login',
      '/free%2f..%2flogin',
      '/free/..%2flogin',
      '/free/;/../login',
      '/./login',
    ]
    const statuses = await Promise.all(
      [...spellings, ...encoded].map(async (path) => [path, await rawPost(all.gateway.port, path)] as const),
    )
    const passed = statuses.filter(([, status]) => status === 200)
    expect(passed).toHaveLength(2)
    expect(new Set(statuses.map(([, status]) => status))).toEqual(new Set([200, 403, 429]))
  })

  test('a rule can require a host and set a cost', async () => {
    await using all = await world()
    const ask = (host: string) => rawPost(all.gateway.port, '/costly', host)
    const statuses = [await ask('shop.example'), await ask('SHOP.example:80'), await ask('shop.example.')]
    expect(statuses).toEqual([200, 200, 429])
    // No rule matches another host.
    expect(await ask('other.example')).toBe(403)
  })

  test("a request without a matching rule is rejected, and the app's own 403 is unchanged", async () => {
    await using all = await world()
    const refused = await all.ask('/elsewhere')
    expect(refused.status).toBe(403)
    expect(refused.headers.get('retry-after')).toBeNull()
    expect(all.upstream.served).toEqual([])
    const forbidden = await all.ask('/forbidden')
    expect(forbidden.status).toBe(403)
    expect(await forbidden.text()).toBe('hello\n')
  })

  test('no request passes while slidegate is down', async () => {
    await using all = await world()
    await all.service.stop()
    const answer = await all.ask('/keys/x')
    expect([502, 503]).toContain(answer.status)
    expect(all.upstream.served).toEqual([])
  })
})

test('nginx can fail open while slidegate is down', async () => {
  const service = await testService(configOf({ memory: {} }))
  await using upstream = await startUpstream()
  const where = 'location = /_slidegate {'
  await using gateway = await startNginx({
    slidegate: new URL(service.httpUrl).host,
    upstream: upstream.address,
    token: TOKEN,
    // Changes the configuration as the comment in the example describes.
    changes: {
      [where]: `location @pass { internal; auth_request off; return 204; } ${where} error_page 500 502 503 504 = @pass; proxy_intercept_errors on;`,
    },
  })
  const login = () => fetch(`${gateway.url}/login`, { method: 'POST' }).then(({ status }) => status)
  expect([await login(), await login(), await login()]).toEqual([200, 200, 429])
  await service.stop()
  expect([await login(), await login()]).toEqual([200, 200])
})

/** Sends a path unchanged. `fetch` would normalize it. */
async function rawPost(port: number, path: string, host = 'localhost'): Promise<number> {
  const { request } = await import('node:http')
  return new Promise((resolve, reject) => {
    const headers = { host, 'content-length': '0' }
    request({ host: '127.0.0.1', port, path, method: 'POST', headers }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode!))
    })
      .once('error', reject)
      .end()
  })
}
