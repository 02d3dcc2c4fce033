import { describe, expect, it } from 'vitest'
import type { DeniedPolicy, GuardOptions, HandlerArguments } from '../../../src/http/index.ts'
import { createLimiter, type Limiter, memoryStore, slidingWindow } from '../../../src/index.ts'
import {
  type AdapterUnderTest,
  ask,
  newStore,
  perMinute,
  type Server,
  START_MS,
  serve,
  statuses,
  time,
  until,
} from './fixture.ts'

/** Tests requests that exceed the limits, with each `denied` policy. */
export function deniedSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  const drops = adapter.drops ?? true

  /** Creates a limiter with a short window and the real clock. */
  const soon = (limit: number): Limiter =>
    createLimiter({ limits: [slidingWindow({ limit, window: '100ms' })], store: memoryStore() })

  /** Creates a limiter whose window doesn't move during a test. */
  const never = (limit: number, maxWaiting?: number): Limiter =>
    createLimiter({ limits: [perMinute(limit)], store: newStore(), ...(maxWaiting && { maxWaiting }) })

  const serveBy = (
    limiter: Limiter,
    denied: GuardOptions<Args>['denied'],
    options: GuardOptions<Args> = {},
  ): Promise<Server> => serve(adapter, { limiter, key: () => 'k', denied, ...options })

  describe.each<[string, DeniedPolicy]>([
    ['delay', { delay: '50s' }],
    ['queue', { queue: 10, maxWait: '50s' }],
  ])('a request with denied: %s', (_, denied) => {
    it('gets served when there is room, with the headers of that time', async () => {
      const server = await serveBy(soon(2), denied)
      const responses = await Promise.all(Array.from({ length: 6 }, () => ask(server)))
      expect(responses.map(({ status }) => status)).toEqual(Array(6).fill(200))
      for (const { headers } of responses)
        expect(headers.get('RateLimit')).toMatch(/^"2-per-100ms";r=[01];t=1$/)
      expect(server.served()).toBe(6)
    })

    it('gets served immediately if there is room', async () => {
      const server = await serveBy(never(3), denied)
      expect(await statuses(server, 3)).toEqual([200, 200, 200])
    })

    it('gets rejected immediately if it would have to wait too long', async () => {
      const server = await serveBy(never(1), denied)
      expect(await statuses(server, 1)).toEqual([200])
      time.nowMs += 1000
      const response = await ask(server)
      expect([response.status, response.headers.get('Retry-After')]).toEqual([429, '59'])
      expect(response.headers.get('RateLimit')).toBe('"per-minute";r=0;t=59')
      expect(await response.json()).toMatchObject({ status: 429, 'violated-policies': ['per-minute'] })
    })

    it('gets rejected immediately if it never fits', async () => {
      const server = await serveBy(never(3), denied, { cost: () => 4 })
      const response = await ask(server)
      expect([response.status, response.headers.get('Retry-After')]).toEqual([429, null])
    })

    it("frees its place and isn't charged if the client disconnects", async () => {
      const limiter = never(1)
      const server = await serveBy(
        limiter,
        typeof denied === 'object' && 'queue' in denied ? { queue: 10, maxWait: '1h' } : { delay: '1h' },
      )
      expect(await statuses(server, 1)).toEqual([200])
      const abort = new AbortController()
      const hung = ask(server, {}, { signal: abort.signal })
      hung.catch(() => {})
      await until(() => limiter.waiting().length === 1)
      abort.abort()
      await expect(hung).rejects.toThrow()
      await until(() => limiter.waiting().length === 0)
      time.nowMs = START_MS + 60_000
      // Another request can use the uncharged units.
      expect(await statuses(server, 1)).toEqual([200])
      expect([server.served(), server.errors]).toEqual([2, []])
    })
  })

  describe('the queue', () => {
    it('holds at most its maximum, rejects further requests, and loses none', async () => {
      const limiter = soon(1)
      const server = await serveBy(limiter, { queue: 3, maxWait: '50s' })
      const answers = await Promise.all(Array.from({ length: 20 }, () => ask(server)))
      const served = answers.filter(({ status }) => status === 200).length
      expect(answers.every(({ status }) => status === 200 || status === 429)).toBe(true)
      expect(served).toBeGreaterThanOrEqual(4)
      expect(served).toBe(server.served())
      for (const { status, headers } of answers) {
        if (status === 429) expect(Number(headers.get('Retry-After'))).toBeGreaterThanOrEqual(1)
      }
      expect(limiter.waiting().length).toBe(0)
    })

    it('serves requests in order', async () => {
      const order: string[] = []
      const limiter = soon(1)
      const server = await serveBy(
        limiter,
        { queue: 10, maxWait: '50s' },
        {
          onAllowed: (_decision, ...args) => order.push(adapter.header(args[0], 'x-place')!),
        },
      )
      const answers: Promise<Response>[] = []
      for (const place of ['1', '2', '3', '4', '5']) {
        const before = limiter.waiting().length
        answers.push(ask(server, { 'x-place': place }))
        await until(() => limiter.waiting().length > before || order.includes(place))
      }
      await Promise.all(answers)
      expect(order).toEqual(['1', '2', '3', '4', '5'])
    })

    it("also obeys the limiter's maxWaiting", async () => {
      const limiter = never(1, 10)
      const server = await serveBy(limiter, { queue: 1000, maxWait: '1h' })
      await ask(server)
      const abort = new AbortController()
      const all = Array.from({ length: 20 }, () =>
        ask(server, {}, { signal: abort.signal }).catch(() => undefined),
      )
      const rejected = await Promise.race(all)
      expect(rejected?.status).toBe(429)
      expect(limiter.waiting().length).toBeLessThanOrEqual(10)
      abort.abort()
      await Promise.all(all)
    })
  })

  it('a function can return a policy for each request', async () => {
    const server = await serveBy(never(1), (request) =>
      adapter.header(request, 'x-patient') === 'yes' ? { delay: '1s' } : 'reject',
    )
    expect(await statuses(server, 2)).toEqual([200, 429])
    expect((await ask(server, { 'x-patient': 'yes' })).status).toBe(429)
    expect(server.errors).toEqual([])
  })

  it('a function that returns an invalid policy fails the request', async () => {
    const server = await serveBy(never(1), () => 'wait' as DeniedPolicy)
    expect(await statuses(server, 1)).toEqual([500])
    expect(server.errors).toEqual([expect.objectContaining({ code: 'invalid_option', value: 'wait' })])
  })

  it.runIf(drops)('drop closes the connection without a response', async () => {
    const server = await serveBy(never(1), 'drop', { onDenied: adapter.teapot })
    expect(await statuses(server, 1)).toEqual([200])
    await expect(ask(server)).rejects.toThrow('fetch failed')
    await expect(ask(server)).rejects.toThrow('fetch failed')
    time.nowMs += 60_000
    expect(await statuses(server, 1)).toEqual([200])
    expect([server.served(), server.errors]).toEqual([2, []])
  })

  it.runIf(drops)('drop also closes connections of clients in `deny`', async () => {
    const server = await serveBy(never(1), 'drop', { address: { trust: 0 }, deny: ['127.0.0.1', '::1'] })
    await expect(ask(server)).rejects.toThrow('fetch failed')
    expect(server.served()).toBe(0)
  })

  it.skipIf(drops)('drop is rejected at construction', async () => {
    await expect(adapter.serve([{ limiter: never(1), denied: 'drop' }])).rejects.toMatchObject({
      code: 'invalid_option',
      value: 'drop',
    })
  })
}
