// tier: integration
import { createLimiter, type LimiterOptions, slidingWindow } from 'slidegate'
import { serviceStore } from 'slidegate/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { adminTokenOf, type TestService, testService } from '../support/service.ts'

const config: Config = {
  limiters: { api: { limits: [{ kind: 'slidingWindow', limit: 100, window: '1h' }] } },
  forwardAuth: { rules: [{ limiter: 'api' }] },
}
const tokens: NonNullable<Config['auth']>['tokens'] = [
  { name: 'operator', role: 'admin', token: 'a-token-of-the-operator' },
]

interface Options {
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a request without a token. */
async function ask({ httpUrl }: TestService, path: string, { method, body, headers }: Options = {}) {
  const response = await fetch(httpUrl + path, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
}

function reload(service: TestService, next: Config): void {
  service.reload({ config: next, folder: '/', files: [] })
}

const bearer = (token: string | undefined) => ({ authorization: `Bearer ${token}` })
const key = { limiter: 'api', key: 'ann' }

/** Returns all routes that require a role, such as `GET /v1/admin/audit`, from the OpenAPI description. */
async function routesOf(service: TestService): Promise<{ name: string; isOpen: boolean }[]> {
  const { body } = await service.get('/openapi.json')
  return Object.entries(body.paths as Record<string, Record<string, { description?: string }>>).flatMap(
    ([path, methods]) =>
      Object.entries(methods).flatMap(([method, { description = '' }]) =>
        /Requires the role/.test(description)
          ? { name: `${method.toUpperCase()} ${path}`, isOpen: /no token/.test(description) }
          : [],
      ),
  )
}

describe('a service without tokens', () => {
  it('allows a local program to get decisions, explain a key, and read health and metrics', async () => {
    await using service = await testService(config)
    const statuses = await Promise.all([
      ask(service, '/v1/consume', { body: key }),
      ask(service, '/v1/consume', { body: { requests: [key] } }),
      ask(service, '/v1/peek', { body: key }),
      ask(service, '/v1/explain', { body: key }),
      ask(service, '/v1/wait', { body: key }),
      ask(service, '/v1/reserve', { body: { ...key, estimate: 2 } }),
      ...['/', '/healthz', '/readyz', '/metrics', '/openapi.json', '/v1/admin/whoami'].map((path) =>
        ask(service, path),
      ),
    ])
    expect(statuses.map(({ status }) => status)).toEqual(statuses.map(() => 200))
    expect(statuses.at(-1)!.body).toEqual({
      ...{ name: 'anonymous', role: 'check', limiters: null, hasTokens: false },
    })
  })

  it('rejects a local program on all other routes, and refers to the admin link', async () => {
    await using service = await testService(config)
    const routes = await routesOf(service)
    const open = routes.filter(({ isOpen }) => isOpen).map(({ name }) => name)
    expect(open.filter((name) => name.includes('/v1/admin/'))).toEqual(['GET /v1/admin/whoami'])
    const others = routes.filter(({ isOpen }) => !isOpen).map(({ name }) => name)
    expect(others.length).toBeGreaterThan(15)
    for (const name of others) {
      const [method = '', path = ''] = name.replace('{name}', 'api').split(' ')
      const { status, body } = await ask(service, path, { method, ...(method !== 'GET' && { body: key }) })
      expect([name, status, body.code]).toEqual([name, 401, 'unauthorized'])
      expect(body.detail).toMatch(/admin link that the service printed at startup.*auth\.tokens/)
    }
  })

  it('allows a local program to declare limiters that the configuration does not have', async () => {
    await using service = await testService(config)
    const limiterOf = (name: string) => {
      const limits = [slidingWindow({ limit: 2, window: '1h' })]
      const store = serviceStore(service.httpUrl)
      return createLimiter({ name, limits, store, timeoutMs: 30_000, logger: false } as LimiterOptions)
    }
    expect((await limiterOf('mine').consume('ann')).remaining).toBe(1)
    for (const name of ['api', 'slidegate.readiness', 'envoy.web'])
      await expect(limiterOf(name).consume('ann')).rejects.toThrow()
  })
})

describe('the admin link', () => {
  it('contains a token that opens every route, and no other token opens any', async () => {
    await using service = await testService(config)
    expect(service.adminLink).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{43}$/)
    const token = adminTokenOf(service)
    const headers = bearer(token)
    expect((await ask(service, '/v1/admin/audit', { headers })).status).toBe(200)
    expect((await ask(service, '/v1/admin/whoami', { headers })).body).toMatchObject({
      ...{ name: 'admin-link', role: 'admin' },
    })
    const block = { body: { ...key, ttl: '1h' }, headers }
    expect((await ask(service, '/v1/admin/block', block)).status).toBe(200)
    expect((await ask(service, '/v1/admin/audit', { headers })).body.entries[0]).toMatchObject({
      who: 'admin-link',
    })
    for (const wrong of [`${token}x`, token!.slice(1), 'x'.repeat(43)]) {
      const refused = await ask(service, '/v1/consume', { body: key, headers: bearer(wrong) })
      expect(refused).toMatchObject({ status: 401, body: { detail: /unknown token.*each start/ } as never })
    }
  })

  it('exists only while the configuration has neither tokens nor anonymous', async () => {
    await using service = await testService(config)
    const link = service.adminLink
    const headers = bearer(adminTokenOf(service))
    const read = async (given = {}) => (await ask(service, '/v1/admin/audit', { headers: given })).status
    expect([await read(headers), await read()]).toEqual([200, 401])
    for (const auth of [{ tokens }, { anonymous: 'check' as const }, { anonymous: false as const }]) {
      reload(service, { ...config, auth })
      expect(service.adminLink).toBeUndefined()
      expect([auth, await read(headers)]).toEqual([auth, 401])
    }
    reload(service, { ...config, auth: { tokens } })
    expect((await ask(service, '/v1/consume', { body: key })).status).toBe(401)
    expect(await read(bearer('a-token-of-the-operator'))).toBe(200)
    reload(service, { ...config, auth: { hosts: ['limits.example'] } })
    expect(service.adminLink).toBe(link)
    expect([await read(headers), await read(bearer('a-token-of-the-operator'))]).toEqual([200, 401])
  })

  it('loses its open tail streams when tokens take effect', async () => {
    await using service = await testService(config)
    const response = await fetch(`${service.httpUrl}/v1/admin/tail`, {
      headers: bearer(adminTokenOf(service)),
    })
    expect(response.status).toBe(200)
    reload(service, { ...config, auth: { tokens } })
    // A decision makes the service check the reader again.
    await ask(service, '/v1/consume', { body: key, headers: bearer('a-token-of-the-operator') })
    await expect(response.text()).rejects.toThrow('terminated')
  })
})

describe('a request through a proxy', () => {
  const HEADERS = {
    forwarded: 'for=192.0.2.7',
    via: '1.1 proxy.example',
    'x-real-ip': '192.0.2.7',
    'x-forwarded-for': '192.0.2.7',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'limits.example',
    'x-forwarded-anything': '',
  }

  let service: TestService
  beforeAll(async () => {
    service = await testService(config)
  })
  afterAll(() => service[Symbol.asyncDispose]())

  it.each(Object.entries(HEADERS))('fails on every route without tokens: %s', async (name, value) => {
    const headers = { [name]: value }
    const withToken = { ...headers, ...bearer(adminTokenOf(service)) }
    for (const [path, options] of [
      ['/', { headers }],
      ['/healthz', { headers }],
      ['/readyz', { headers }],
      ['/metrics', { headers }],
      ['/openapi.json', { headers }],
      ['/assets/x.js', { headers }],
      ['/v1/consume', { headers, body: key }],
      ['/v1/store', { headers, body: {} }],
      ['/v1/admin/audit', { headers: withToken }],
      ['/v1/consume', { headers: withToken, body: key }],
    ] as const) {
      const { status, body } = await ask(service, path, options)
      expect([path, status, body.code]).toEqual([path, 403, 'proxy_without_tokens'])
      expect(body.detail).toContain(`the header ${name}`)
      expect(body.detail).toContain('auth.tokens')
    }
  })

  it('succeeds on forward auth', async () => {
    const headers = { ...HEADERS, 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/' }
    expect((await ask(service, '/v1/forward-auth', { headers })).status).toBe(200)
  })

  it('succeeds on every route if the configuration has tokens or anonymous', async () => {
    reload(service, { ...config, auth: { anonymous: 'check' } })
    const options = { headers: HEADERS, body: key }
    expect((await ask(service, '/v1/consume', options)).status).toBe(200)
    reload(service, { ...config, auth: { tokens } })
    expect((await ask(service, '/healthz', { headers: HEADERS })).status).toBe(200)
    const known = { ...options, headers: { ...HEADERS, ...bearer('a-token-of-the-operator') } }
    expect((await ask(service, '/v1/consume', known)).status).toBe(200)
    reload(service, config)
    expect((await ask(service, '/v1/consume', options)).status).toBe(403)
  })
})
