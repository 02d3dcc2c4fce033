// tier: system
import { createRequire } from 'node:module'
import { Metadata } from '@grpc/grpc-js'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { freePort } from '../../../slidegate/test/support/ports.ts'
import type { Config } from '../../src/config/schema.ts'
import { VERSION } from '../../src/service/instance.ts'
import { METHOD, rateLimitClient } from '../envoy/support/client.ts'
import { domainsIn } from '../envoy/support/envoy-service.ts'
import { type TestService, testService } from '../support/service.ts'
import { startCollector } from './collector.ts'

const LIMITERS: Config['limiters'] = {
  api: { limits: [{ kind: 'slidingWindow', limit: 2, window: '1h', name: 'hourly' }] },
  soon: { limits: [{ kind: 'tokenBucket', capacity: 1, refill: 1, interval: '3s' }] },
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const PARENT = { traceparent: `00-${TRACE}-${SPAN}-01` }

const SDK = /@opentelemetry\/(sdk-trace|exporter)/
const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((path) => SDK.test(path))

const consume = (service: TestService, key = 'ann', headers = {}) =>
  service.post('/v1/consume', { limiter: 'api', key }, headers)

it('without tracing, its packages are not loaded', async () => {
  await using service = await testService({ limiters: LIMITERS })
  expect((await consume(service)).status).toBe(200)
  expect(loaded()).toBe(false)
  await using collector = await startCollector()
  await using traced = await testService({ limiters: LIMITERS, tracing: { endpoint: collector.url } })
  expect((await consume(traced)).status).toBe(200)
  expect(loaded()).toBe(true)
})

describe('with tracing', () => {
  it('each decision has a span below the caller span, without the key', async () => {
    await using collector = await startCollector()
    {
      await using service = await testService({
        limiters: LIMITERS,
        tracing: { endpoint: `${collector.url}/` },
      })
      const key = 'anneliese'
      await Promise.all([consume(service, key, PARENT), consume(service, 'bartholomew')])
      for (let i = 0; i < 2; i++) await consume(service, key)
      // Sends both concurrently, so that the second must wait even on a slow machine.
      const wait = () => service.post('/v1/wait', { limiter: 'soon', key }, PARENT)
      await Promise.all([wait(), wait()])
      const requests = [{ key }, { key: 'cunegonde' }]
      await service.post('/v1/consume', { limiter: 'api', requests }, PARENT)
      await service.post('/v1/consume', { limiter: 'nobody', key })
      await service.post('/v1/peek', { limiter: 'api', key })
    }
    // Waits for all spans, which arrive late on a slow machine.
    await expect.poll(() => collector.spans.length).toBeGreaterThan(0)
    const found = (name: string) => collector.spans.filter((span) => span.name === `slidegate.${name}`)
    const below = collector.spans.filter(({ traceId }) => traceId === TRACE)
    expect(below.every(({ parentSpanId }) => parentSpanId === SPAN)).toBe(true)
    const alone = collector.spans.filter(({ traceId }) => traceId !== TRACE)
    expect(alone.length).toBeGreaterThan(2)
    expect(alone.every(({ parentSpanId }) => !parentSpanId)).toBe(true)
    const denied = collector.spans.find(
      (span) => span.attributes['slidegate.rate_limiting.result'] === 'denied',
    )
    expect(denied?.attributes).toMatchObject({
      'slidegate.rate_limiting.policy': 'api',
      'slidegate.source': 'store',
      'slidegate.cost': 1,
    })
    const waits = found('wait')
    expect(waits.map(({ traceId }) => traceId)).toEqual([TRACE, TRACE])
    const queued = waits.map(({ attributes }) => Number(attributes['slidegate.time_in_queue_ms']))
    expect(Math.max(...queued)).toBeGreaterThan(100)
    expect(collector.resources[0]).toMatchObject({ 'service.name': 'slidegate', 'service.version': VERSION })
    for (const word of ['anneliese', 'bartholomew', 'cunegonde']) expect(collector.text).not.toContain(word)
  })

  it('each decision for Envoy has a span', async () => {
    await using collector = await startCollector()
    const rules =
      'domain: gate\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 1 } }]'
    {
      const listen = { grpc: '127.0.0.1:0' }
      const config: Config = {
        limiters: {},
        listen,
        envoy: { files: ['.'] },
        tracing: { endpoint: collector.url },
      }
      await using service = await testService(config, undefined, domainsIn({ 'rules.yaml': rules }))
      using client = rateLimitClient(service.grpcAddress!)
      const metadata = new Metadata()
      metadata.set('traceparent', PARENT.traceparent)
      const request = { domain: 'gate', descriptors: [{ entries: [{ key: 'user', value: 'anneliese' }] }] }
      const { path, requestSerialize, responseDeserialize } = METHOD
      for (let i = 0; i < 2; i++) {
        await new Promise((resolve, reject) => {
          client.raw.makeUnaryRequest(
            path,
            requestSerialize,
            responseDeserialize,
            request,
            metadata,
            (error, told) => (error ? reject(error) : resolve(told)),
          )
        })
      }
    }
    await expect.poll(() => collector.spans).toHaveLength(2)
    for (const { traceId, parentSpanId } of collector.spans)
      expect([traceId, parentSpanId]).toEqual([TRACE, SPAN])
    const results = collector.spans.map(({ attributes }) => attributes['slidegate.rate_limiting.result'])
    expect(results).toEqual(['acquired', 'denied'])
    expect(collector.spans[0]!.attributes).toMatchObject({ 'slidegate.rate_limiting.policy': 'envoy.gate' })
    expect(collector.text).not.toContain('anneliese')
  })

  it('only a share of decisions has spans, unless the caller decides', async () => {
    await using collector = await startCollector()
    {
      const tracing = { endpoint: collector.url, sampleRatio: 0 }
      await using service = await testService({ limiters: LIMITERS, tracing })
      for (let i = 0; i < 5; i++) await consume(service)
      await consume(service, 'ann', PARENT)
      await consume(service, 'ann', { traceparent: `00-${TRACE}-${SPAN}-00` })
      await consume(service, 'ann', { traceparent: 'nonsense' })
    }
    await expect.poll(() => collector.spans).toMatchObject([{ traceId: TRACE, parentSpanId: SPAN }])
  })
})

describe('tracing', () => {
  // Both wait until the service times out.
  it.concurrent('affects no request if the collector is down', async () => {
    const tracing = { endpoint: `http://127.0.0.1:${await freePort()}` }
    await using service = await testService({ limiters: LIMITERS, tracing })
    for (let i = 0; i < 600; i++) expect((await consume(service, `${i}`)).status).toBe(200)
  })

  it.concurrent('lets the service stop even if the collector hangs', async () => {
    await using collector = await startCollector()
    collector.hang()
    const service = await testService({ limiters: LIMITERS, tracing: { endpoint: collector.url } })
    await consume(service)
    let ticks = 0
    const ticking = setInterval(() => ticks++, 100)
    await service[Symbol.asyncDispose]()
    clearInterval(ticking)
    // On its own, the exporter would wait for 10 s. A machine stall only delays ticks.
    expect(ticks).toBeLessThan(75)
    await expect.poll(() => collector.spans).toHaveLength(1)
  })

  it('logs once that the collector rejects spans', async () => {
    await using collector = await startCollector()
    const lines: { msg: string }[] = []
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
    {
      const tracing = { endpoint: `${collector.url}/nowhere` }
      await using service = await testService({ limiters: LIMITERS, tracing }, log)
      const { limiter } = service.service.get('api')
      for (let i = 0; i < 2000; i++) await limiter.consume(`${i}`)
    }
    expect(collector.spans).toEqual([])
    const said = () => lines.filter(({ msg }) => msg === "can't send spans; they are dropped")
    await expect.poll(() => said().length).toBeGreaterThan(0)
    expect(said()).toHaveLength(1)
  })

  it('sends a limited number of spans after the collector has hung', async () => {
    await using collector = await startCollector()
    collector.hang()
    {
      await using service = await testService({ limiters: LIMITERS, tracing: { endpoint: collector.url } })
      const { limiter } = service.service.get('api')
      for (let i = 0; i < 10_000; i++) await limiter.consume(`${i}`)
      collector.answer()
    }
    // The collector only gets the queued spans and those in flight.
    await expect.poll(() => collector.spans.length).toBeGreaterThan(2000)
    expect(collector.spans.length).toBeLessThan(4000)
  })
})
