// tier: integration
import { describe, expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import { ServiceClient } from '../../src/client/service-client.ts'
import type { Config, LimiterConfig } from '../../src/config/schema.ts'
import { type AdminService, adminService, forEachStore } from './support.ts'

const limits = (limit: number): LimiterConfig['limits'] => [{ kind: 'slidingWindow', limit, window: '1h' }]

/** Shorter than the client's timeout, and longer than any machine stall. */
const timeoutMs = 9000

const limiters: Config['limiters'] = {
  api: {
    limits: [
      { kind: 'slidingWindow', limit: 2, window: '1h' },
      { kind: 'slidingWindow', limit: 100, window: '1d', name: 'daily', shadow: true },
    ],
    timeoutMs,
  },
  both: { dimensions: { user: limits(2)!, address: limits(3)! }, timeoutMs },
  one: { limits: limits(2)!, timeoutMs },
  fixed: { limits: limits(2)!, overrides: false, timeoutMs },
}

const secret = (name: string) => `${name}-${name}-${name}-${name}`

const auth: Config['auth'] = {
  tokens: [
    ...(['check', 'read', 'admin'] as const).map((role) => ({ name: role, role, token: secret(role) })),
    { name: 'narrow', role: 'admin', token: secret('narrow'), limiters: ['both'] },
  ],
}

async function consume(service: AdminService, key: unknown = 'ann', limiter = 'api'): Promise<boolean> {
  const { status, body } = await service.ask('POST', '/v1/consume', { limiter, key })
  expect([200, 429]).toContain(status)
  return (body as { allowed: boolean }).allowed
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of many shapes
async function done(service: AdminService, method: string, path: string, body?: unknown): Promise<any> {
  const answer = await service.ask(method, path, body)
  expect(answer).toMatchObject({ status: 200 })
  return answer.body
}

forEachStore((store) => {
  it('lists limiters with their declaration, limits in force and state', async () => {
    await using service = await adminService({ limiters, store: store() })
    const { limiters: listed } = await done(service, 'GET', '/v1/admin/limiters')
    expect(listed).toMatchObject([
      {
        name: 'api',
        config: limiters.api,
        limits: [
          { name: '2-per-1h', shadow: false },
          { name: 'daily', shadow: true },
        ],
        ...{ shadowSettings: {}, waiting: { length: 0 }, stats: { breakerOpened: 0 } },
      },
      { name: 'both', limits: [{ dimension: 'user' }, { dimension: 'address' }] },
      { name: 'one' },
      { name: 'fixed', config: { overrides: false } },
    ])
  })

  it('never reveals the secret for hashing keys', async () => {
    const hashed = { limits: limits(1)!, hashKeys: 'a secret of sixteen bytes' }
    await using service = await adminService({ limiters: { hashed }, store: store() })
    const body = await done(service, 'GET', '/v1/admin/limiters')
    expect(body.limiters[0]).toMatchObject({ hashesKeys: true })
    expect(JSON.stringify(body)).not.toContain('a secret')
  })

  it('reports usage and top keys, live', async () => {
    await using service = await adminService({ limiters, store: store() })
    for (let i = 0; i < 5; i++) await consume(service, 'ann')
    await consume(service, 'bob')
    expect(await done(service, 'GET', '/v1/admin/limiters/api/top')).toMatchObject({
      by: 'requests',
      keys: [
        { key: 'ann', count: 5, error: 0 },
        { key: 'bob', count: 1, error: 0 },
      ],
      unlisted: 0,
    })
    expect(await done(service, 'GET', '/v1/admin/limiters/api/top?count=1')).toMatchObject({ unlisted: 1 })
    const { keys } = await done(service, 'GET', '/v1/admin/limiters/api/top?by=denials&count=1')
    expect(keys).toEqual([{ key: 'ann', count: 3, error: 0 }])
    await until('the second is over', async () => {
      const { usage } = await done(service, 'GET', '/v1/admin/limiters/api/usage')
      return usage[3].allowed === 3 && usage[3].denied === 3
    })
  })

  it('resets, blocks and unblocks a key', async () => {
    await using service = await adminService({ limiters, store: store() })
    const key = 'ann'
    expect([await consume(service), await consume(service), await consume(service)]).toEqual([
      true,
      true,
      false,
    ])
    await done(service, 'POST', '/v1/admin/reset', { limiter: 'api', key })
    expect(await consume(service)).toBe(true)
    await done(service, 'POST', '/v1/admin/block', { limiter: 'api', key, ttl: '1h' })
    expect(await consume(service)).toBe(false)
    expect(await consume(service, 'bob')).toBe(true)
    await done(service, 'POST', '/v1/admin/unblock', { limiter: 'api', key })
    expect(await consume(service)).toBe(true)
  })

  it('blocks and unblocks one dimension of a key', async () => {
    await using service = await adminService({ limiters, store: store() })
    const [ann, bob] = ['ann', 'bob'].map((user) => ({ user, address: '192.0.2.7' }))
    await done(service, 'POST', '/v1/admin/block', { limiter: 'both', key: { user: 'ann' }, ttl: 60_000 })
    expect([await consume(service, ann, 'both'), await consume(service, bob, 'both')]).toEqual([false, true])
    await done(service, 'POST', '/v1/admin/unblock', { limiter: 'both', key: { user: 'ann' } })
    expect(await consume(service, ann, 'both')).toBe(true)
  })

  it('sets an override from the next request on, lists it and deletes it', async () => {
    await using service = await adminService({ limiters, store: store() })
    const body = { limiter: 'one', key: 'ann' }
    await done(service, 'PUT', '/v1/admin/overrides', { ...body, limits: { limit: 4 }, ttl: '1h' })
    for (let i = 0; i < 4; i++) expect(await consume(service, 'ann', 'one')).toBe(true)
    expect(await consume(service, 'ann', 'one')).toBe(false)
    const overrides = await service.overrides('one')
    expect(overrides).toEqual([{ key: 'ann', limits: { '': { limit: 4 } }, expiresInMs: expect.any(Number) }])
    expect(overrides[0]!.expiresInMs).toBeGreaterThan(3_500_000)
    expect(await done(service, 'DELETE', '/v1/admin/overrides', body)).toMatchObject({ existed: true })
    expect(await done(service, 'DELETE', '/v1/admin/overrides', body)).toMatchObject({ existed: false })
    expect(await service.overrides('one')).toEqual([])
    // Earlier usage still counts.
    expect(await consume(service, 'ann', 'one')).toBe(false)
  })

  it('overrides limits by name, and reports names that the key does not have', async () => {
    const named: LimiterConfig = {
      limits: [
        { kind: 'slidingWindow', limit: 2, window: '1m', precision: '1s', name: 'minute' },
        { kind: 'tokenBucket', capacity: 9, refill: 1, interval: '1h', name: 'burst' },
      ],
      plans: { small: { keys: ['bob'], limits: limits(1)! } },
      timeoutMs,
    }
    await using service = await adminService({ limiters: { named }, store: store() })
    const change = { minute: { limit: 5, window: '2m' }, burst: { capacity: 3 } }
    for (const key of ['ann', 'bob']) {
      await done(service, 'PUT', '/v1/admin/overrides', { limiter: 'named', key, limits: change })
    }
    const explained = await done(service, 'POST', '/v1/explain', { limiter: 'named', key: 'ann' })
    const stored = { minute: { limit: 5, windowMs: 120_000 }, burst: { capacity: 3 } }
    expect(explained).toMatchObject({
      limits: [
        { name: 'minute', limit: 5, windowMs: 120_000 },
        { name: 'burst', limit: 3 },
      ],
      overrides: [{ key: 'ann', limits: stored }],
    })
    expect(explained.overrides[0]).not.toHaveProperty('unused')
    const unused = { key: 'bob', limits: stored, unused: ['minute', 'burst'] }
    const ofBob = await done(service, 'POST', '/v1/explain', { limiter: 'named', key: 'bob' })
    expect(ofBob.overrides).toEqual([unused])
    expect(await service.overrides('named')).toContainEqual(unused)
  })

  it('exempts a key: its limits count but never deny', async () => {
    await using service = await adminService({ limiters, store: store() })
    await done(service, 'PUT', '/v1/admin/overrides', { limiter: 'one', key: 'ann', exempt: true })
    for (let i = 0; i < 5; i++) expect(await consume(service, 'ann', 'one')).toBe(true)
    expect(await done(service, 'POST', '/v1/explain', { limiter: 'one', key: 'ann' })).toMatchObject({
      allowed: true,
      limits: [{ shadow: true, used: 2 }],
      overrides: [{ key: 'ann', exempt: true }],
    })
  })

  it('blocks a key with an override indefinitely, and unblocking keeps the override', async () => {
    await using service = await adminService({ limiters, store: store() })
    const body = { limiter: 'one', key: 'ann' }
    await done(service, 'PUT', '/v1/admin/overrides', { ...body, limits: { limit: 9 } })
    await done(service, 'PUT', '/v1/admin/overrides', { ...body, block: true })
    const { status, body: denied } = await service.ask('POST', '/v1/consume', body)
    expect([status, denied]).toMatchObject([
      429,
      { deniedBy: ['block'], blockedMs: null, retryAfterMs: null },
    ])
    expect(await service.overrides('one')).toEqual([
      { key: 'ann', limits: { '': { limit: 9 } }, blockedMs: null },
    ])
    expect(await done(service, 'POST', '/v1/explain', body)).toMatchObject({ blockedMs: null })
    await done(service, 'POST', '/v1/admin/unblock', body)
    expect(await consume(service, 'ann', 'one')).toBe(true)
    expect(await service.overrides('one')).toEqual([{ key: 'ann', limits: { '': { limit: 9 } } }])
  })

  it('accepts the dimension of an override as a field or in the key, and lists it so that it can be deleted', async () => {
    await using service = await adminService({ limiters, store: store() })
    const put = { limiter: 'both', limits: { limit: 9 } }
    await done(service, 'PUT', '/v1/admin/overrides', { ...put, key: 'ann', dimension: 'user' })
    await done(service, 'PUT', '/v1/admin/overrides', { ...put, key: { address: '192.0.2.7' } })
    const overrides = await service.overrides('both')
    for (const { key, dimension } of overrides) {
      expect(
        await done(service, 'DELETE', '/v1/admin/overrides', { limiter: 'both', key, dimension }),
      ).toMatchObject({
        existed: true,
      })
    }
    expect(overrides).toHaveLength(2)
  })

  it('lists all overrides, or the requested number', async () => {
    await using service = await adminService({ limiters, store: store() })
    const { limiter } = service.running.service.get('one')
    const keys = Array.from({ length: 1200 }, (_, i) => `key:${i}`)
    await Promise.all(keys.map((key) => limiter.overrides.set(key, { limit: 3 })))
    expect(new Set((await service.overrides('one')).map(({ key }) => key))).toEqual(new Set(keys))
    expect(await service.overrides('one', 7)).toHaveLength(7)
  })

  it('keeps overrides that a reload disables, and applies them again later', async () => {
    await using service = await adminService({ limiters, store: store() })
    const reload = (overrides?: false) =>
      service.running.reload({
        config: {
          limiters: { ...limiters, one: { ...limiters.one!, ...(overrides === false && { overrides }) } },
        },
        folder: '/',
      } as never)
    const body = { limiter: 'one', key: 'ann' }
    await done(service, 'POST', '/v1/admin/block', body)
    reload(false)
    expect(await consume(service, 'ann', 'one')).toBe(true)
    expect(await service.ask('POST', '/v1/admin/unblock', body)).toMatchObject({ status: 409 })
    reload()
    expect(await consume(service, 'ann', 'one')).toBe(false)
  })

  it('turns shadow mode on and off, and keeps the usage', async () => {
    await using service = await adminService({ limiters, store: store() })
    for (let i = 0; i < 3; i++) await consume(service)
    const shadow = (setting: boolean | null, limit?: string) =>
      done(service, 'POST', '/v1/admin/shadow', { limiter: 'api', shadow: setting, ...(limit && { limit }) })
    expect(await shadow(true)).toMatchObject({ limits: [{ shadow: true }, { shadow: true }] })
    expect(await consume(service)).toBe(true)
    const { limiters: listed } = await done(service, 'GET', '/v1/admin/limiters')
    expect(listed[0].shadowSettings).toEqual({ '*': true })
    expect(await shadow(false, 'daily')).toMatchObject({ limits: [{ shadow: true }, { shadow: false }] })
    expect(await shadow(null)).toMatchObject({ limits: [{ shadow: false }, { shadow: true }] })
    expect(await consume(service)).toBe(false)
  })

  it('reports not ready while draining, and ready afterwards', async () => {
    await using service = await adminService({ limiters, store: store() })
    await done(service, 'POST', '/v1/admin/drain', { drain: true })
    expect(await service.ask('GET', '/readyz')).toMatchObject({
      status: 503,
      body: { reasons: ['draining'] },
    })
    expect(await consume(service)).toBe(true)
    await done(service, 'POST', '/v1/admin/drain', { drain: false })
    expect(await service.ask('GET', '/readyz')).toMatchObject({ status: 200 })
  })

  it('records every change and its author in the audit log', async () => {
    await using service = await adminService({ limiters, auth, store: store() })
    const ask = (method: string, path: string, body: unknown) =>
      service.ask(method, `/v1/admin/${path}`, body, secret('admin'))
    const key = 'ann'
    await ask('POST', 'reset', { limiter: 'api', key })
    await ask('POST', 'block', { limiter: 'api', key, ttl: '1h' })
    await ask('POST', 'unblock', { limiter: 'api', key })
    await ask('PUT', 'overrides', { limiter: 'api', key, limits: { daily: { limit: 5 } } })
    await ask('DELETE', 'overrides', { limiter: 'api', key })
    await ask('POST', 'shadow', { limiter: 'api', shadow: true })
    await ask('POST', 'drain', { drain: true })
    service.running.reload({ config: { limiters, auth }, folder: '/' } as never)
    const read = async () => {
      const { body } = await service.ask('GET', '/v1/admin/audit', undefined, secret('read'))
      return (body as { entries: Record<string, unknown>[] }).entries
    }
    const entries = await until('the reload is recorded', async () => {
      const found = await read()
      return found.length === 8 && found
    })
    expect(entries.map(({ who, what, result }) => [who, what, result])).toEqual([
      ['configuration', 'reload', 'done'],
      ...['drain', 'shadow', 'delete override', 'override', 'unblock', 'block', 'reset'].map((what) => [
        'admin',
        what,
        'done',
      ]),
    ])
    expect(entries[3]).toMatchObject({ limiter: 'api', key: 'ann' })
    const narrow = await service.ask('GET', '/v1/admin/audit', undefined, secret('narrow'))
    expect((narrow.body as { entries: unknown[] }).entries).toHaveLength(2)
  })

  it('streams decisions as server-sent events', async () => {
    await using service = await adminService({ limiters, store: store() })
    const stop = new AbortController()
    const client = new ServiceClient({ url: new URL(service.url), token: service.token })
    const seen: unknown[] = []
    const reading = (async () => {
      for await (const { event, data } of client.events(
        '/v1/admin/tail?limiter=api&denied=true',
        stop.signal,
      )) {
        seen.push([event, JSON.parse(data)])
      }
    })()
    // The stream only has decisions made after it was opened.
    await until('a denial is seen', async () => {
      await consume(service)
      return seen.length > 0
    })
    expect(seen[0]).toMatchObject([
      'decision',
      { limiter: 'api', key: 'ann', allowed: false, deniedBy: ['2-per-1h'] },
    ])
    stop.abort()
    await reading
  })

  it.each([
    ['\u001b[2J\u001b]0;owned\u0007'],
    ['\u202eevil \ud83d\ude00 \u0000'],
    ['<img src=x onerror=alert(1)>'],
    ['__proto__'],
    ['12345'],
    ['k'.repeat(65_536)],
  ])('accepts any key: %#', async (key) => {
    await using service = await adminService({ limiters, store: store() })
    await consume(service, key)
    await done(service, 'POST', '/v1/admin/block', { limiter: 'api', key, ttl: '1h' })
    expect(await consume(service, key)).toBe(false)
    await done(service, 'POST', '/v1/admin/unblock', { limiter: 'api', key })
    await done(service, 'PUT', '/v1/admin/overrides', {
      limiter: 'api',
      key,
      limits: { daily: { limit: 9 } },
    })
    const shown = key.length > 256 ? expect.stringMatching(/^k{200}\.\.\.~/) : key
    expect((await done(service, 'GET', '/v1/admin/limiters/api/top')).keys).toMatchObject([{ key: shown }])
    expect((await done(service, 'GET', '/v1/admin/audit')).entries[0]).toMatchObject({ key: shown })
    expect(await service.overrides('api')).toEqual([{ key, limits: { daily: { limit: 9 } } }])
    await done(service, 'DELETE', '/v1/admin/overrides', { limiter: 'api', key })
    expect(JSON.stringify(service.logged)).not.toContain(JSON.stringify(key).slice(1, 100))
  })

  it.each([
    ['POST', 'reset', { limiter: 'nobody', key: 'ann' }, 404, 'unknown_limiter'],
    ['GET', 'limiters/nobody/top', undefined, 404, 'unknown_limiter'],
    ['GET', 'limiters/nobody/usage', undefined, 404, 'unknown_limiter'],
    ['GET', 'limiters/nobody/limits', undefined, 404, 'unknown_limiter'],
    ['GET', 'overrides?limiter=nobody', undefined, 404, 'unknown_limiter'],
    ['GET', 'tail?limiter=nobody', undefined, 404, 'unknown_limiter'],
    ['GET', 'limiters/api/top?count=0', undefined, 400, 'invalid_request'],
    ['GET', 'limiters/api/top?counts=1', undefined, 400, 'invalid_request'],
    ['POST', 'reset', { limiter: 'api', key: '' }, 400, 'invalid_request'],
    ['POST', 'reset', { limiter: 'api', key: 'k'.repeat(70_000) }, 400, 'invalid_key'],
    ['POST', 'reset', { limiter: 'api', key: { user: 'ann' } }, 400, 'invalid_key'],
    ['POST', 'reset', { limiter: 'both', key: { nobody: 'ann' } }, 400, 'invalid_key'],
    ['POST', 'block', { limiter: 'api', key: 'ann', ttl: 'long' }, 400, 'invalid_duration'],
    ['POST', 'block', { limiter: 'api', key: 'ann', ttl: '900d' }, 400, 'invalid_duration'],
    ['POST', 'block', { limiter: 'fixed', key: 'ann' }, 409, 'no_overrides'],
    ['POST', 'unblock', { limiter: 'fixed', key: 'ann' }, 409, 'no_overrides'],
    ['GET', 'overrides?limiter=fixed', undefined, 409, 'no_overrides'],
    ['PUT', 'overrides', { limiter: 'fixed', key: 'ann', exempt: true }, 409, 'no_overrides'],
    ['DELETE', 'overrides', { limiter: 'fixed', key: 'ann' }, 409, 'no_overrides'],
    ['POST', 'shadow', { limiter: 'api', limit: 'none', shadow: true }, 400, 'unknown_limit'],
    ['POST', 'shadow', { limiter: 'api', shadow: 'on' }, 400, 'invalid_request'],
    ['PUT', 'overrides', { limiter: 'one', key: 'ann' }, 400, 'invalid_request'],
    ['PUT', 'overrides', { limiter: 'one', key: 'ann', limits: [] }, 400, 'invalid_request'],
    ['PUT', 'overrides', { limiter: 'one', key: 'ann', limits: {} }, 400, 'invalid_request'],
    ['PUT', 'overrides', { limiter: 'one', key: 'ann', limits: { limit: 0 } }, 400, 'invalid_request'],
    ['PUT', 'overrides', { limiter: 'one', key: 'ann', limits: { limits: 1 } }, 400, 'invalid_request'],
    ['PUT', 'overrides', { limiter: 'one', key: 'ann', exempt: false }, 400, 'invalid_request'],
    ['PUT', 'overrides', { limiter: 'one', key: 'ann', exempt: true, block: true }, 400, 'invalid_request'],
    ['PUT', 'overrides', { limiter: 'one', key: 'ann', limits: { capacity: 1 } }, 400, 'invalid_limit'],
    [
      'PUT',
      'overrides',
      { limiter: 'one', key: 'ann', limits: { minute: { limit: 1 } } },
      400,
      'invalid_limit',
    ],
    ['PUT', 'overrides', { limiter: 'api', key: 'ann', limits: { limit: 1 } }, 400, 'invalid_limit'],
    [
      'PUT',
      'overrides',
      { limiter: 'api', key: 'ann', limits: { '2-per-1h': { limit: 1 } } },
      400,
      'invalid_limit',
    ],
    ['PUT', 'overrides', { limiter: 'one', key: 'ann', exempt: true, ttl: '900d' }, 400, 'invalid_duration'],
    [
      'PUT',
      'overrides',
      { limiter: 'api', key: { user: 'a' }, dimension: 'user', exempt: true },
      400,
      'invalid_key',
    ],
  ])('rejects invalid requests, %#: %s %s', async (method, path, body, status, code) => {
    await using service = await adminService({ limiters, store: store() })
    expect(await service.ask(method, `/v1/admin/${path}`, body)).toMatchObject({ status, body: { code } })
  })
})

describe('roles', () => {
  const key = 'ann'
  const ROUTES: [string, string, unknown, 'read' | 'admin'][] = [
    ['GET', 'limiters', undefined, 'read'],
    ['GET', 'limiters/api/usage', undefined, 'read'],
    ['GET', 'limiters/api/top', undefined, 'read'],
    ['GET', 'limiters/api/limits', undefined, 'read'],
    ['GET', 'limiters/api/history', undefined, 'read'],
    ['GET', 'overrides?limiter=api', undefined, 'read'],
    ['GET', 'bans?limiter=api', undefined, 'read'],
    ['GET', 'keys?key=ann', undefined, 'read'],
    ['GET', 'audit', undefined, 'read'],
    ['GET', 'overview', undefined, 'read'],
    ['GET', 'history?limiter=api', undefined, 'read'],
    ['GET', 'configuration', undefined, 'read'],
    ['POST', 'configuration/check', { text: 'limiters: {}' }, 'admin'],
    ['POST', 'reset', { limiter: 'api', key }, 'admin'],
    ['POST', 'block', { limiter: 'api', key, ttl: '1h' }, 'admin'],
    ['POST', 'unblock', { limiter: 'api', key }, 'admin'],
    ['PUT', 'overrides', { limiter: 'api', key, exempt: true }, 'admin'],
    ['DELETE', 'overrides', { limiter: 'api', key }, 'admin'],
    ['POST', 'shadow', { limiter: 'api', shadow: null }, 'admin'],
    ['POST', 'watch', { limiter: 'api', key, watch: true }, 'admin'],
    ['POST', 'drain', { drain: false }, 'admin'],
  ]

  it('protect every route: a rejected request changes nothing and is not in the audit log', async () => {
    await using service = await adminService({ limiters, auth })
    await service.ask('POST', '/v1/admin/block', { limiter: 'api', key: 'eve' }, secret('admin'))
    const { body: audited } = await service.ask('GET', '/v1/admin/audit', undefined, secret('admin'))
    const [{ id }] = (audited as { entries: [{ id: string }] }).entries
    const routes = [...ROUTES, ['POST', 'undo', { id }, 'admin'] as const]
    const known = Object.keys((service.running.app.swagger() as { paths: object }).paths)
    const tested = routes.map(
      ([, path]) => `/v1/admin/${path.split('?')[0]!.replace('limiters/api', 'limiters/{name}')}`,
    )
    // The first two are endless streams, and whoami is open to every role.
    const others = ['/v1/admin/tail', '/v1/admin/live', '/v1/admin/whoami', '/v1/admin/capture']
    const admin = known.filter((path) => path.startsWith('/v1/admin/') && !others.includes(path))
    expect(admin.sort()).toEqual([...new Set(tested)].sort())
    const seen: unknown[] = []
    const right: unknown[] = []
    for (const [method, path, body, needed] of routes) {
      const statuses: number[] = []
      for (const token of [
        undefined,
        'wrong-wrong-wrong-wrong',
        secret('check'),
        secret('read'),
        secret('admin'),
        secret('narrow'),
      ]) {
        statuses.push((await service.ask(method, `/v1/admin/${path}`, body, token)).status)
      }
      seen.push([method, path, ...statuses])
      // To a caller without access, the limiter seems not to exist.
      const narrow = /^undo|api/.test(path + JSON.stringify(body))
        ? 404
        : /^(drain|config)/.test(path)
          ? 403
          : 200
      right.push([method, path, 401, 401, 403, needed === 'read' ? 200 : 403, 200, narrow])
    }
    expect(seen).toEqual(right)
    const { body } = await service.ask('GET', '/v1/admin/audit', undefined, secret('admin'))
    const entries = (body as { entries: { who: string }[] }).entries
    expect(new Set(entries.map(({ who }) => who))).toEqual(new Set(['admin']))
  })

  it('hide limiters that a token has no access to, in the list and in the tail', async () => {
    await using service = await adminService({ limiters, auth })
    const { body } = await service.ask('GET', '/v1/admin/limiters', undefined, secret('narrow'))
    expect((body as { limiters: { name: string }[] }).limiters.map(({ name }) => name)).toEqual(['both'])
    const stop = new AbortController()
    const client = new ServiceClient({ url: new URL(service.url), token: secret('narrow') })
    const tokened = (limiter: string, key: unknown) =>
      service.ask('POST', '/v1/consume', { limiter, key }, secret('check'))
    const asking = (async () => {
      while (!stop.signal.aborted) {
        await tokened('api', 'ann')
        await tokened('both', { user: 'ann', address: null })
      }
    })()
    for await (const { data } of client.events('/v1/admin/tail', stop.signal)) {
      expect(JSON.parse(data)).toMatchObject({ limiter: 'both' })
      stop.abort()
    }
    await asking
    expect(await service.ask('GET', '/v1/admin/tail', undefined, secret('check'))).toMatchObject({
      status: 403,
    })
  })
})

it('revoking a token ends its open tail stream', async () => {
  await using service = await adminService({ limiters, auth })
  const follow = (name: string) => {
    const reader = { seen: 0, hasEnded: false }
    const client = new ServiceClient({ url: new URL(service.url), token: secret(name) })
    const reading = (async () => {
      for await (const _ of client.events('/v1/admin/tail', new AbortController().signal)) reader.seen++
    })()
    const end = () => {
      reader.hasEnded = true
    }
    reading.then(end, end)
    return reader
  }
  const [reader, admin] = [follow('read'), follow('admin')]
  const afterRequest = async (condition: () => boolean) => {
    await service.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann' }, secret('check'))
    return condition()
  }
  await until('both read', () => afterRequest(() => reader.seen > 0 && admin.seen > 0))
  const tokens = auth.tokens!.filter(({ name }) => name !== 'read')
  const listen = { http: '127.0.0.1:0', grpc: false as const }
  service.running.reload({ config: { limiters, auth: { tokens }, listen }, folder: '/', files: [] })
  await until('the stream has ended', async () => reader.hasEnded)
  const { seen } = admin
  await until('the other still reads', () => afterRequest(() => admin.seen > seen))
})

describe('two instances on one Redis', () => {
  it('share changes immediately, and after a restart', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const config = { limiters, store: { redis: { url: server.url } } }
    await using one = await adminService(config)
    await using other = await adminService(config)
    const instances = async () => (await done(one, 'GET', '/v1/admin/overview')).instances.length
    await expect.poll(instances).toBe(2)
    for (let i = 0; i < 3; i++) await consume(other)
    expect(await consume(other)).toBe(false)
    await done(one, 'POST', '/v1/admin/shadow', { limiter: 'api', shadow: true })
    expect(await consume(one)).toBe(true)
    // Periodic reads are off, so the other instance applies the setting when it is queried. It may answer late.
    await expect.poll(() => consume(other)).toBe(true)
    await done(other, 'POST', '/v1/admin/reset', { limiter: 'api', key: 'ann' })
    const audits = await Promise.all([one, other].map((each) => done(each, 'GET', '/v1/admin/audit')))
    expect(audits[0].entries).toEqual(audits[1].entries)
    expect(audits[0].entries.map(({ what }: { what: string }) => what)).toEqual(['reset', 'shadow'])
    // An instance that can't connect in time starts without the setting, so start another one then.
    await using restarted = await until('a new instance has the setting', async () => {
      const service = await adminService(config)
      const { limiters: listed } = await done(service, 'GET', '/v1/admin/limiters')
      if (listed[0].shadowSettings['*'] === true) return service
      await service[Symbol.asyncDispose]()
      return false
    })
    for (let i = 0; i < 4; i++) expect(await consume(restarted, 'bob')).toBe(true)
    await done(restarted, 'POST', '/v1/admin/shadow', { limiter: 'api', shadow: null })
    await one.steer()
    // Usage in shadow mode is counted separately.
    const after = [await consume(one, 'bob'), await consume(one, 'bob'), await consume(one, 'bob')]
    expect(after).toEqual([true, true, false])
  })
})

it('an override set on one instance applies to the next request on another', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const config: Config = { limiters, store: { redis: { url: server.url } } }
  await using here = await adminService(config)
  await using elsewhere = await adminService(config)
  const body = { limiter: 'one', key: 'ann' }
  for (const allowed of [true, true, false]) {
    expect(await consume(elsewhere, 'ann', 'one')).toBe(allowed)
  }
  await done(here, 'PUT', '/v1/admin/overrides', { ...body, limits: { limit: 3 } })
  expect(await consume(elsewhere, 'ann', 'one')).toBe(true)
  await done(here, 'POST', '/v1/admin/block', { ...body, ttl: '1h' })
  expect(await consume(elsewhere, 'ann', 'one')).toBe(false)
  await done(here, 'PUT', '/v1/admin/overrides', { ...body, exempt: true })
  await done(here, 'POST', '/v1/admin/unblock', body)
  expect(await consume(elsewhere, 'ann', 'one')).toBe(true)
  await done(here, 'DELETE', '/v1/admin/overrides', body)
  expect(await consume(elsewhere, 'ann', 'one')).toBe(false)
})

