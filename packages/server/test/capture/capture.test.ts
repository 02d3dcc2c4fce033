// tier: system
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { until } from '../../../slidegate/test/support/until.ts'
import type { CapturedRequest } from '../../src/capture/capture.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { CaptureConfig, Config } from '../../src/config/schema.ts'
import { type AdminService, adminService } from '../admin/support.ts'
import { replayJson, slidegateHere, temporaryFolder } from '../support/cli.ts'
import { withRedis } from '../support/redis.ts'

const folder = temporaryFolder()
afterAll(folder.remove)
let files = 0
const newFile = () => join(folder.path, `capture-${++files}.jsonl`)

const limits = [{ kind: 'slidingWindow' as const, limit: 3, window: '1h' }]
const limiters: Config['limiters'] = {
  api: { limits, timeoutMs: 30_000 },
  other: { limits, timeoutMs: 30_000 },
  login: { dimensions: { user: limits, address: limits } },
}

function capturing(capture: CaptureConfig, more: Partial<Config> = {}): Promise<AdminService> {
  return adminService({ limiters, capture, ...more })
}

async function consume(service: AdminService, limiter: string, key: unknown, cost?: number): Promise<void> {
  const { status, body } = await service.ask('POST', '/v1/consume', { limiter, key, ...(cost && { cost }) })
  expect([200, 429], JSON.stringify(body)).toContain(status)
}

/** Returns the captured requests, as the service returns them. */
async function captured(
  service: AdminService,
  query = '',
  token = service.token,
): Promise<CapturedRequest[]> {
  const response = await fetch(`${service.url}/v1/admin/capture${query}`, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^application\/x-ndjson/)
  return linesIn(await response.text())
}

function linesIn(text: string): CapturedRequest[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as CapturedRequest)
}

function countBy(lines: readonly CapturedRequest[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { key } of lines) counts.set(key as string, (counts.get(key as string) ?? 0) + 1)
  return counts
}

describe('a capture', () => {
  it('records all requests of a sampled key and no others', async () => {
    const file = newFile()
    await using service = await capturing({ sampleRatio: 0.5, file })
    for (let round = 0; round < 4; round++)
      for (let i = 0; i < 60; i++) await consume(service, 'api', `user:${i}`)
    const lines = await captured(service)
    const counts = countBy(lines)
    expect(counts.size).toBeGreaterThan(15)
    expect(counts.size).toBeLessThan(45)
    expect(new Set(counts.values())).toEqual(new Set([4]))
    expect(service.running.service).toBeDefined()
  })

  it('records time, limiter, cost, outcome and a hash of the key', async () => {
    const file = newFile()
    await using service = await capturing({ file })
    await consume(service, 'api', 'ann@example.com', 2)
    await consume(service, 'api', 'ann@example.com', 2)
    const lines = await captured(service)
    expect(lines).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        limiter: 'api',
        key: expect.stringMatching(/^[\w-]{22}$/),
        cost: 2,
        allowed: true,
      },
      { ...lines[0], time: expect.any(String), allowed: false, deniedBy: ['3-per-1h'] },
    ])
    expect(Math.abs(Date.parse(lines[0]!.time) - Date.now())).toBeLessThan(60_000)
    expect(readFileSync(file, 'utf8')).not.toContain('ann')
  })

  it('records the sampled keys of a request with dimensions, with all their requests', async () => {
    const file = newFile()
    await using service = await capturing({ sampleRatio: 0.5, file })
    for (let i = 0; i < 120; i++)
      await consume(service, 'login', { user: `user-${i % 24}`, address: `192.0.2.${i % 40}` })
    const keys = (await captured(service)).map(({ key }) => key as Record<string, string>)
    const of = (dimension: string) => {
      const counts: Record<string, number> = {}
      for (const key of keys) {
        const each = key[dimension]
        if (each !== undefined) counts[each] = (counts[each] ?? 0) + 1
      }
      return Object.values(counts)
    }
    expect(new Set(of('user'))).toEqual(new Set([5]))
    expect(new Set(of('address'))).toEqual(new Set([3]))
    expect(of('user').length).toBeLessThan(24)
    expect(of('address').length).toBeLessThan(40)
  })

  it('hashes keys with the configured secret, or else a random one', async () => {
    const secret = 'a secret of many characters'
    const keys: unknown[] = []
    for (const capture of [{ secret }, { secret }, { secret: 'another secret of some' }, {}]) {
      const file = newFile()
      await using service = await capturing({ file, ...capture })
      await consume(service, 'api', 'ann')
      keys.push((await captured(service))[0]!.key)
    }
    expect(keys[0]).toBe(keys[1])
    expect(new Set(keys).size).toBe(3)
  })

  it('records the configured limiters only', async () => {
    await using service = await capturing({ file: newFile(), limiters: ['ot*'] })
    for (const limiter of ['api', 'other']) await consume(service, limiter, 'ann')
    expect((await captured(service)).map(({ limiter }) => limiter)).toEqual(['other'])
  })

  it('gives the same decisions in a replay', async () => {
    const file = newFile()
    await using service = await capturing({ file })
    for (let i = 0; i < 60; i++) await consume(service, 'api', `user:${i % 9}`, 1 + (i % 3))
    const lines = await captured(service)
    const report = await replayJson([file, '--key', 'key', '--limit', '3/1h'])
    const denied = lines.filter(({ allowed }) => !allowed).length
    expect(denied).toBeGreaterThan(10)
    expect([report.requests, report.denied, report.limits[0]!.fullestWindow]).toEqual([60, denied, 3])
  })

  it('follows a reload without a restart', async () => {
    const [first, second] = [newFile(), newFile()]
    await using service = await capturing({ file: first })
    const reload = (capture: CaptureConfig | undefined) =>
      service.running.reload({ config: { limiters, ...(capture && { capture }) }, folder: '/', files: [] })
    await consume(service, 'api', 'a')
    reload({ file: second })
    await consume(service, 'api', 'b')
    expect((await captured(service)).length).toBe(1)
    reload(undefined)
    await consume(service, 'api', 'c')
    expect((await service.ask('GET', '/v1/admin/capture')).status).toBe(404)
    expect(linesIn(readFileSync(first, 'utf8'))).toHaveLength(1)
    expect(linesIn(readFileSync(second, 'utf8'))).toHaveLength(1)
  })

  it('counts lines that it cannot write as dropped, and fails no request', async () => {
    const inside = join(folder.path, 'gone')
    mkdirSync(inside)
    const file = join(inside, 'capture.jsonl')
    await using service = await capturing({ file })
    rmSync(inside, { recursive: true })
    await consume(service, 'api', 'ann')
    expect(await captured(service)).toEqual([])
    expect(service.running.capture.stats()).toEqual({ written: 0, dropped: 1 })
    expect(service.logged.filter(({ msg }) => msg === "couldn't capture requests")).toHaveLength(1)
    mkdirSync(inside)
    await consume(service, 'api', 'ann')
    expect(await captured(service)).toHaveLength(1)
    expect(service.running.capture.stats()).toEqual({ written: 1, dropped: 1 })
  })
})

