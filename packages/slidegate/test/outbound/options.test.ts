import type { Dispatcher } from 'undici'
import { Agent, fetch as undiciFetch } from 'undici'
import { describe, expect, it } from 'vitest'
import { concurrency, createLimiter, distinct, slidingWindow } from '../../src/index.ts'
import {
  limitedFetch,
  limitedInterceptor,
  type OutboundOptions,
  upstreamLimiter,
} from '../../src/outbound/index.ts'
import { expectRefusal } from '../input/refusal.ts'

const limits = [{ limit: 50, window: '10s' }] as const
const limiter = upstreamLimiter({ limits })

describe('a limiter for an upstream', () => {
  it('adds the margin to its windows, by default a twentieth of the shortest', () => {
    const windowsOf = (marginMs?: number) =>
      upstreamLimiter({
        limits: [...limits, { limit: 1000, window: '1h' }],
        ...(marginMs !== undefined && { marginMs }),
      }).limits
    expect(windowsOf().map(({ name, windowMs }) => [name, windowMs])).toEqual([
      ['50-per-10s', 10_500],
      ['1000-per-1h', 3_600_500],
    ])
    expect(windowsOf(100).map(({ windowMs }) => windowMs)).toEqual([10_100, 3_600_100])
    expect(windowsOf(1).map(({ windowMs }) => windowMs)).toEqual([10_001, 3_600_001])
  })

  it.each([
    ['limits', [], 'invalid_limit', /at least one/],
    ['limits', [null], 'invalid_limit', /\{ limit, window \}/],
    ['marginMs', 0, 'invalid_option', /from 1 to the shortest window, 10000/],
    ['marginMs', 10_001, 'invalid_option', /from 1 to/],
    ['marginMs', 1.5, 'invalid_option', /an integer/],
  ] as const)('rejects %s: %s', async (name, given, code, right) => {
    const value = Array.isArray(given) && given.length > 0 ? given[0] : given
    await expectRefusal(() => upstreamLimiter({ limits, [name]: given }), { code, value, right })
  })

  it.each(['overrides', 'ban', 'dimensions'])('rejects %s, an option of other limiters', async (name) => {
    await expectRefusal(() => upstreamLimiter({ limits, [name]: true }), {
      code: 'invalid_option',
      value: name,
      right: /unknown option .* for upstreamLimiter/,
    })
  })

  it('rejects two limits with the same window', async () => {
    const twice = [...limits, { limit: 5, window: 10_000 }]
    await expectRefusal(() => upstreamLimiter({ limits: twice }), {
      code: 'duplicate_limit',
      value: 10_000,
      right: /keep only the lower limit/,
    })
  })
})

describe.each([
  ['limitedFetch', (...given: [never, never?]) => limitedFetch(fetch, ...given)],
  ['limitedInterceptor', (...given: [never, never?]) => limitedInterceptor(...given)],
])('%s', (_, make) => {
  it.each<[string, unknown, RegExp]>([
    ['key', 5, /a string or a function/],
    ['cost', '5', /a number or a function/],
    ['priority', 'high', /a number or a function/],
    ['maxWaitMs', -1, /from 0 to 2\^31 - 1/],
    ['maxHoldMs', 9, /from 10 to/],
    ['learn', 1, /true or false/],
    ['retry', true, /false or \{/],
  ])('rejects the option %s: %s', async (name, value, right) => {
    await expectRefusal(() => make(limiter as never, { [name]: value } as never), {
      code: 'invalid_option',
      value,
      right,
    })
  })

  it.each<[string, unknown, RegExp]>([
    ['maxAttempts', 0, /from 1 to 100/],
    ['maxAttempts', 101, /from 1 to 100/],
    ['maxDelayMs', -1, /from 0/],
    ['anyMethodOn429', 'yes', /true or false/],
  ])('rejects the option retry.%s: %s', async (name, value, right) => {
    await expectRefusal(() => make(limiter as never, { retry: { [name]: value } } as never), {
      code: 'invalid_option',
      value,
      right,
    })
  })

  it('rejects marginMs, an option of the limiter', async () => {
    await expectRefusal(() => make(limiter as never, { marginMs: 500 } as never), {
      code: 'invalid_option',
      value: 'marginMs',
      right: /unknown option .* for a limited fetch/,
    })
  })

  it('rejects anything but a limiter, and limits on slots or values', async () => {
    await expectRefusal(() => make({} as never), {
      code: 'invalid_option',
      value: {},
      right: /createLimiter/,
    }).catch(() => {})
    await expectRefusal(() => make(undefined as never), {
      code: 'invalid_option',
      value: undefined,
      right: /createLimiter/,
    })
    for (const limit of [
      concurrency({ limit: 5, ttl: '1m', name: 'held' }),
      distinct({ limit: 5, window: '1m', name: 'held' }),
    ]) {
      const limiter = createLimiter({ limits: [limit] })
      await expectRefusal(() => make(limiter as never), {
        code: 'invalid_option',
        value: 'held',
        right: /another limiter/,
      })
    }
  })

  it("rejects learn for a limiter that can't learn", async () => {
    const plain = createLimiter({ limits: [slidingWindow({ limit: 5, window: '1m' })] })
    await expectRefusal(() => make(plain as never, { learn: true } as never), {
      code: 'invalid_option',
      value: true,
      right: /upstreamLimiter/,
    })
  })
})

it('limitedFetch rejects a fetch that is not a function', async () => {
  await expectRefusal(() => limitedFetch('fetch' as never, limiter), {
    code: 'invalid_option',
    value: 'fetch',
    right: /a function/,
  })
})

it('types the result like the given fetch', () => {
  const global: typeof fetch = limitedFetch(fetch, limiter)
  const other: typeof undiciFetch = limitedFetch(undiciFetch, limiter)
  const interceptor: Dispatcher.DispatcherComposeInterceptor = limitedInterceptor(limiter)
  const dispatcher: Dispatcher = new Agent().compose(limitedInterceptor(limiter))
  const options: OutboundOptions = {
    key: ({ url, method }) => `${method} ${url.host}`,
    cost: 2,
    retry: { maxAttempts: 2 },
  }
  // @ts-expect-error: marginMs isn't an option here
  const misplaced: OutboundOptions = { marginMs: 5 }
  // @ts-expect-error: a key is a string
  const numbered: OutboundOptions = { key: 5 }
  // @ts-expect-error: a ban isn't an option of upstreamLimiter
  const banned: Parameters<typeof upstreamLimiter>[0] = { limits, ban: true }
  expect([global, other, interceptor, dispatcher, options, misplaced, numbered, banned]).toHaveLength(8)
})
