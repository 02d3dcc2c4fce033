// tier: integration
import { request } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { type TestService, testService } from '../support/service.ts'

const config: Config = {
  limiters: {
    api: { limits: [{ kind: 'slidingWindow', limit: 1, window: '1h' }], maxWaiting: 2 },
    soon: { limits: [{ kind: 'tokenBucket', capacity: 1, refill: 1, interval: '100ms' }] },
  },
}

const length = ({ service }: TestService, limiter = 'api') => service.get(limiter).limiter.waiting().length

/** Asks, and can hang up. */
function waitFor(
  service: TestService,
  body: object,
): { hangUp(): void; readonly ended: Promise<number | undefined> } {
  const asked = request(`${service.httpUrl}/v1/wait`, {
    agent: false,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  })
  const ended = new Promise<number | undefined>((resolve) => {
    asked.on('response', (response) => {
      response.resume().on('end', () => resolve(response.statusCode))
    })
    asked.on('error', () => resolve(undefined))
  })
  asked.end(JSON.stringify(body))
  return { hangUp: () => asked.destroy(), ended }
}

describe('waiting', () => {
  it('ends when there is room', async () => {
    await using service = await testService(config)
    for (let i = 0; i < 3; i++) {
      const answer = await service.post('/v1/wait', { limiter: 'soon', key: 'ann' })
      expect(answer).toMatchObject({ status: 200, body: { limiter: 'soon', allowed: true } })
    }
  })

  it('ends at once where it would be for nothing', async () => {
    await using service = await testService({ ...config, caps: { wait: '2s' } })
    await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
    const never = await service.post('/v1/wait', { limiter: 'api', key: 'ann', cost: 2 })
    expect(never).toMatchObject({ status: 429, body: { code: 'wait_impossible' } })
    expect(never.headers.get('retry-after')).toBeNull()
    // In less than the hour that is asked for: the configuration allows two seconds.
    const late = await service.post('/v1/wait', { limiter: 'api', key: 'ann', maxWaitMs: 3_600_000 })
    expect(late).toMatchObject({ status: 429, body: { code: 'wait_timeout' } })
    expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(3500)
  })

  it('ends for one who hangs up behind an answer that has no end', async () => {
    await using service = await testService({ ...config, caps: { wait: '2h', inFlight: 2 } })
    await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
    const body = JSON.stringify({ limiter: 'api', key: 'ann', maxWaitMs: 7_000_000 })
    const host = 'HTTP/1.1\r\nHost: localhost\r\n'
    const type = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
    const socket = connect(Number(new URL(service.httpUrl).port), '127.0.0.1')
    socket.write(`GET /v1/admin/tail ${host}\r\nPOST /v1/wait ${host}${type}\r\n${body}`)
    await expect.poll(() => length(service)).toBe(1)
    socket.destroy()
    await expect.poll(() => length(service)).toBe(0)
    // Nor does it take room among those under way.
    const again = await service.post('/v1/consume', { limiter: 'api', key: 'bob' })
    expect(again.status).toBe(200)
  })

  it('goes on in the line of the limiter that takes the place of its own', async () => {
    await using service = await testService({ ...config, caps: { wait: '2h' } })
    const limiterOf = (limit: number): Config => ({
      ...config,
      limiters: { api: { limits: [{ kind: 'slidingWindow', limit, window: '1h' }] } },
    })
    await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
    const waits = [1, 2].map(() => waitFor(service, { limiter: 'api', key: 'ann', maxWaitMs: 7_000_000 }))
    await expect.poll(() => length(service)).toBe(2)
    const former = service.service.get('api').limiter
    service.reload({ config: limiterOf(2), folder: '', files: [] })
    // Two in an hour: one was before the change.
    expect(await Promise.race(waits.map(({ ended }) => ended))).toBe(200)
    await expect.poll(() => length(service)).toBe(1)
    expect(former.waiting().length).toBe(0)
    const peeked = await service.post('/v1/peek', { limiter: 'api', key: 'ann' })
    expect(peeked.body).toMatchObject({ allowed: false, remaining: 0 })
    service.reload({ config: limiterOf(3), folder: '', files: [] })
    expect(await Promise.all(waits.map(({ ended }) => ended))).toEqual([200, 200])
  })

  it('of many is refused', async () => {
    await using service = await testService({ ...config, caps: { wait: '2h' } })
    await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
    const waiting = [1, 2].map(() => waitFor(service, { limiter: 'api', key: 'ann', maxWaitMs: 7_000_000 }))
    await expect.poll(() => length(service)).toBe(2)
    const full = await service.post('/v1/wait', { limiter: 'api', key: 'bob', maxWaitMs: 7_000_000 })
    expect(full).toMatchObject({ status: 429, body: { code: 'wait_full' } })
    for (const each of waiting) each.hangUp()
  })

  it('ends for one who hangs up, and the next in line comes', async () => {
    await using service = await testService({ ...config, caps: { wait: '2h' } })
    await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
    const first = waitFor(service, { limiter: 'api', key: 'ann', maxWaitMs: 7_000_000 })
    await expect.poll(() => length(service)).toBe(1)
    const second = waitFor(service, { limiter: 'api', key: 'ann', maxWaitMs: 7_000_000 })
    await expect.poll(() => length(service)).toBe(2)
    first.hangUp()
    await expect.poll(() => length(service)).toBe(1)
    await service.service.get('api').limiter.reset('ann')
    expect(await second.ended).toBe(200)
  })

  it('that was over as he hung up is not charged', async () => {
    await using service = await testService(config)
    const { limiter } = service.service.get('api')
    // He is gone before the decision is there, which the store has made already.
    const wait = limiter.wait.bind(limiter)
    let decided: (() => void) | undefined
    limiter.wait = async (key, options) => {
      const decision = await wait(key, { ...options, signal: new AbortController().signal })
      await new Promise<void>((resolve) => {
        decided = resolve
      })
      return decision
    }
    let isNoticed = false
    service.app.server.on('request', ({ url }, response) => {
      if (url === '/v1/wait') response.on('close', () => (isNoticed = true))
    })
    const waiting = waitFor(service, { limiter: 'api', key: 'ann' })
    await expect.poll(() => decided).toBeDefined()
    expect((await service.post('/v1/peek', { limiter: 'api', key: 'ann' })).body.remaining).toBe(0)
    waiting.hangUp()
    await waiting.ended
    await expect.poll(() => isNoticed).toBe(true)
    decided!()
    await expect
      .poll(async () => (await service.post('/v1/peek', { limiter: 'api', key: 'ann' })).body.remaining)
      .toBe(1)
  })

  it('ends when the service does', async () => {
    const service = await testService({ ...config, caps: { wait: '2h' } })
    await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
    const waiting = waitFor(service, { limiter: 'api', key: 'ann', maxWaitMs: 7_000_000 })
    await expect.poll(() => length(service)).toBe(1)
    await service.stop()
    expect(await waiting.ended).toBe(503)
  })
})
