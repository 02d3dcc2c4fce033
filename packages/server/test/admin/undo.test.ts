// tier: integration
import { describe, expect, it } from 'vitest'
import type { AuditEntry } from '../../src/admin/api-types.ts'
import type { Config } from '../../src/config/schema.ts'
import { type AdminService, adminService, forEachStore } from './support.ts'

/** Shorter than the client's timeout, and longer than any machine stall. */
const timeoutMs = 9000

const limiters: Config['limiters'] = {
  api: {
    limits: [
      { kind: 'slidingWindow', limit: 120, window: '1m', name: 'minute' },
      { kind: 'tokenBucket', capacity: 50, refill: 1, interval: '1s', name: 'burst' },
    ],
    timeoutMs,
  },
  login: {
    dimensions: {
      user: [{ kind: 'slidingWindow', limit: 1, window: '1h', name: 'hourly' }],
      address: [{ kind: 'slidingWindow', limit: 90, window: '1h', name: 'hourly' }],
    },
    ban: { after: 1, within: '1h', for: '1h' },
    timeoutMs,
  },
  secretive: {
    limits: [{ kind: 'slidingWindow', limit: 3, window: '1h', name: 'hourly' }],
    hashKeys: 'a secret of sixteen bytes',
    timeoutMs,
  },
}

const secret = (name: string) => `${name}-${name}-${name}-${name}`
const auth: Config['auth'] = {
  tokens: [
    { name: 'ops', role: 'admin', token: secret('ops') },
    { name: 'reader', role: 'read', token: secret('reader') },
    { name: 'narrow', role: 'admin', token: secret('narrow'), limiters: ['login'] },
  ],
}

function operator(service: AdminService, token = secret('ops')) {
  const ask = (method: string, path: string, body?: unknown) =>
    service.ask(method, `/v1/admin/${path}`, body, token)
  // biome-ignore lint/suspicious/noExplicitAny: bodies of many shapes
  const done = async (method: string, path: string, body: unknown): Promise<any> => {
    const answer = await ask(method, path, body)
    expect(answer).toMatchObject({ status: 200 })
    return answer.body
  }
  const entries = async () => ((await ask('GET', 'audit')).body as { entries: AuditEntry[] }).entries
  return {
    ask,
    done,
    entries,
    latest: async () => (await entries())[0]!,
    undo: async (entry?: AuditEntry) => ask('POST', 'undo', { id: (entry ?? (await entries())[0]!).id }),
    overrides: async (limiter: string, key: unknown) => {
      const { body } = await service.ask('POST', '/v1/explain', { limiter, key }, secret('ops'))
      return (body as { overrides: object[] }).overrides
    },
  }
}

const ann = { limiter: 'api', key: 'ann' }