it('disconnecting ends the listing of overrides', async () => {
  await using service = await adminService({ limiters })
  const { overrides } = service.running.service.get('one').limiter
  for (let i = 0; i < 5000; i++) await overrides.set(`${i}`.padEnd(1000, '-'), { limit: 3 })
  const list = overrides.list.bind(overrides)
  let read = 0
  let hasEnded = false
  overrides.list = async function* () {
    try {
      for await (const override of list()) {
        read++
        yield override
      }
    } finally {
      hasEnded = true
    }
  }
  const client = new ServiceClient({ url: new URL(service.url), token: service.token })
  for await (const line of client.lines('/v1/admin/overrides?limiter=one')) {
    expect(JSON.parse(line)).toMatchObject({ limits: { '': { limit: 3 } } })
    break
  }
  await until('the list has ended', async () => hasEnded)
  expect(read).toBeLessThan(5000)
})

it('an interrupted listing of overrides is an error for the client', async () => {
  await using service = await adminService({ limiters })
  const { overrides } = service.running.service.get('one').limiter
  overrides.list = async function* () {
    for (let i = 0; i < 1000; i++) yield { key: `key:${i}`, exempt: true }
    throw new Error('the store is gone')
  }
  await expect(service.overrides('one')).rejects.toMatchObject({ name: 'ClientError' })
  expect(await consume(service)).toBe(true)
})

