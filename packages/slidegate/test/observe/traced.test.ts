// tier: integration
import { context, diag, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import express from 'express'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { rateLimit } from '../../src/adapters/express.ts'
import { withRateLimit } from '../../src/adapters/fetch.ts'
import {
  concurrency,
  createLimiter,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  StoreUnavailableError,
  slidingWindow,
} from '../../src/index.ts'
import { traced } from '../../src/observe/opentelemetry.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { listen } from '../adapters/listen.ts'
import { errorOf } from '../input/refusal.ts'
import { FAILURES, failing } from '../resilience/failing-store.ts'
import { useRedis } from '../support/use-redis.ts'

const { redis } = await useRedis()
const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
const tracer = provider.getTracer('test')

beforeAll(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()))
afterAll(() => context.disable())

const limits = [slidingWindow({ limit: 2, window: '1h', name: 'two' })]

function tracedOn(options: Partial<LimiterOptions> = {}): { limiter: Limiter; inner: Limiter } {
  exporter.reset()
  const inner = createLimiter({ name: 'api', limits, timeoutMs: 30_000, logger: false, ...options })
  return { inner, limiter: traced(inner, { tracer, attributes: { tenant: 'acme' } }) }
}

const spans = (): ReadableSpan[] => exporter.getFinishedSpans()

function only(): ReadableSpan {
  expect(spans().length).toBe(1)
  return spans()[0]!
}

const COMMON = { 'slidegate.rate_limiting.policy': 'api', tenant: 'acme' }
const ACQUIRED = { ...COMMON, 'slidegate.rate_limiting.result': 'acquired' }
const DENIED = { ...COMMON, 'slidegate.rate_limiting.result': 'denied' }

describe('the span of a decision', () => {
  it('contains the decision', async () => {
    const { limiter } = tracedOn({ store: redisStore(redis, { prefix: 'slidegate:traced' }) })
    for (const cost of [2, 1]) await limiter.consume('user:42', { cost })
    const [first, second] = spans()
    expect([first!.name, second!.name]).toEqual(['slidegate.consume', 'slidegate.consume'])
    expect(first!.attributes).toEqual({ ...ACQUIRED, 'slidegate.source': 'store', 'slidegate.cost': 2 })
    expect(second!.attributes).toEqual({
      ...DENIED,
      ...{ 'slidegate.source': 'store', 'slidegate.cost': 1, 'slidegate.denied_by': ['two'] },
      'slidegate.retry_after_ms': expect.any(Number),
    })
    expect(second!.attributes['slidegate.retry_after_ms']).toBeGreaterThan(3_500_000)
    expect(second!.status.code).toBe(SpanStatusCode.UNSET)
  })

  it('omits an infinite wait', async () => {
    const { limiter } = tracedOn()
    await limiter.consume('k', { cost: 3 })
    expect(only().attributes).not.toHaveProperty('slidegate.retry_after_ms')
  })

  const asking: Record<string, (limiter: Limiter) => Promise<unknown>> = {
    consume: (limiter) => limiter.consume('k', { requestId: 'job-1' }),
    consumeSync: async (limiter) => limiter.consumeSync('k', { requestId: 'job-1' }),
    acquire: (limiter) => limiter.acquire('k'),
    wait: (limiter) => limiter.wait('k'),
    schedule: (limiter) => limiter.schedule('k', () => {}),
  }

  it.each(Object.entries(asking))('exists for %s', async (name, ask) => {
    const { limiter } = tracedOn({ limits: [concurrency({ limit: 2, ttl: '1m' })] })
    await ask(limiter)
    expect(only().name).toBe(`slidegate.${name}`)
    expect(only().attributes).toMatchObject({ ...ACQUIRED, 'slidegate.source': 'store', 'slidegate.cost': 1 })
    const isQueued = name === 'wait' || name === 'schedule'
    expect('slidegate.time_in_queue_ms' in only().attributes).toBe(isQueued)
  })

  it('exists for reserve', async () => {
    const { limiter } = tracedOn()
    const reservation = await limiter.reserve('k', 2)
    expect(only().name).toBe('slidegate.reserve')
    expect(only().attributes).toMatchObject({ ...ACQUIRED, 'slidegate.cost': 2 })
    expect(await reservation.settle(1)).toEqual({ returned: 1, added: 0 })
  })

  it('covers all requests of consumeMany', async () => {
    const { limiter } = tracedOn()
    await limiter.consumeMany([{ key: 'k' }, { key: 'k' }, { key: 'k' }, { key: 'other', cost: 2 }])
    expect(only().name).toBe('slidegate.consumeMany')
    expect(only().attributes).toEqual({
      ...COMMON,
      ...{ 'slidegate.acquired': 3, 'slidegate.denied': 1, 'slidegate.cost': 5 },
    })
  })

  it("doesn't exist for other methods", async () => {
    const { limiter } = tracedOn({ overrides: true })
    await limiter.peek('k')
    await limiter.charge('k', 1)
    await limiter.explain('k')
    await limiter.block('k', '1m')
    await limiter.isBlocked('k')
    await limiter.unblock('k')
    await limiter.overrides.set('k', 'exempt')
    await limiter.reset('k')
    expect([limiter.waiting().length, limiter.stats().clockSteps, limiter.name]).toEqual([0, 0, 'api'])
    expect(spans()).toEqual([])
  })
})

