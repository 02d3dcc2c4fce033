import { describe, expect, it } from 'vitest'
import type { GuardOptions, HandlerArguments } from '../../../src/http/index.ts'
import { failurePolicy, type Store, StoreUnavailableError } from '../../../src/index.ts'
import { type AdapterUnderTest, limitedTo, rateLimitHeaders, serve, statuses } from './fixture.ts'

/** Tests errors caused by options and stores. */
export function errorSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  describe('an error goes to the framework once and never bypasses the limit', () => {
    const thrown = new Error('thrown by the user')
    const fail = () => {
      throw thrown
    }
    const unavailable = new StoreUnavailableError('error', 'the store is down')
    const NAMED = 'limiter "default": the store is down'
    const broken: Store = { failurePolicy, apply: (_, call) => call.reject(unavailable), close() {} }

    it.each<[string, GuardOptions<Args>, unknown]>([
      ['a key that is undefined', { key: () => undefined as unknown as string }, { code: 'invalid_key' }],
      ['a key that is empty', { key: async () => '' }, { code: 'invalid_key', value: '' }],
      [
        'a key that is not a string',
        { key: () => 7 as unknown as string },
        { code: 'invalid_key', value: 7 },
      ],
      ['a cost of 0', { cost: () => 0 }, { code: 'invalid_cost', value: 0 }],
      ['a cost of 1.5', { cost: async () => 1.5 }, { code: 'invalid_cost', value: 1.5 }],
      [
        'a cost that is undefined',
        { cost: async () => undefined as unknown as number },
        { code: 'invalid_cost' },
      ],
      ['a key function that throws', { key: fail }, thrown],
      ['a cost function that throws', { cost: fail }, thrown],
      ['a skip function that throws', { skip: fail }, thrown],
      ['a key function that rejects', { key: () => Promise.reject(thrown) }, thrown],
      ['a store that cannot decide', { store: broken }, { reason: 'error', message: NAMED }],
    ])('%s', async (_, options, error) => {
      const server = await serve(adapter, limitedTo(5, options))
      const response = await fetch(server.url)
      expect([response.status, rateLimitHeaders(response)]).toEqual([500, []])
      expect(server.errors).toEqual([error instanceof Error ? error : expect.objectContaining(error)])
      expect(server.served()).toBe(0)
    })

    it.each([
      ['throws', fail],
      ['rejects', () => Promise.reject(thrown)],
    ])('an onDenied that %s', async (_, onDenied) => {
      const server = await serve(adapter, limitedTo(1, { onDenied }))
      expect(await statuses(server, 2)).toEqual([200, 500])
      expect(server.errors).toEqual([thrown])
    })

    it.each([undefined, null, 0, 'route', 'router'])('even if %s is thrown', async (reason) => {
      const server = await serve(adapter, limitedTo(1, { key: () => Promise.reject(reason) }))
      expect(await statuses(server, 1)).toEqual([500])
      expect(server.errors).toEqual([expect.objectContaining({ cause: reason })])
      expect(server.served()).toBe(0)
    })
  })
}