describe('captured requests', () => {
  const token = (name: string, limiters: string[]) => ({
    name,
    role: 'read' as const,
    token: `${name}-0123456789abcdef`,
    limiters,
  })
  const auth: Config['auth'] = {
    tokens: [token('all', ['*']), token('api', ['api']), { ...token('checker', ['*']), role: 'check' }],
  }

  it('only reach readers, for their own limiters', async () => {
    await using service = await capturing({ file: newFile() }, { auth })
    const ask = (limiter: string) =>
      service.ask('POST', '/v1/consume', { limiter, key: 'ann' }, 'all-0123456789abcdef')
    for (const limiter of ['api', 'other', 'api']) expect((await ask(limiter)).status).toBe(200)
    const names = async (query: string, who: string) =>
      (await captured(service, query, `${who}-0123456789abcdef`)).map(({ limiter }) => limiter)
    expect(await names('', 'all')).toEqual(['api', 'other', 'api'])
    expect(await names('?count=2', 'all')).toEqual(['other', 'api'])
    expect(await names('?limiter=other', 'all')).toEqual(['other'])
    expect(await names('', 'api')).toEqual(['api', 'api'])
    const refused = async (query: string, who?: string) =>
      (await service.ask('GET', `/v1/admin/capture${query}`, undefined, who && `${who}-0123456789abcdef`))
        .status
    expect(await refused('?limiter=other', 'api')).toBe(404)
    expect(await refused('?limiter=nobody', 'all')).toBe(404)
    expect(await refused('', 'checker')).toBe(403)
    expect(await refused('')).toBe(401)
    expect(await refused('?count=0', 'all')).toBe(400)
    expect(await refused('?count=1000000', 'all')).toBe(400)
  })

  it('cause a clear error if nothing is captured', async () => {
    await using service = await adminService({ limiters })
    const { status, body } = await service.ask('GET', '/v1/admin/capture')
    expect([status, body]).toMatchObject([404, { code: 'no_capture' }])
  })

  it('replay from the output of slidegate capture', async () => {
    await using service = await capturing({ file: newFile() })
    for (let i = 0; i < 9; i++) await consume(service, i % 2 ? 'api' : 'other', 'ann')
    const env = { SLIDEGATE_URL: service.url, SLIDEGATE_TOKEN: service.token }
    const all = await slidegateHere(['capture'], env)
    const api = await slidegateHere(['capture', 'api', '--count', '3'], env)
    expect([all.code, linesIn(all.stdout).length, api.code, linesIn(api.stdout).length]).toEqual([0, 9, 0, 3])
    const words = ['--key', 'key', '--limit', '2/1h']
    const report = await replayJson(['-', ...words, '--limiter', 'other'], all.stdout)
    expect([report.requests, report.denied, report.skippedReasons]).toEqual([5, 3, { 'another limiter': 4 }])
    const sample = folder.write('both.jsonl', all.stdout)
    const unclear = await slidegateHere(['replay', sample, ...words])
    expect([unclear.code, unclear.stderr]).toEqual([
      2,
      'slidegate: the log has requests for several limiters, such as "other" and "api"; choose one with --limiter\n',
    ])
    await using without = await adminService({ limiters })
    const none = await slidegateHere(['capture'], {
      SLIDEGATE_URL: without.url,
      SLIDEGATE_TOKEN: without.token,
    })
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('no requests are captured')])
  })
})

