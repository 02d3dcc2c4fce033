// tier: integration
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import type { Config, LimiterConfig } from '../../src/config/schema.ts'
import { type TestService, testService } from '../support/service.ts'
import { deployed } from './support/programs.ts'

const TOKEN = 'a-token-of-the-gateway'
const limits: LimiterConfig['limits'] = [{ kind: 'slidingWindow', limit: 1, window: '1h', name: 'hourly' }]
const twice: LimiterConfig['limits'] = [{ kind: 'slidingWindow', limit: 2, window: '1h', name: 'hourly' }]

const CONFIG: Config = {
  limiters: {
    api: { limits, plans: { gold: { limits: twice } } },
    pages: { limits },
    both: { dimensions: { user: twice, address: limits } },
  },
  forwardAuth: {
    rules: [
      { when: { path: '/free' }, allow: true },
      { when: { path: '/pages/*' }, limiter: 'pages', deniedStatus: 403 },
      { when: { path: '/both' }, limiter: 'both', key: { user: '{header:x-user}', address: '{address}' } },
      { when: { path: '/plan' }, limiter: 'api', key: '{path}', plan: '{header:x-plan}' },
      { when: { path: '/api/*' }, limiter: 'api', key: '{header:x-api-key}' },
    ],
  },
  auth: {
    tokens: [
      { name: 'gateway', role: 'check', token: TOKEN },
      { name: 'of-pages', role: 'check', token: 'a-token-for-pages-only', limiters: ['pages'] },
    ],
  },
}

interface RequestParts {
  readonly path?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

interface GatewayAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** Sends a request as a gateway would. Unlike `fetch`, it can send any Host, and a body with any method. */
function ask(service: TestService, uri: string, asked: RequestParts = {}): Promise<GatewayAnswer> {
  const { path = '/v1/forward-auth', method = 'GET', headers = {}, body } = asked
  const told = {
    'x-forwarded-method': 'GET',
    'x-forwarded-host': 'shop.example',
    'x-forwarded-uri': uri,
    'x-forwarded-for': '192.0.2.7',
    'x-slidegate-token': TOKEN,
    ...headers,
  }
  return send(service.httpUrl + path, method, told, body)
}

function send(
  url: string,
  method: string,
  headers: Record<string, string>,
  body?: string,
): Promise<GatewayAnswer> {
  return new Promise((resolve, reject) => {
    request(url, { method, headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (more: string) => {
        text += more
      })
      response.once('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: text }),
      )
    })
      .once('error', reject)
      .end(body)
  })
}

