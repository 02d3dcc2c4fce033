// tier: integration
import { describe, expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../../../../slidegate/test/support/redis-server.ts'
import type { CountSeries } from '../../../src/admin/api-types.ts'
import type { Config } from '../../../src/config/schema.ts'
import { slidegateHere } from '../../support/cli.ts'
import { type AdminService, adminService, forEachStore } from '../support.ts'
import { known, MINUTE_MS, START_MS } from './support.ts'

const limits = [{ kind: 'slidingWindow', limit: 3, window: '1h' }] as const
const limiters = {
  api: { limits, timeoutMs: 9000 },
  both: { dimensions: { user: limits, address: limits }, timeoutMs: 9000 },
  secret: { limits, hashKeys: 'a secret of sixteen bytes', timeoutMs: 9000 },
} as unknown as Config['limiters']

/** A week of requests is settled this long after its last minute. */
const SETTLED_MS = MINUTE_MS + 10_000

const at = (name: string, query = '') => `/v1/admin/limiters/${name}/history${query}`

async function consume(
  service: AdminService,
  limiter: string,
  key: unknown,
  requests: number,
): Promise<void> {
  for (let n = 0; n < requests; n++) await service.ask('POST', '/v1/consume', { limiter, key })
}

async function series(service: AdminService, path: string): Promise<CountSeries> {
  const { status, body } = await service.ask('GET', path)
  expect(status).toBe(200)
  return body as CountSeries
}

/** Polls, because the history is written by a timer. */
function allowedOf(service: AdminService, path: string) {
  return expect.poll(async () => {
    const found = await series(service, path)
    return known(found, found.allowed)
  })
}

forEachStore((store) => {
  it('the service shows the history of its limiters and keys', async () => {
    let nowMs = START_MS
    await using service = await adminService({ limiters, store: store() }, () => nowMs)
    await consume(service, 'api', 'ann', 5)
    await consume(service, 'api', 'bob', 1)
    await consume(service, 'both', { user: 'ann', address: '192.0.2.7' }, 2)
    nowMs += SETTLED_MS
    await allowedOf(service, at('api')).toEqual({ 0: 4 })
    await allowedOf(service, at('api', '?key=ann')).toEqual({ 0: 3 })
    await allowedOf(service, at('api', '?key=carl')).toEqual({ 0: 0 })
    await allowedOf(service, at('both', '?key=ann&dimension=user')).toEqual({ 0: 2 })
    const { keys, denied, ...rest } = await series(service, at('api'))
    expect(rest).toMatchObject({ limiter: 'api', range: '1h', stepSeconds: 60 })
    expect(keys).toEqual([
      { key: 'ann', allowed: 3, denied: 2, units: 3 },
      { key: 'bob', allowed: 1, denied: 0, units: 1 },
    ])
    nowMs = START_MS + 61 * MINUTE_MS
    await allowedOf(service, at('api', '?range=7d')).toEqual({ 0: 4 })
  })

  it('an operator or an override watches a key, which is in the audit', async () => {
    await using service = await adminService({ limiters, store: store() })
    const isWatched = async (query: string) => (await series(service, at('both', query))).isWatched
    const user = { limiter: 'both', key: 'ann', dimension: 'user' }
    expect(await isWatched('?key=ann&dimension=user')).toBe(false)
    const watch = (body: object) => service.ask('POST', '/v1/admin/watch', body)
    expect((await watch({ ...user, watch: true })).body).toEqual({ done: true })
    expect(await isWatched('?key=ann&dimension=user')).toBe(true)
    expect(await isWatched('?key=ann&dimension=address')).toBe(false)
    await watch({ limiter: 'both', key: { user: 'ann' }, watch: false })
    expect(await isWatched('?key=ann&dimension=user')).toBe(false)
    await service.ask('PUT', '/v1/admin/overrides', { ...user, exempt: true })
    expect(await isWatched('?key=ann&dimension=user')).toBe(true)
    const { body } = await service.ask('GET', '/v1/admin/audit')
    const whats = (body as { entries: { what: string }[] }).entries.map(({ what }) => what)
    expect(whats).toEqual(['override', 'stop watching', 'watch'])
  })

  it('requests for other limiters, dimensions or ranges are rejected', async () => {
    await using service = await adminService({ limiters, store: store() })
    const rejected = async (path: string) => {
      const { status, body } = await service.ask('GET', path)
      return [status, (body as { code: string }).code]
    }
    expect(await rejected(at('nothing'))).toEqual([404, 'unknown_limiter'])
    expect(await rejected(at('api', '?range=2h'))).toEqual([400, 'invalid_request'])
    expect(await rejected(at('api', '?key=ann&dimension=user'))).toEqual([400, 'invalid_key'])
    expect(await rejected(at('both', '?key=ann'))).toEqual([400, 'invalid_key'])
    const watched = await service.ask('POST', '/v1/admin/watch', { limiter: 'both', key: 'ann', watch: true })
    expect(watched).toMatchObject({
      status: 400,
      body: { detail: 'the key has no dimension; both expects one of user, address' },
    })
  })

  it('the command line prints a row per minute, and one per gap', async () => {
    let nowMs = START_MS
    await using service = await adminService({ limiters, store: store() }, () => nowMs)
    await consume(service, 'api', 'ann', 4)
    nowMs += SETTLED_MS
    await allowedOf(service, at('api')).toEqual({ 0: 3 })
    const access = ['--human', '--url', service.url, '--token', service.token!]
    const { stdout } = await slidegateHere(['history', 'api', ...access])
    expect(stdout.split('\n')).toEqual([
      'api, by minute',
      '  from               allowed  denied  shadow denied  units',
      '  2026-11-27T09:01Z  unknown',
      '  2026-11-27T10:00Z        3       1              0      3',
      '',
    ])
    const { stdout: ofKey } = await slidegateHere(['history', 'api', 'ann', '--range', '1h', ...access])
    expect(ofKey.split('\n')).toEqual([
      'ann at api, by minute',
      '  from               allowed  denied  units',
      '  2026-11-27T09:01Z  unknown',
      '  2026-11-27T10:00Z        3       1      3',
      '',
    ])
    const two = await slidegateHere(['history', 'both', 'user=ann', 'address=192.0.2.7', ...access])
    expect([two.code, two.stderr]).toEqual([
      2,
      'slidegate: the history is for one key; pass only one dimension, such as user=42\n',
    ])
  })
})

describe('on one Redis', () => {
  it('several instances add up, a restart loses nothing, and an outage delays the counts', async () => {
    const redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always'])
    onTestFinished(() => redis.stop())
    let nowMs = START_MS
    const api = { ...limiters.api!, onStoreError: 'local' as const }
    const config: Config = { limiters: { api }, store: { redis: { url: redis.url } } }
    await using one = await adminService(config, () => nowMs)
    {
      await using other = await adminService(config, () => nowMs)
      await consume(one, 'api', 'ann', 1)
      await consume(other, 'api', 'bob', 2)
    }
    await using after = await adminService(config, () => nowMs)
    await consume(after, 'api', 'carl', 3)
    nowMs += SETTLED_MS
    await allowedOf(one, at('api')).toEqual({ 0: 6 })
    await allowedOf(after, at('api')).toEqual({ 0: 6 })
    await redis.kill()
    // Decided by `onStoreError`, without Redis.
    await consume(one, 'api', 'dora', 2)
    nowMs += MINUTE_MS
    await redis.start()
    await expect
      .poll(
        async () => {
          const { body, status } = await one.ask('GET', at('api'))
          return status === 200 && known(body as CountSeries, (body as CountSeries).allowed)
        },
        { timeout: 15_000 },
      )
      .toEqual({ 0: 6, 1: 2 })
  })
})
