// tier: system

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import {
  concurrency,
  createLimiter,
  distinct,
  type LimiterOptions,
  slidingWindow,
  tokenBucket,
} from 'slidegate'
import { calendarWindow } from 'slidegate/calendar'
import { type ServiceStoreOptions, serviceStore } from 'slidegate/client'
import { redisStore } from 'slidegate/redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { damagedBody, sentBodies } from '../../../slidegate/test/remote/bodies.ts'
import type { Config } from '../../src/config/schema.ts'
import { temporaryFolder } from '../support/cli.ts'
import { withRedis } from '../support/redis.ts'
import { type TestService, testService } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url))
const CHECK = 'the-token-of-a-checker'
const OWNER = 'the-token-of-an-owner'
const NARROW = 'the-token-of-the-narrow'

const config: Config = {
  limiters: { api: { limits: [{ kind: 'slidingWindow', limit: 5, window: '1h' }], timeoutMs: 30_000 } },
  store: { memory: {}, timeoutMs: 30_000 },
  auth: {
    tokens: [
      { name: 'checker', role: 'check', token: CHECK },
      { name: 'owner', role: 'check', token: OWNER, ownLimiters: ['*'] },
      { name: 'narrow', role: 'check', token: NARROW, ownLimiters: ['mine', 'mine.*'] },
    ],
  },
}

function limiterOf(
  { httpUrl }: { httpUrl: string },
  options: Partial<LimiterOptions> = {},
  how: ServiceStoreOptions = {},
) {
  const store = serviceStore(httpUrl, how)
  const limits = [slidingWindow({ limit: 2, window: '1h' })]
  return createLimiter({
    name: 'mine',
    limits,
    store,
    timeoutMs: 30_000,
    logger: false,
    ...options,
  } as LimiterOptions)
}