describe('without Redis', () => {
  it('changes fail fast, limiters follow their onStoreError, and shadow settings stay in force', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const store = { redis: { url: server.url } }
    const open: LimiterConfig = { limits: limits(1)!, onStoreError: 'local' }
    await using service = await adminService({ limiters: { open }, store })
    await done(service, 'POST', '/v1/admin/shadow', { limiter: 'open', shadow: true })
    for (let i = 0; i < 3; i++) expect(await consume(service, 'ann', 'open')).toBe(true)
    await server.kill()
    const key = 'ann'
    const refused: [string, string, unknown][] = [
      ['POST', 'reset', { limiter: 'open', key }],
      ['POST', 'block', { limiter: 'open', key, ttl: '1h' }],
      ['POST', 'unblock', { limiter: 'open', key }],
      ['PUT', 'overrides', { limiter: 'open', key, exempt: true }],
      ['DELETE', 'overrides', { limiter: 'open', key }],
      ['GET', 'overrides?limiter=open', undefined],
      ['POST', 'shadow', { limiter: 'open', shadow: false }],
      ['GET', 'audit', undefined],
    ]
    for (const [method, path, body] of refused) {
      // Polls, since a machine stall may make one request slow.
      await expect
        .poll(async () => {
          const startMs = performance.now()
          const { status } = await service.ask(method, `/v1/admin/${path}`, body)
          return [path, status, performance.now() - startMs < 5000]
        })
        .toEqual([path, 503, true])
    }
    await service.steer()
    for (let i = 0; i < 3; i++) expect(await consume(service, 'ann', 'open')).toBe(true)
    // These requests must not depend on Redis.
    await done(service, 'POST', '/v1/admin/drain', { drain: true })
    await done(service, 'GET', '/v1/admin/limiters')
    await done(service, 'GET', '/v1/admin/limiters/open/top')
    expect(JSON.stringify(service.logged)).toContain('Redis is unreachable')
  })

  it('a service starts, and applies shadow settings once Redis responds', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const store = { redis: { url: server.url } }
    {
      await using service = await adminService({ limiters, store })
      await done(service, 'POST', '/v1/admin/shadow', { limiter: 'api', shadow: true })
    }
    server.freeze()
    const startMs = performance.now()
    await using service = await adminService({ limiters, store })
    expect(performance.now() - startMs).toBeLessThan(15_000)
    server.thaw()
    await until('it has the setting', async () => {
      await service.steer()
      const { limiters: listed } = await done(service, 'GET', '/v1/admin/limiters')
      return listed[0].shadowSettings['*'] === true
    })
  })
})