forEachStore((store) => {
  it('the audit has each change in words, with the reason', async () => {
    await using service = await adminService({ limiters, auth, store: store() })
    const { done, entries } = operator(service)
    const reason = 'a partner with a deadline'
    await done('PUT', 'overrides', { ...ann, limits: { minute: { limit: 300 } }, ttl: '1h', reason })
    const burst = { burst: { capacity: 100 } }
    await done('PUT', 'overrides', { ...ann, limits: { minute: { limit: 300, window: '2m' }, ...burst } })
    await done('PUT', 'overrides', { ...ann, exempt: true, ttl: '1h' })
    await done('DELETE', 'overrides', ann)
    await done('POST', 'block', { ...ann, ttl: '90m' })
    await done('POST', 'unblock', ann)
    await done('POST', 'block', ann)
    await done('POST', 'shadow', { limiter: 'api', limit: 'minute', shadow: true, reason })
    await done('POST', 'shadow', { limiter: 'api', shadow: null })
    const found = (await entries()).toReversed()
    expect(found.map(({ what, summary }) => [what, summary])).toEqual([
      ['override', 'minute: 120 → 300 in any 1 min, for 1 h'],
      [
        'override',
        'minute: 300 in any 1 min → 300 in any 2 min, burst: 50 tokens, refilled in 50 s → 100 tokens, refilled in 1 min 40 s, until deleted',
      ],
      [
        'override',
        'minute: 300 in any 2 min → 120 in any 1 min, burst: 100 tokens, refilled in 1 min 40 s → 50 tokens, refilled in 50 s, exempt, for 1 h',
      ],
      ['delete override', 'no longer exempt'],
      ['block', 'blocked for 1 h 30 min'],
      ['unblock', 'no longer blocked'],
      ['block', 'blocked until unblocked'],
      ['shadow', 'minute: as configured → shadow'],
      ['shadow', 'minute: shadow → as configured'],
    ])
    expect(found.map(({ reason }) => reason)).toMatchObject([reason, ...Array(6), reason, undefined])
    const log = JSON.stringify(service.logged)
    expect(log).toContain('admin action')
    expect(log).not.toContain(reason)
  })

  it('undoes overrides and blocks, each to the state before', async () => {
    await using service = await adminService({ limiters, auth, store: store() })
    const { done, undo, latest, overrides } = operator(service)
    await done('PUT', 'overrides', { ...ann, limits: { minute: { limit: 300 } }, ttl: '1h' })
    const first = await latest()
    await done('PUT', 'overrides', { ...ann, exempt: true })
    expect(await undo()).toMatchObject({
      status: 200,
      body: { summary: 'minute: 120 → 300 in any 1 min, no longer exempt, for 1 h' },
    })
    const [override] = (await overrides('api', 'ann')) as { expiresInMs: number }[]
    expect(override).toMatchObject({ limits: { minute: { limit: 300 } } })
    expect(override!.expiresInMs).toBeGreaterThan(3_500_000)
    expect(override!.expiresInMs).toBeLessThanOrEqual(3_600_000)
    await done('DELETE', 'overrides', ann)
    expect(await undo()).toMatchObject({ status: 200 })
    expect(await overrides('api', 'ann')).toMatchObject([{ limits: { minute: { limit: 300 } } }])
    await done('POST', 'block', { ...ann, ttl: '1h' })
    expect(await undo()).toMatchObject({ status: 200, body: { summary: 'no longer blocked' } })
    expect(await undo(first)).toMatchObject({
      status: 200,
      body: { summary: 'minute: 300 → 120 in any 1 min' },
    })
    expect(await overrides('api', 'ann')).toEqual([])
    await done('POST', 'block', ann)
    await done('POST', 'unblock', ann)
    expect(await undo()).toMatchObject({ status: 200, body: { summary: 'blocked until unblocked' } })
    expect(await overrides('api', 'ann')).toMatchObject([{ blockedMs: null }])
  })

  it('undoes shadow switches, of one limit and of all', async () => {
    await using service = await adminService({ limiters, auth, store: store() })
    const { ask, done, undo } = operator(service)
    const settings = async () => {
      const { body } = await ask('GET', 'limiters')
      return (body as { limiters: { shadowSettings: object }[] }).limiters[0]!.shadowSettings
    }
    await done('POST', 'shadow', { limiter: 'api', limit: 'minute', shadow: true })
    await done('POST', 'shadow', { limiter: 'api', shadow: false })
    expect(await undo()).toMatchObject({
      status: 200,
      body: { summary: 'all limits: enforced → as configured' },
    })
    expect(await settings()).toEqual({ minute: true })
    await done('POST', 'shadow', { limiter: 'api', shadow: null })
    expect(await undo()).toMatchObject({ status: 200 })
    expect(await settings()).toEqual({ minute: true })
  })

  it('returns an automatic ban that an unblock ended as a block for the rest of its time', async () => {
    await using service = await adminService({ limiters, auth, store: store() })
    const { done, undo, overrides } = operator(service)
    const key = { user: 'ann', address: '192.0.2.7' }
    for (let i = 0; i < 2; i++) {
      await service.ask('POST', '/v1/consume', { limiter: 'login', key }, secret('ops'))
    }
    const user = { user: 'ann' }
    await done('PUT', 'overrides', { limiter: 'login', key: user, limits: { limit: 9 } })
    expect(await undo()).toMatchObject({ status: 200, body: { summary: 'user.hourly: 9 → 1 in any 1 h' } })
    expect(await overrides('login', user)).toEqual([])
    await done('POST', 'unblock', { limiter: 'login', key: user })
    expect(await undo()).toMatchObject({ status: 200, body: { summary: 'blocked for 1 h' } })
    expect(await overrides('login', user)).toMatchObject([
      { dimension: 'user', blockedMs: expect.any(Number) },
    ])
  })

  it('an override on a banned key succeeds, with a hint that the ban stays', async () => {
    await using service = await adminService({ limiters, auth, store: store() })
    const { done } = operator(service)
    const key = { user: 'ann' }
    for (let i = 0; i < 2; i++) {
      const request = { limiter: 'login', key: { ...key, address: '192.0.2.7' } }
      await service.ask('POST', '/v1/consume', request, secret('ops'))
    }
    const change = { limiter: 'login', key, limits: { limit: 9 } }
    expect(await done('PUT', 'overrides', change)).toEqual({
      done: true,
      hint: expect.stringMatching(
        /^the key stays blocked for 1 h|59 min.*: an override doesn't end bans or blocks. Unblock it/,
      ),
    })
    await done('POST', 'unblock', { limiter: 'login', key })
    expect(await done('PUT', 'overrides', change)).toEqual({ done: true })
  })

  it('refuses to undo what has changed since, and names the difference', async () => {
    await using service = await adminService({ limiters, auth, store: store() })
    const { done, undo, latest, overrides } = operator(service)
    await done('PUT', 'overrides', { ...ann, limits: { minute: { limit: 300 } }, ttl: '1h' })
    const first = await latest()
    // By a program, without an entry in the audit.
    const { limiter } = service.running.service.get('api')
    await limiter.overrides.set('ann', { minute: { limit: 500 } }, { ttl: '1h' })
    expect(await undo(first)).toMatchObject({
      status: 409,
      body: {
        code: 'changed_since',
        detail:
          'a later change prevents this undo: minute: 300 → 500 in any 1 min. Restore the previous state by hand',
      },
    })
    // The same numbers for longer are a change, too.
    await limiter.overrides.set('ann', { minute: { limit: 300 } }, { ttl: '2h' })
    expect(await undo(first)).toMatchObject({ status: 409, body: { code: 'changed_since' } })
    expect(await overrides('api', 'ann')).toMatchObject([{ limits: { minute: { limit: 300 } } }])
    await done('POST', 'shadow', { limiter: 'api', limit: 'minute', shadow: true })
    const shadow = await latest()
    await done('POST', 'shadow', { limiter: 'api', limit: 'minute', shadow: false })
    expect(await undo(shadow)).toMatchObject({
      status: 409,
      body: {
        detail:
          'a later change prevents this undo: minute: shadow → enforced. Restore the previous state by hand',
      },
    })
  })

  it('undoes nothing twice, and no reset, and nothing with a hashed key', async () => {
    await using service = await adminService({ limiters, auth, store: store() })
    const { done, ask, undo, latest, entries } = operator(service)
    await done('POST', 'reset', ann)
    expect((await latest()).canUndo).toBe(false)
    expect(await undo()).toMatchObject({ status: 409, body: { code: 'not_undoable' } })
    await done('POST', 'block', { limiter: 'secretive', key: 'ann' })
    expect(await latest()).toMatchObject({ canUndo: false, summary: 'blocked until unblocked' })
    expect(await undo()).toMatchObject({ status: 409, body: { code: 'not_undoable' } })
    await done('POST', 'block', ann)
    const block = await latest()
    expect(block).toMatchObject({ canUndo: true, isUndone: false })
    const answer = await ask('POST', 'undo', { id: block.id, reason: 'the wrong key' })
    expect(answer).toMatchObject({ status: 200 })
    const [undoing, undone] = await entries()
    expect(undoing).toMatchObject({
      ...{ who: 'ops', what: 'undo', ...ann, detail: { what: 'block' }, reason: 'the wrong key' },
      ...{ undoes: block.id, result: 'done', canUndo: false, summary: 'no longer blocked' },
    })
    expect(undone).toMatchObject({ id: block.id, canUndo: false, isUndone: true })
    expect(await undo(block)).toMatchObject({ status: 409, body: { code: 'not_undoable' } })
    expect(await ask('POST', 'undo', { id: '1-1' })).toMatchObject({
      status: 404,
      body: { code: 'unknown_change' },
    })
  })

  it('undoing needs the role admin and access to the limiter', async () => {
    await using service = await adminService({ limiters, auth, store: store() })
    const { done, latest } = operator(service)
    await done('POST', 'block', ann)
    const entry = await latest()
    expect(await operator(service, secret('reader')).undo(entry)).toMatchObject({ status: 403 })
    expect(await operator(service, secret('narrow')).undo(entry)).toMatchObject({ status: 404 })
  })
})

describe('a reason', () => {
  it('a reason has at most 200 characters', async () => {
    await using service = await adminService({ limiters, auth })
    const { ask } = operator(service)
    expect(await ask('POST', 'block', { ...ann, reason: 'x'.repeat(200) })).toMatchObject({ status: 200 })
    for (const reason of ['x'.repeat(201), '', 7]) {
      expect(await ask('POST', 'block', { ...ann, reason })).toMatchObject({ status: 400 })
    }
  })
})