describe('declaring limiters', () => {
  const ask = (service: TestService, token: string, name: string) =>
    limiterOf(service, { name }, { token }).consume('ann')

  it('requires a token with ownLimiters, and matching names', async () => {
    await using service = await testService(config)
    expect((await ask(service, OWNER, 'anything')).source).toBe('store')
    expect((await ask(service, NARROW, 'mine')).allowed).toBe(true)
    expect((await ask(service, NARROW, 'mine.too')).allowed).toBe(true)
    const refused: [string, string, RegExp][] = [
      [NARROW, 'anything', /403: narrow can't declare the limits of "anything"/],
      [CHECK, 'mine', /403: checker can't/],
      ['a-token-that-nobody-has', 'mine', /401: unknown token/],
    ]
    for (const [token, name, message] of refused) {
      await expect(ask(service, token, name)).rejects.toMatchObject({
        ...{ reason: 'error', message: expect.stringMatching(message) },
      })
    }
    await expect(limiterOf(service).consume('ann')).rejects.toThrow(/401: a token is required/)
  })

  it('never works for names in the configuration', async () => {
    await using service = await testService(config)
    for (const name of ['api', 'slidegate.readiness', 'slidegate', 'envoy.domain', 'envoy']) {
      await expect(ask(service, OWNER, name)).rejects.toThrow(/403/)
    }
    const dimensions = { user: [slidingWindow({ limit: 1, window: '1h' })] }
    const within = limiterOf(service, { name: 'api', limits: undefined, dimensions } as never, {
      token: OWNER,
    })
    await expect(within.consume({ user: 'ann' } as never)).rejects.toThrow(/403/)
  })

  it('needs no token on loopback if none are configured', async () => {
    await using service = await testService({ limiters: {} })
    expect((await limiterOf(service).consume('ann')).allowed).toBe(true)
  })

  it('stops working for a name that a reload adds to the configuration', async () => {
    await using service = await testService({ limiters: {} })
    const limiter = limiterOf(service, { name: 'api' })
    expect((await limiter.consume('ann')).allowed).toBe(true)
    service.reload({ config: { ...config, auth: {} } as never, folder: '.', files: [] })
    await expect(limiter.consume('ann')).rejects.toThrow(/403/)
  })
})

describe.each(['memory', 'Redis'])('a service on %s', (kind) => {
  async function running(): Promise<{ service: TestService } & AsyncDisposable> {
    const redis = kind === 'Redis' ? await withRedis() : undefined
    const store = redis ? { redis: { url: redis.url } } : { memory: {} }
    const service = await testService({ limiters: config.limiters, store: { ...store, timeoutMs: 30_000 } })
    return {
      service,
      [Symbol.asyncDispose]: async () => {
        await service[Symbol.asyncDispose]()
        await redis?.[Symbol.asyncDispose]()
      },
    }
  }

  it('applies limits of every kind', async () => {
    await using scene = await running()
    const limits = {
      sliding: [slidingWindow({ limit: 2, window: '1h' })],
      zset: [slidingWindow({ limit: 2, window: '1h', log: 'zset' })],
      stream: [slidingWindow({ limit: 2, window: '1h', log: 'stream' })],
      fixed: [calendarWindow({ limit: 2, unit: 'month', timeZone: 'Asia/Kathmandu' })],
      bucket: [tokenBucket({ capacity: 2, refill: 1, interval: '1h' })],
      held: [concurrency({ limit: 2, ttl: '1h' })],
    }
    for (const [name, each] of Object.entries(limits)) {
      const limiter = limiterOf(scene.service, { name, limits: each, overrides: true })
      const consume = () => limiter.consume('ann', name === 'held' ? { requestId: randomUUID() } : {})
      const decisions = []
      for (let i = 0; i < 3; i++) decisions.push(await consume())
      expect(
        decisions.map(({ allowed }) => allowed),
        name,
      ).toEqual([true, true, false])
      expect(await limiter.refund('ann', decisions[0]!), name).toBe(1)
      await limiter.block('ann', '1h')
      expect((await consume()).blockedMs, name).toBeGreaterThan(0)
      await limiter.unblock('ann')
      await limiter.overrides.set('ann', 'exempt')
      expect((await consume()).allowed, name).toBe(true)
      for await (const override of limiter.overrides.list()) {
        expect(override, name).toEqual({ key: 'ann', exempt: true })
      }
      limiter.close()
    }
    const seen = limiterOf(scene.service, { name: 'seen', limits: [distinct({ limit: 1, window: '1h' })] })
    expect((await seen.consume('ann', { value: 'a' })).allowed).toBe(true)
    expect((await seen.consume('ann', { value: 'a' })).allowed).toBe(true)
    expect((await seen.consume('ann', { value: 'b' })).allowed).toBe(false)
  })

  it('rejects invalid calls without affecting others', async () => {
    const bodies = await sentBodies()
    await using scene = await running()
    const { service } = scene
    for (const key of ['ann', 'bob', 'k0', 'x'])
      expect((await service.post('/v1/consume', { limiter: 'api', key, cost: 2 })).status).toBe(200)
    const statuses = new Map<number, number>()
    const property = fc.asyncProperty(damagedBody(bodies), async (body) => {
      const { status } = await service.post('/v1/store', body ?? null)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      expect([200, 400, 403, 413]).toContain(status)
    })
    await fc.assert(property, { numRuns: 600 })
    expect(statuses.get(200)).toBeGreaterThan(30)
    expect(statuses.get(400)).toBeGreaterThan(30)
    for (const key of ['ann', 'bob', 'k0', 'x']) {
      expect((await service.post('/v1/peek', { limiter: 'api', key })).body.remaining).toBe(3)
    }
    await expect.poll(async () => (await service.get('/readyz')).status).toBe(200)
  })

  it('admits exactly the limit for four processes with 64 requests in flight each', async () => {
    await using scene = await running()
    const reports = await Promise.all(
      Array.from({ length: 4 }, () => work(scene.service.httpUrl, 4000, 64, 1500, 'throw').report),
    )
    const admitted = reports.reduce((sum, { told }) => sum + (told['store:true'] ?? 0), 0)
    const denied = reports.reduce((sum, { told }) => sum + (told['store:false'] ?? 0), 0)
    expect([admitted, denied]).toEqual([4500, 16_000 - 4500])
  })
})

interface Report {
  readonly told: Readonly<Record<string, number>>
  readonly slowestMs: number
}

/** Starts a process. `saw` resolves at its first message. */
function work(url: string, requests: number, width: number, limit: number, onStoreError: string) {
  const words = [WORKER, url, requests, width, limit, onStoreError].map(String)
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  const seen = new Map<string, () => void>()
  const report = new Promise<Report>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      if (line.startsWith('{')) resolve(JSON.parse(line))
      else seen.get(line)?.()
    })
    child.once('exit', (code) => reject(new Error(`a worker exited with ${code}`)))
  })
  return { report, saw: (what: string) => new Promise<void>((resolve) => seen.set(what, resolve)) }
}

it('every request gets an answer or an error if the service dies under load', async () => {
  await using redis = await withRedis()
  const folder = temporaryFolder()
  onTestFinished(() => folder.remove())
  const file = folder.write('slidegate.json', JSON.stringify({ store: { redis: { url: redis.url } } }))
  const service = await startProcess(['--config', file])
  const { report, saw } = work(service.url, 2 ** 30, 64, 2 ** 30, 'allow')
  await Promise.race([saw('store:true'), report])
  service.kill('SIGKILL')
  await service.ended
  const { told, slowestMs } = await report
  expect(Object.keys(told).sort()).toEqual(['failOpen:true', 'store:true'])
  expect(told['failOpen:true']).toBeGreaterThanOrEqual(1000)
  // On an idle machine, this takes less than 2 s.
  expect(slowestMs).toBeLessThan(20_000)
  const direct = createLimiter({
    ...{ name: 'audited', limits: [slidingWindow({ limit: 2 ** 30, window: '1h' })], timeoutMs: 30_000 },
    store: redisStore(redis.client),
  })
  let charged = 0
  for (const key of ['key0', 'key1', 'key2']) charged += 2 ** 30 - (await direct.peek(key)).remaining
  direct.close()
  // No reported decision is lost, and nothing is charged twice. Only the last call of each connection is unknown.
  expect(charged).toBeGreaterThanOrEqual(told['store:true']!)
  expect(charged).toBeLessThanOrEqual(told['store:true']! + 64)
})