describe('forward auth', () => {
  test('returns 200 with the state of the limits, then 429 with all headers for clients', async () => {
    await using service = await testService(CONFIG)
    const asked = { headers: { 'x-api-key': 'ann' } }
    const passed = await ask(service, '/api/orders', asked)
    expect(passed).toMatchObject({ status: 200, body: '' })
    expect(passed.headers).toMatchObject({
      'x-slidegate-limiter': 'api',
      'ratelimit-policy': '"hourly";q=1;w=3600',
      ratelimit: expect.stringMatching(/^"hourly";r=0;t=\d+$/),
    })
    expect(passed.headers['retry-after']).toBeUndefined()

    const denied = await ask(service, '/api/orders', asked)
    expect(denied.status).toBe(429)
    expect(denied.headers).toMatchObject({
      'x-slidegate-limiter': 'api',
      'retry-after': expect.stringMatching(/^3[56]\d\d$/),
      ratelimit: expect.stringMatching(/^"hourly";r=0;t=\d+$/),
      'content-type': expect.stringMatching(/^application\/problem\+json/),
    })
    expect(JSON.parse(denied.body)).toMatchObject({ status: 429, 'violated-policies': ['hourly'] })
    expect((await ask(service, '/api/orders', { headers: { 'x-api-key': 'bob' } })).status).toBe(200)
  })

  test('returns the body type of a denial that the client accepts', async () => {
    await using service = await testService(CONFIG)
    await ask(service, '/api/x')
    const page = await ask(service, '/api/x', { headers: { accept: 'text/html' } })
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(page.body).toContain('<h1>Too many requests</h1>')
  })

  test('returns the denial status of the URL or the rule', async () => {
    await using service = await testService(CONFIG)
    await ask(service, '/pages/1')
    await ask(service, '/api/1')
    const status = async (uri: string, path: string) => (await ask(service, uri, { path })).status
    expect(await status('/api/1', '/v1/forward-auth')).toBe(429)
    expect(await status('/api/1', '/v1/forward-auth/403')).toBe(403)
    expect(await status('/api/1', '/v1/forward-auth/401')).toBe(401)
    expect(await status('/pages/1', '/v1/forward-auth')).toBe(403)
    expect(await status('/pages/1', '/v1/forward-auth/401')).toBe(401)
    // Caddy adds the query of its client.
    expect(await status('/api/1', '/v1/forward-auth?deny=200&x-forwarded-uri=/free')).toBe(429)
    const denied = await ask(service, '/api/1', { path: '/v1/forward-auth/403' })
    expect(denied.body).toBe('')
    expect(denied.headers['retry-after']).toMatch(/^\d+$/)
  })

  test('allows exempt requests, and rejects those without a matching rule', async () => {
    await using service = await testService(CONFIG)
    const free = await ask(service, '/free')
    expect(free).toMatchObject({ status: 200, body: '' })
    expect(Object.keys(free.headers).filter((name) => /ratelimit|slidegate/.test(name))).toEqual([])
    for (const path of ['/v1/forward-auth', '/v1/forward-auth/401', '/v1/forward-auth/403']) {
      const refused = await ask(service, '/elsewhere', { path })
      expect(refused.status).toBe(403)
      expect(refused.headers['x-slidegate-limiter']).toBeUndefined()
      expect(JSON.parse(refused.body)).toMatchObject({ code: 'no_rule' })
    }
  })

  test('applies a limiter with dimensions', async () => {
    await using service = await testService(CONFIG)
    const status = async (user: string, address: string) =>
      (await ask(service, '/both', { headers: { 'x-user': user, 'x-forwarded-for': address } })).status
    expect(await status('ann', '192.0.2.1')).toBe(200)
    expect(await status('bob', '192.0.2.1')).toBe(429)
    expect(await status('ann', '192.0.2.2')).toBe(200)
    expect(await status('ann', '192.0.2.3')).toBe(429)
  })

  test('applies a plan from a header', async () => {
    await using service = await testService(CONFIG)
    const gold = { headers: { 'x-plan': 'gold' } }
    expect((await ask(service, '/plan', gold)).headers['ratelimit-policy']).toBe('"hourly";q=2;w=3600')
    expect((await ask(service, '/plan', gold)).status).toBe(200)
    expect((await ask(service, '/plan', gold)).status).toBe(429)
    expect((await ask(service, '/plan', { headers: { 'x-plan': 'none' } })).headers['ratelimit-policy']).toBe(
      '"hourly";q=1;w=3600',
    )
  })

  test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'accepts %s with any body',
    async (method) => {
      await using service = await testService({ ...CONFIG, caps: { bodyBytes: 1024 } })
      const body = method === 'HEAD' ? undefined : 'x'.repeat(100_000)
      const headers = {
        'content-type': 'application/json',
        'x-api-key': method,
        ...(body && { 'content-length': '100000' }),
      }
      const asked = { method, headers, ...(body && { body }) }
      expect((await ask(service, '/api/x', asked)).status).toBe(200)
      expect((await ask(service, '/api/x', asked)).status).toBe(429)
    },
  )

  test('returns 400 if the gateway omits a header', async () => {
    await using service = await testService(CONFIG)
    const answer = await service.get('/v1/forward-auth', { 'x-slidegate-token': TOKEN })
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ code: 'bad_gateway_request' })
  })
})

describe('access control', () => {
  test("depends on the gateway's token, not on headers of its client", async () => {
    await using service = await testService(CONFIG)
    const status = async (headers: Record<string, string>) =>
      (await ask(service, '/free', { headers })).status
    expect(await status({})).toBe(200)
    const ofClient = {
      authorization: 'Bearer of-the-client',
      host: 'shop.example',
      origin: 'https://shop.example',
    }
    expect(await status(ofClient)).toBe(200)
    expect(await status({ 'x-slidegate-token': 'wrong' })).toBe(401)
    expect(await status({ 'x-slidegate-token': '' })).toBe(401)
    expect(await status({ 'x-slidegate-token': '', authorization: `Bearer ${TOKEN}` })).toBe(401)
  })

  test('with a token for some limiters covers their rules only', async () => {
    await using service = await testService(CONFIG)
    const headers = { 'x-slidegate-token': 'a-token-for-pages-only' }
    expect((await ask(service, '/pages/1', { headers })).status).toBe(200)
    expect((await ask(service, '/api/1', { headers })).status).toBe(404)
  })

  test('without tokens is open on loopback, even with an empty token', async () => {
    const { auth: _, ...open } = CONFIG
    await using service = await testService(open)
    expect((await ask(service, '/free', { headers: { 'x-slidegate-token': '' } })).status).toBe(200)
  })
})

