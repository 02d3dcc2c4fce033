import { describe, expect, it } from 'vitest'
import type { HandlerArguments } from '../../../src/http/index.ts'
import { createLimiter, failurePolicy, type OnStoreError, type Store } from '../../../src/index.ts'
import { type AdapterUnderTest, list, perMinute, rateLimitHeaders, type Server, serve } from './fixture.ts'

const down: Store = { failurePolicy, apply: (_, call) => call.reject(new Error('ECONNREFUSED')), close() {} }

/** Tests responses while the store is down, for each `onStoreError`. */
export function outageSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  describe('while the store is down', () => {
    const serveWith = (onStoreError: OnStoreError, options = {}): Promise<Server> => {
      const limits = [perMinute(4)]
      const limiter = createLimiter({ limits, store: down, onStoreError, instances: 2, logger: false })
      return serve(adapter, { limiter, ...options })
    }

    it('deny responds with 503, Retry-After and no rate limit headers', async () => {
      const server = await serveWith('deny')
      for (let i = 0; i < 8; i++) {
        const response = await fetch(server.url)
        expect(response.status).toBe(503)
        expect(response.headers.get('Retry-After')).toBe('1')
        expect(response.headers.get('Content-Type')).toBe('application/problem+json')
        expect(rateLimitHeaders(response)).toEqual([])
        expect(await response.json()).toEqual({
          type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
          title: 'Request cannot be satisfied due to temporary server capacity constraints',
          status: 503,
        })
      }
      expect([server.served(), server.errors]).toEqual([0, []])
    })

    it('deny calls onDenied instead, if it is set', async () => {
      const response = await fetch((await serveWith('deny', { onDenied: adapter.teapot })).url)
      expect([response.status, response.headers.get('Retry-After')]).toEqual([418, '1'])
    })

    it('allow serves the request without rate limit headers', async () => {
      const server = await serveWith('allow')
      for (let i = 0; i < 8; i++) {
        const response = await fetch(server.url)
        expect([response.status, await response.text()]).toEqual([200, 'served'])
        expect(rateLimitHeaders(response)).toEqual([])
        expect(response.headers.has('Retry-After')).toBe(false)
      }
    })

    it('throw passes an error to the framework', async () => {
      const server = await serveWith('throw')
      for (let i = 0; i < 8; i++) {
        const response = await fetch(server.url)
        expect([response.status, rateLimitHeaders(response)]).toEqual([500, []])
      }
      expect(server.errors.length).toBe(8)
      expect(server.errors[0]).toMatchObject({ code: 'store_unavailable', reason: 'error' })
      // The breaker opens after some failures.
      expect(server.errors).toContainEqual(
        expect.objectContaining({ code: 'store_unavailable', reason: 'down' }),
      )
      expect(server.served()).toBe(0)
    })

    it('local limits requests to the share of this process', async () => {
      const server = await serveWith('local')
      const responses: Response[] = []
      for (let i = 0; i < 3; i++) responses.push(await fetch(server.url))
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 429])
      const states = responses.map((response) => list(response, 'RateLimit'))
      expect(states).toMatchObject([1, 0, 0].map((r) => [['per-minute', { r }]]))
      expect(list(responses[0]!, 'RateLimit-Policy')).toEqual([['per-minute', { q: 4, w: 60 }]])
      expect(Number(responses[2]!.headers.get('Retry-After'))).toBeGreaterThan(30)
    })
  })
}
