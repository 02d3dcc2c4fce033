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

/** Sends a request that can disconnect. */
function waitFor(
  service: TestService,
  body: object,
): { hangUp(): void; readonly ended: Promise<number | undefined> } {
  const sent = request(`${service.httpUrl}/v1/wait`, {
    agent: false,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  })
  const ended = new Promise<number | undefined>((resolve) => {
    sent.on('response', (response) => {
      response.resume().on('end', () => resolve(response.statusCode))
    })
    sent.on('error', () => resolve(undefined))
  })
  sent.end(JSON.stringify(body))
  return { hangUp: () => sent.destroy(), ended }
}

describe('waiting', () => {
  it('ends when the limit allows the request', async () => {
    await using service = await testService(config)
    for (let i = 0; i < 3; i++) {
      const answer = await service.post('/v1/wait', { limiter: 'soon', key: 'ann' })
      expect(answer).toMatchObject({ status: 200, body: { limiter: 'soon', allowed: true } })
    }
  })

  it('fails immediately if it would be pointless', async () => {
    await using service = await testService({ ...config, caps: { wait: '2s' } })
    await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
    const never = await service.post('/v1/wait', { limiter: 'api', key: 'ann', cost: 2 })
    expect(never).toMatchObject({ status: 429, body: { code: 'wait_impossible' } })
    expect(never.headers.get('retry-after')).toBeNull()
    // The configuration caps the wait at two seconds, so an hour has no effect.
    const late = await service.post('/v1/wait', { limiter: 'api', key: 'ann', maxWaitMs: 3_600_000 })
    expect(late).toMatchObject({ status: 429, body: { code: 'wait_timeout' } })
    expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(3500)
  })

  it('ends if the client disconnects while an endless response precedes it on the connection', async () => {
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
    // The request no longer counts as in flight either.
    const again = await service.post('/v1/consume', { limiter: 'api', key: 'bob' })
    expect(again.status).toBe(200)
  })

  it('continues in the queue of the new limiter after a reload', async () => {
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
    // The new limit is two, and one is used.
    expect(await Promise.race(waits.map(({ ended }) => ended))).toBe(200)
    await expect.poll(() => length(service)).toBe(1)
    expect(former.waiting().length).toBe(0)
    const peeked = await service.post('/v1/peek', { limiter: 'api', key: 'ann' })
    expect(peeked.body).toMatchObject({ allowed: false, remaining: 0 })
    service.reload({ config: limiterOf(3), folder: '', files: [] })
    expect(await Promise.all(waits.map(({ ended }) => ended))).toEqual([200, 200])
  })

  it('fails if too many requests are waiting', async () => {
    await using service = await testService({ ...config, caps: { wait: '2h' } })
    await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
    const waiting = [1, 2].map(() => waitFor(service, { limiter: 'api', key: 'ann', maxWaitMs: 7_000_000 }))
    await expect.poll(() => length(service)).toBe(2)
    const full = await service.post('/v1/wait', { limiter: 'api', key: 'bob', maxWaitMs: 7_000_000 })
    expect(full).toMatchObject({ status: 429, body: { code: 'wait_full' } })
    for (const each of waiting) each.hangUp()
  })

  it('ends if the client disconnects, and the next one moves up', async () => {
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

  it('charges nothing if the client disconnects just as the request is allowed', async () => {
    await using service = await testService(config)
    const { limiter } = service.service.get('api')
    // Delays the decision, so that the client disconnects after the store has charged the request.
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

  it('ends when the service stops', async () => {
    const service = await testService({ ...config, caps: { wait: '2h' } })
    await service.post('/v1/consume', { limiter: 'api', key: 'ann' })
    const waiting = waitFor(service, { limiter: 'api', key: 'ann', maxWaitMs: 7_000_000 })
    await expect.poll(() => length(service)).toBe(1)
    await service.stop()
    expect(await waiting.ended).toBe(503)
  })
})