test('a reload replaces the rules', async () => {
  await using service = await testService(CONFIG)
  expect((await ask(service, '/free')).status).toBe(200)
  const rules = [{ when: { path: '/free' }, limiter: 'pages' }]
  service.reload({ config: { ...CONFIG, forwardAuth: { rules } }, folder: '/' } as Parameters<
    typeof service.reload
  >[0])
  expect((await ask(service, '/free')).status).toBe(200)
  expect((await ask(service, '/free')).status).toBe(429)
  expect((await ask(service, '/api/x')).status).toBe(403)
})

describe('while the store is down', () => {
  const config = (url: string): Config => ({
    ...CONFIG,
    store: { redis: { url } },
    limiters: Object.fromEntries(
      (['throw', 'deny', 'allow', 'local'] as const).map((onStoreError) => [
        onStoreError,
        { limits, onStoreError, timeoutMs: 200 },
      ]),
    ),
    forwardAuth: {
      rules: ['throw', 'deny', 'allow', 'local'].map((limiter) => ({
        when: { path: `/${limiter}` },
        limiter,
      })),
    },
  })
  let service: TestService
  beforeAll(async () => {
    const redis = await startRedis()
    service = await testService(config(redis.url))
    await redis.stop()
  })
  afterAll(() => service.stop())

  test.each([
    ['/throw', 503],
    ['/deny', 503],
    ['/allow', 200],
    ['/local', 200],
  ])('%s returns %d, independent of the denial status', async (uri, status) => {
    const path = '/v1/forward-auth/403'
    const answer = await ask(service, uri, { path })
    expect(answer.status).toBe(status)
    const isKnown = uri === '/local'
    expect(answer.headers.ratelimit !== undefined).toBe(isKnown)
    if (isKnown) expect((await ask(service, uri, { path })).status).toBe(403)
  })
})

/**
 * The request of Traefik 3's forwardAuth, as in its `pkg/middlewares/auth/forward.go` (writeHeader).
 *
 * It is a GET with selected headers of the client and Traefik's own X-Forwarded-* headers.
 */
describe('a request as from Traefik', () => {
  async function traefikOf(client: {
    method: string
    uri: string
    host: string
    headers: Record<string, string>
  }) {
    const file = (await deployed('traefik/dynamic.yaml')).replace('{{ env "SLIDEGATE_TOKEN" }}', TOKEN)
    const { middlewares, routers } = parse(file).http
    expect(routers.app.middlewares).toEqual(['gateway-token', 'slidegate', 'no-gateway-token'])
    const { forwardAuth } = middlewares.slidegate
    expect(forwardAuth.trustForwardHeader).toBe(false)
    const sent: Record<string, string> = {
      ...client.headers,
      ...middlewares['gateway-token'].headers.customRequestHeaders,
    }
    const listed = forwardAuth.authRequestHeaders.map((name: string) => name.toLowerCase())
    const passed = Object.entries(sent).filter(([name]) => listed.includes(name.toLowerCase()))
    const own = {
      'X-Forwarded-For': '192.0.2.7',
      'X-Forwarded-Method': client.method,
      'X-Forwarded-Proto': 'http',
      'X-Forwarded-Port': '8000',
      'X-Forwarded-Host': client.host,
      'X-Forwarded-Uri': client.uri,
      'User-Agent': '',
      'Accept-Encoding': 'gzip',
    }
    const headers: Record<string, string> = { ...Object.fromEntries(passed), ...own }
    return { path: new URL(forwardAuth.address).pathname, headers }
  }

  test('limits clients independently of their own headers', async () => {
    await using service = await testService(CONFIG)
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) {
      const asked = await traefikOf({
        method: 'POST',
        uri: '/api/orders?x=1',
        host: 'shop.example:8000',
        headers: {
          'X-Api-Key': 'ann',
          'X-Forwarded-Uri': '/free',
          'X-Slidegate-Limiter': 'pages',
          'X-Slidegate-Token': 'wrong',
          Authorization: 'Bearer of-the-client',
          Accept: 'text/plain',
        },
      })
      const { path, headers } = asked
      const answer = await send(service.httpUrl + path, 'GET', headers)
      statuses.push(answer.status)
      if (i > 0) expect(answer.body).toMatch(/^Too many requests\. Try again in \d+ seconds\.\n$/)
    }
    expect(statuses).toEqual([200, 429, 429])
  })
})
