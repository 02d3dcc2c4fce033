import { describe, expect, it } from 'vitest'
import type { GuardOptions, HandlerArguments } from '../../../src/http/index.ts'
import { createLimiter } from '../../../src/index.ts'
import {
  type AdapterUnderTest,
  inTurn,
  limitedTo,
  newStore,
  perMinute,
  rateLimitHeaders,
  type Server,
  START_MS,
  serve,
  statuses,
  time,
} from './fixture.ts'

/** Tests the effects of options. */
export function optionSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  describe('options', () => {
    const said = (name: string) => (request: Args[0]) => adapter.header(request, name)
    const ask = (server: Server, headers: Record<string, string>) => fetch(server.url, { headers })

    it.each(['sync', 'async'])('key identifies callers (%s)', async (kind) => {
      const key = said('x-user') as (request: Args[0]) => string
      const server = await serve(
        adapter,
        limitedTo(1, { key: kind === 'sync' ? key : async (request) => key(request) }),
      )
      const users = ['ann', 'bob', 'ann', 'bob']
      const answers = await inTurn(users, (user) => ask(server, { 'x-user': user }))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 429])
    })

    it.each(['sync', 'async'])('cost returns the units of a request (%s)', async (kind) => {
      const cost = (request: Args[0]) => Number(adapter.header(request, 'x-units'))
      const server = await serve(
        adapter,
        limitedTo(10, { cost: kind === 'sync' ? cost : async (request) => cost(request) }),
      )
      const answers = await inTurn(['7', '4', '3'], (units) => ask(server, { 'x-units': units }))
      expect(answers.map(({ status }) => status)).toEqual([200, 429, 200])
    })

    it.each(['sync', 'async'])('limits can be a function of the request (%s)', async (kind) => {
      const plans = { free: [perMinute(1)], pro: [perMinute(2)] }
      const limits = (key: string, request: Args[0]) =>
        key === 'ann' && adapter.header(request, 'x-plan') === 'pro' ? plans.pro : plans.free
      const server = await serve(adapter, {
        limits: kind === 'sync' ? limits : async (key, request) => limits(key, request),
        key: () => 'ann',
        store: newStore(),
      })
      const answers = await inTurn(['pro', 'free', 'pro', 'pro'], (plan) => ask(server, { 'x-plan': plan }))
      expect(answers.map(({ status }) => status)).toEqual([200, 429, 200, 429])
    })

    it.each(['sync', 'async'])('skip exempts a request only if it returns true (%s)', async (kind) => {
      const skip = (request: Args[0]) =>
        adapter.header(request, 'x-skip') === 'yes' || ('no' as unknown as boolean)
      const server = await serve(
        adapter,
        limitedTo(1, { skip: kind === 'sync' ? skip : async (request) => skip(request) }),
      )
      const answers = await inTurn(['yes', 'yes', 'no', 'yes', 'no'], (word) =>
        ask(server, { 'x-skip': word }),
      )
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 429])
      expect(answers.map((response) => response.headers.has('RateLimit'))).toEqual([
        false,
        false,
        true,
        false,
        true,
      ])
    })

    it('limiter can be shared', async () => {
      const limiter = createLimiter({ name: 'shared', limits: [perMinute(2)], store: newStore() })
      const key = () => 'ann'
      const [one, other] = [await serve(adapter, { limiter, key }), await serve(adapter, { limiter, key })]
      expect([await statuses(one, 1), await statuses(other, 2), await statuses(one, 1)]).toEqual([
        [200],
        [200, 429],
        [429],
      ])
    })

    it('headers: draft-7 sets the headers of draft 7', async () => {
      const server = await serve(adapter, limitedTo(1, { headers: 'draft-7' }))
      const expected = { 'ratelimit-policy': '1;w=60', ratelimit: 'limit=1, remaining=0, reset=60' }
      expect(Object.fromEntries(rateLimitHeaders(await fetch(server.url)))).toEqual(expected)
      time.nowMs += 10_000
      const denied = await fetch(server.url)
      expect(denied.headers.get('RateLimit')).toBe('limit=1, remaining=0, reset=50')
      expect(denied.headers.get('Retry-After')).toBe('50')
    })

    it('headers: legacy sets X-RateLimit headers', async () => {
      const response = await fetch((await serve(adapter, limitedTo(3, { headers: 'legacy' }))).url)
      expect(Object.fromEntries(rateLimitHeaders(response))).toEqual({
        'x-ratelimit-limit': '3',
        'x-ratelimit-remaining': '2',
        'x-ratelimit-reset': `${START_MS / 1000 + 60}`,
      })
    })

    it('headers: false sets only Retry-After', async () => {
      const server = await serve(adapter, limitedTo(1, { headers: false }))
      expect(rateLimitHeaders(await fetch(server.url))).toEqual([])
      const denied = await fetch(server.url)
      expect([rateLimitHeaders(denied), denied.headers.get('Retry-After')]).toEqual([[], '60'])
    })

    it('unknown options are rejected at construction', async () => {
      await expect(
        adapter.serve([{ ...limitedTo(1), keey: () => 'all' } as GuardOptions<Args>]),
      ).rejects.toMatchObject({
        ...{ code: 'invalid_option', value: 'keey' },
        message: expect.stringMatching(/^unknown option "keey" for \w+; did you mean "key"\?$/),
      })
    })

    it.each<[object, string]>([
      [{ windowMs: 60_000, max: 5 }, 'limits: [slidingWindow({ limit: 5, window: 60000 })]'],
      [{ limit: 5 }, "limits: [slidingWindow({ limit: 5, window: '1m' })]"],
      [{ keyGenerator: () => 'ann' }, 'key: (request) => ...'],
      [{ skipSuccessfulRequests: true }, "refundIf: 'successful'"],
      [{ timeWindow: '1 minute' }, "limits: [slidingWindow({ limit: 100, window: '1m' })]"],
      [{ onStoreError: 'allow' }, 'rateLimit({ limiter: createLimiter({ ..., onStoreError }) })'],
    ])(
      'an option of another package or of createLimiter is rejected with what to use: %j',
      async (own, use) => {
        await expect(adapter.serve([{ ...limitedTo(1), ...own }])).rejects.toMatchObject({
          ...{ code: 'invalid_option', value: Object.keys(own)[0] },
          message: expect.stringMatching(/^unknown option "\w+" for \w+; use /),
        })
        await expect(adapter.serve([{ ...limitedTo(1), ...own }])).rejects.toThrow(use)
      },
    )

    it('contradictory options are rejected at construction', async () => {
      await expect(adapter.serve([{}])).rejects.toMatchObject({ code: 'invalid_option' })
    })
  })
}