describe('the parent of a span', () => {
  it.each(['consume', 'wait'] as const)('equals the active span: %s', async (method) => {
    const { limiter } = tracedOn({ store: redisStore(redis, { prefix: `slidegate:${method}` }) })
    const [one, other] = await Promise.all(
      ['one', 'other'].map((name) =>
        tracer.startActiveSpan(name, async (span) => {
          await limiter[method]('k')
          // The caller continues in its own span.
          expect(trace.getActiveSpan()).toBe(span)
          span.end()
          return span.spanContext().spanId
        }),
      ),
    )
    const parents = spans()
      .filter((span) => span.name === `slidegate.${method}`)
      .map((span) => span.parentSpanContext?.spanId)
    expect(parents).toEqual([one, other])
  })

  it('stays active for tasks, which run after the span has ended', async () => {
    const { limiter } = tracedOn()
    await tracer.startActiveSpan('mine', async (mine) => {
      await limiter.schedule('k', async () => {
        expect(trace.getActiveSpan()).toBe(mine)
        expect(only().name).toBe('slidegate.schedule')
      })
    })
  })
})

describe('the span of a failure', () => {
  it('contains a fixed word and never the message, which may contain a key', async () => {
    const store = redisStore({
      command: () => Promise.reject(new Error("unknown command, with args: 'user:42'")),
    })
    const { limiter } = tracedOn({ store })
    await expect(limiter.consume('user:42')).rejects.toThrow('user:42')
    const { attributes, events, status } = only()
    expect(attributes).toEqual({ ...COMMON, 'error.type': 'error' })
    expect(status).toEqual({ code: SpanStatusCode.ERROR, message: 'error' })
    expect(events).toMatchObject([
      { name: 'exception', attributes: { 'exception.type': 'StoreUnavailableError' } },
    ])
    expect(JSON.stringify([attributes, events, status])).not.toContain('user:42')
  })

  it.each<[string, (limiter: Limiter) => unknown]>([
    ['invalid_cost', (limiter) => limiter.consumeSync('k', { cost: 0 })],
    ['invalid_cost', (limiter) => limiter.consume('k', { cost: 0 })],
    ['invalid_option', (limiter) => limiter.acquire('k')],
    ['invalid_option', (limiter) => limiter.consumeMany('k' as never)],
    ['invalid_key', (limiter) => limiter.wait('')],
    ['invalid_key', (limiter) => limiter.schedule('', () => {})],
  ])('contains the code %s', async (code, ask) => {
    const { limiter } = tracedOn()
    expect(await errorOf(() => ask(limiter) as Promise<unknown>)).toMatchObject({ code })
    expect(only().attributes).toEqual({ ...COMMON, 'error.type': code })
    expect(only().status.code).toBe(SpanStatusCode.ERROR)
  })

  it('contains the reason and the limits of a failed wait', async () => {
    const { limiter } = tracedOn()
    await limiter.consume('k', { cost: 2 })
    exporter.reset()
    expect(await errorOf(() => limiter.wait('k', { maxWaitMs: 0 }))).toMatchObject({ reason: 'timeout' })
    expect(only().attributes).toMatchObject({
      ...DENIED,
      ...{ 'error.type': 'timeout', 'slidegate.denied_by': ['two'] },
    })
  })

  it('succeeds if only the task fails', async () => {
    const complaints: unknown[] = []
    const complain = (...words: unknown[]) => void complaints.push(words)
    diag.setLogger({ error: complain, warn: complain, info() {}, debug() {}, verbose() {} })
    onTestFinished(() => diag.disable())
    const { limiter } = tracedOn()
    await expect(limiter.schedule('k', () => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
    // A span that ended twice, for example, would be reported here.
    expect(complaints).toEqual([])
    expect(only().attributes).toMatchObject(ACQUIRED)
    expect(only().status.code).toBe(SpanStatusCode.UNSET)
    expect(await errorOf(() => limiter.schedule('k', 'task' as never))).toMatchObject({
      code: 'invalid_option',
    })
  })

  it("doesn't exist if consumeSync isn't supported", async () => {
    const { limiter } = tracedOn({ store: redisStore(redis, { prefix: 'slidegate:sync' }) })
    expect(() => limiter.consumeSync('k')).toThrow('consume')
    expect(spans()).toEqual([])
  })

  it('reports a failed store, with or without a decision', async () => {
    const store = failing(memoryStore(), FAILURES.rejects)
    const { limiter } = tracedOn({ store, onStoreError: 'allow' })
    await limiter.consume('k')
    expect(only().attributes).toMatchObject({ ...ACQUIRED, 'slidegate.source': 'failOpen' })
    const throwing = tracedOn({ store })
    expect(await errorOf(() => throwing.limiter.consume('k'))).toBeInstanceOf(StoreUnavailableError)
    expect(only().status.code).toBe(SpanStatusCode.ERROR)
  })
})

describe('a traced limiter', () => {
  it('refunds decisions of the wrapped limiter, and vice versa', async () => {
    const { limiter, inner } = tracedOn()
    const one = await limiter.consume('k')
    const other = limiter.consumeSync('k')
    expect([await inner.refund('k', one), await limiter.refund('k', other)]).toEqual([1, 1])
    const permits = tracedOn({ limits: [concurrency({ limit: 1, ttl: '1m' })] })
    const permit = await permits.limiter.acquire('k')
    expect(await permit.release()).toBe(true)
  })

  it('calls listeners, which can be removed', async () => {
    const { limiter, inner } = tracedOn()
    const heard: unknown[] = []
    const listener = (event: { decision: unknown }) => heard.push(event.decision)
    expect(limiter.on('decision', listener)).toBe(limiter)
    const decision = await limiter.consume('k')
    expect(heard).toEqual([decision])
    expect(limiter.off('decision', listener)).toBe(limiter)
    inner.consumeSync('k')
    expect(heard.length).toBe(1)
  })

  it('works with several keys', async () => {
    exporter.reset()
    const inner = createLimiter({ name: 'api', dimensions: { user: limits, ip: limits } })
    const limiter = traced(inner, { tracer })
    await limiter.consume({ user: 'a', ip: null })
    expect(only().attributes).toMatchObject({ 'slidegate.rate_limiting.policy': 'api' })
    expect(await limiter.isBlocked({ user: 'a' }).catch(({ code }) => code)).toBe('invalid_option')
  })

  it('works in adapters, with one span per request', async () => {
    const { limiter } = tracedOn()
    const handler = withRateLimit(() => new Response('here'), { limiter, key: () => 'k' })
    const statuses = [1, 2, 3].map(async () => (await handler(new Request('http://localhost/'))).status)
    expect(await Promise.all(statuses)).toEqual([200, 200, 429])
    const results = spans().map(({ attributes }) => attributes['slidegate.rate_limiting.result'])
    expect(results).toEqual(['acquired', 'acquired', 'denied'])

    const remote = tracedOn({ store: redisStore(redis, { prefix: 'slidegate:express' }) })
    const app = express()
    app.use(rateLimit({ limiter: remote.limiter, key: () => 'k', refundIf: 'successful' }))
    app.get('/', (_, response) => void response.send('here'))
    const server = await listen(app)
    onTestFinished(() => server.close())
    for (let i = 0; i < 5; i++) {
      expect((await fetch(server.url)).status).toBe(200)
      await vi.waitFor(async () => expect((await remote.inner.peek('k')).remaining).toBe(2), {
        timeout: 30_000,
      })
    }
    expect(spans().map(({ name }) => name)).toEqual(Array.from({ length: 5 }, () => 'slidegate.consume'))
  })
})

describe('without recording', () => {
  it.each([
    ['no SDK', undefined],
    ['no sampled spans', new BasicTracerProvider({ sampler: new AlwaysOffSampler() }).getTracer('off')],
  ])('and with %s, decisions are unchanged', async (_, off) => {
    exporter.reset()
    const inner = createLimiter({ limits: [concurrency({ limit: 9, ttl: '1m' })] })
    const limiter = traced(inner, off && { tracer: off })
    const decision = await limiter.consume('k', { requestId: 'job-1' })
    limiter.consumeSync('k', { requestId: 'job-2' })
    await limiter.acquire('k')
    await limiter.wait('k')
    expect(await limiter.schedule('k', () => 'done')).toBe('done')
    expect(await limiter.refund('k', decision)).toBe(1)
    expect(spans()).toEqual([])
  })
})