describe('a capture in Redis', () => {
  it('uses a stream of bounded length that all instances write to', async () => {
    await using redis = await withRedis()
    const store = { redis: { url: redis.url, prefix: 'slidegate:mine' } }
    const capture = { stream: true, maxLength: 100, secret: 'a secret of many characters' }
    await using one = await capturing(capture, { store })
    await using two = await capturing(capture, { store })
    // If Redis is slow, calls time out: lines in flight may be lost, and readers must retry.
    const lines = await until('the lines of both instances', async () => {
      await consume(one, 'api', 'ann')
      await consume(two, 'other', 'ann')
      await captured(two)
      const found = await captured(one)
      return new Set(found.map(({ limiter }) => limiter)).size === 2 && found
    })
    expect(new Set(lines.map(({ key }) => key)).size).toBe(1)
    for (let i = 0; i < 600; i++) await consume(one, 'other', `user:${i}`)
    const other = await until('the newest lines', () => captured(one, '?limiter=other'))
    expect(new Set(other.map(({ limiter }) => limiter))).toEqual(new Set(['other']))
    expect((await redis.client.xrevrange('slidegate:mine:{capture}', '+', '-')).length).toBeLessThan(300)
  })

  it('drops lines while Redis is down, without affecting requests', async () => {
    const redis = await withRedis()
    const limiters: Config['limiters'] = { api: { limits, onStoreError: 'local' } }
    await using service = await adminService({
      limiters,
      store: { redis: { url: redis.url } },
      capture: { stream: true },
    })
    await consume(service, 'api', 'ann')
    await redis[Symbol.asyncDispose]()
    await consume(service, 'api', 'ann')
    const { written, dropped } = await until('both', async () => {
      await service.running.capture.flush()
      const counts = service.running.capture.stats()
      return counts.written + counts.dropped >= 2 && counts
    })
    expect(written + dropped).toBe(2)
    expect(dropped).toBeGreaterThanOrEqual(1)
  })
})

describe('the configuration of a capture', () => {
  const problemsOf = (capture: string, more = ''): string => {
    const file = folder.write('wrong.yaml', `limiters: {}\ncapture: ${capture}\n${more}`)
    try {
      loadConfig(file, { environment: {} })
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }

  it('requires exactly one destination', () => {
    for (const wrong of ['{}', '{ stream: false }', '{ file: a, stream: true }'])
      expect(problemsOf(wrong), wrong).toContain('set either a file or `stream: true`')
    expect(problemsOf('{ stream: true }')).toContain('the store is in memory')
    expect(problemsOf('{ file: nowhere/at/all }')).toContain("can't write the file")
    expect(problemsOf('{ file: a }', 'logging: { decisionFile: nowhere/at/all }')).toContain("can't write")
    expect(problemsOf('{ file: a, sampleRatio: 0 }')).toContain('sampleRatio')
    expect(problemsOf('{ file: a, sampleRatio: 0.01, limiters: [a*], secret: 0123456789abcdef }')).toBe('')
    writeFileSync(join(folder.path, 'there'), '')
    expect(existsSync(join(folder.path, 'a'))).toBe(false)
  })
})
