// tier: integration
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { SlidegateError, StoreUnavailableError } from 'slidegate'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import type { Config } from '../../src/config/schema.ts'
import { redactError } from '../../src/redact.ts'
import { withRedis } from '../support/redis.ts'
import { testService } from '../support/service.ts'

const limiters: Config['limiters'] = {
  api: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1h' }], timeoutMs: 30_000 },
  both: { dimensions: { user: [{ kind: 'slidingWindow', limit: 1, window: '1h' }] } },
}

/** Returns a logger, and the lines that it writes. */
function recorded() {
  const lines: Record<string, unknown>[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)))
      done()
    },
  })
  const failures = () => lines.filter(({ msg }) => msg === 'request failed')
  return { log: pino({ level: 'debug' }, stream), lines, failures }
}

const SECRET = 'ann@example.com'

describe('the log', () => {
  it('grows by one line per second during an outage, even with 200 limiters', async () => {
    const { log, lines } = recorded()
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const { limits } = limiters.api!
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`limiter-${i}`, { limits }]))
    await using service = await testService({ limiters: many, store: { redis: { url: redis.url } } }, log)
    const ask = (i: number) =>
      service.post('/v1/consume', { limiter: `limiter-${i % 200}`, key: 'k' }).then(({ status }) => status)
    expect(await ask(0)).toBe(200)
    lines.length = 0
    await redis.kill()
    const beganMs = performance.now()
    let requests = 0
    // The circuit breaker opens after five requests.
    while (requests < 1200 || performance.now() - beganMs < 2500) {
      const statuses = await Promise.all(Array.from({ length: 50 }, () => ask(requests++)))
      expect(new Set(statuses)).toEqual(new Set([503]))
    }
    const seconds = Math.ceil((performance.now() - beganMs) / 1000)
    const down = lines.filter(({ msg }) => String(msg).includes('the store is down'))
    expect(down.length).toBe(1)
    expect(down[0]!.msg).toContain(new URL(redis.url).host)
    // There may be a line for the first failure of each kind, one for each part of the service, and one per second.
    expect(lines.length).toBeLessThanOrEqual(seconds + 12)
    const text = lines.map((line) => JSON.stringify(line)).join('\n')
    expect(text.length).toBeLessThan(1000 * lines.length)
    expect(text).not.toContain('"stack"')
  })

  it('contains a line for each failed request, and none for others', async () => {
    const { log, failures } = recorded()
    await using service = await testService({ limiters }, log)
    await service.post('/v1/consume', { limiter: 'api', key: SECRET })
    await service.post('/v1/consume', { limiter: 'api', key: SECRET })
    expect(failures()).toEqual([])
    await service.post('/v1/consume', { limiter: 'api', key: SECRET, cost: 0 })
    await service.get('/v1/nothing')
    expect(failures()).toMatchObject([
      {
        level: 30,
        method: 'POST',
        route: '/v1/consume',
        status: 400,
        code: 'invalid_request',
        limiter: 'api',
        caller: 'admin-link',
      },
      { level: 30, method: 'GET', status: 404, code: 'not_found' },
    ])
  })

  it('the log has the address of refused tokens: the first in full, then counts', async () => {
    const { log, lines, failures } = recorded()
    const auth = { tokens: [{ name: 'ops', role: 'admin' as const, token: 'a-token-of-operators' }] }
    await using service = await testService({ limiters, auth }, log)
    const ask = () => service.get('/v1/admin/overview', { authorization: 'Bearer guessed-guessed' })
    for (let i = 0; i < 50; i++) expect((await ask()).status).toBe(401)
    expect(failures()).toMatchObject([
      { level: 40, code: 'unauthorized', route: '/v1/admin/overview', address: '127.0.0.1' },
    ])
    await expect.poll(() => lines.some(({ msg }) => msg === 'more requests failed')).toBe(true)
    expect(JSON.stringify(lines)).not.toContain('guessed')
  })

  it('never contains a key, whatever fails', async () => {
    const { log, lines, failures } = recorded()
    await using redis = await withRedis()
    await using service = await testService({ limiters, store: { redis: { url: redis.url } } }, log)
    const post = (path: string, body: object) => service.post(path, { limiter: 'api', key: SECRET, ...body })
    await post('/v1/consume', {})
    const { token } = (await post('/v1/reserve', { key: `${SECRET}-2`, estimate: 1 })).body
    await post('/v1/consume', { cost: -1 })
    await post('/v1/consume', { [SECRET]: 1 })
    await post('/v1/consume', { requestId: SECRET })
    await post('/v1/consume', { value: SECRET })
    await post('/v1/consume', { plan: SECRET })
    await post('/v1/consume', { limiter: SECRET })
    await post('/v1/consume', { limiter: 'ann.example.com' })
    await post('/v1/consume', { limiter: 'both', key: { [SECRET]: SECRET } })
    await post('/v1/consume', { key: `${SECRET}\ud800` })
    await post('/v1/wait', { cost: 2 })
    await service.post('/v1/cancel', { limiter: 'both', token })
    await service.get(`/v1/${SECRET}`)
    await service.get(`/%zz${SECRET}`)
    for (const key of await redis.client.keys('*ann*')) await redis.client.set(key, SECRET)
    expect((await post('/v1/consume', {})).body.code).toBe('store_invalid_state')
    expect(failures().length).toBeGreaterThan(12)
    const text = JSON.stringify(lines)
    expect(text).not.toContain('ann@')
    expect(text).not.toContain('example.com')
    expect(text).not.toContain(token.slice(0, 12))
    // Hashes still distinguish keys.
    const keys = failures().flatMap(({ limiter, key }) => (limiter === 'api' ? [key] : []))
    expect(new Set(keys).size).toBe(2)
    expect(keys[0]).toMatch(/^[\w-]{16}$/)
  })

  it('never contains a key if the store is full', async () => {
    const { log, lines, failures } = recorded()
    await using service = await testService({ limiters, store: { memory: { maxKeys: 1 } } }, log)
    for (const key of [`${SECRET}-1`, `${SECRET}-2`])
      await service.post('/v1/consume', { limiter: 'api', key })
    expect(failures()).toMatchObject([{ code: 'store_full', err: { code: 'store_full' } }])
    expect(JSON.stringify(lines)).not.toContain('ann@')
  })

  it('contains keys if the configuration allows it', async () => {
    const { log, failures } = recorded()
    await using service = await testService({ limiters, logging: { keys: 'plain' } }, log)
    await service.post('/v1/consume', { limiter: 'api', key: SECRET, cost: 0 })
    expect(failures()).toMatchObject([{ key: SECRET }])
  })
})

it('removes the content of requests from logged errors', () => {
  const reply = Object.assign(new Error('ERR no'), { command: { name: 'evalsha', args: [SECRET] } })
  const failed = new StoreUnavailableError('error', 'the store did not decide', { cause: reply })
  const redacted = redactError(failed)
  expect(redacted).toMatchObject({
    type: 'StoreUnavailableError',
    code: 'store_unavailable',
    cause: { message: 'ERR no' },
  })
  expect(JSON.stringify(redacted)).not.toContain(SECRET)
  const wrong = new SlidegateError('invalid_key', `the key is "${SECRET}"`, SECRET)
  expect(redactError(wrong)).toEqual({ type: 'SlidegateError', code: 'invalid_key' })
  const looped = new Error('looped')
  looped.cause = looped
  expect(() => JSON.stringify(redactError(looped))).not.toThrow()
  expect(redactError(SECRET)).toEqual({ type: 'string' })
})
