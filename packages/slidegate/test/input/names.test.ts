import { expect, it } from 'vitest'
import { clientAddress } from '../../src/http/index.ts'
import {
  concurrency,
  createLimiter,
  distinct,
  fixedWindow,
  memoryStore,
  slidingCount,
  slidingCounter,
  slidingWindow,
  tokenBucket,
  withDenyCache,
  withLeases,
} from '../../src/index.ts'
import { measure, traced } from '../../src/observe/opentelemetry.ts'
import { limitedFetch, limitedInterceptor, upstreamLimiter } from '../../src/outbound/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { serveStore, serviceStore } from '../../src/stores/remote/index.ts'
import { expectRefusal } from './refusal.ts'

// A misspelled option would silently do nothing: a limit with `shadw: true` would deny.

const window = { limit: 10, window: '1m' }
const LIMITS: Record<string, [make: (options: never) => unknown, right: object]> = {
  slidingWindow: [slidingWindow, window],
  fixedWindow: [fixedWindow, window],
  slidingCounter: [slidingCounter, window],
  distinct: [distinct, window],
  tokenBucket: [tokenBucket, { capacity: 10, refill: 1, interval: '1s' }],
  concurrency: [concurrency, { limit: 10, ttl: '1m' }],
}

it.each(Object.entries(LIMITS))('%s rejects an unknown option', async (_, [make, right]) => {
  await expectRefusal(() => make({ ...right, shadw: true } as never), {
    code: 'invalid_limit',
    value: 'shadw',
    right: /unknown option "shadw" for this limit; did you mean "shadow"\?/,
  })
  expect(() => make({ ...right, shadw: undefined } as never)).not.toThrow()
})

const limits = [slidingWindow({ limit: 10, window: '1m' })]
const limiter = createLimiter({ limits, overrides: true })
const client = { command: async () => null }
const upstream = upstreamLimiter({ limits: [{ limit: 10, window: '1m' }] })

/** Each function passes the given options along with the required ones. Adapters are covered by their own suite. */
const TAKERS: Record<string, (options: object) => unknown> = {
  createLimiter: (options) => createLimiter({ limits, ...options }),
  breaker: (breaker) => createLimiter({ limits, breaker }),
  ban: (ban) => createLimiter({ limits, ban: { after: 1, within: '1m', for: '1m', ...ban } }),
  set: (options) => limiter.overrides.set('ann', 'exempt', options),
  memoryStore: (options) => memoryStore(options),
  redisStore: (options) => redisStore(client, options),
  'the first argument of redisStore': (options) =>
    redisStore({ url: 'redis://127.0.0.1:1', ...options }).close(),
  serviceStore: (options) => serviceStore('https://limits.example.com', options),
  serveStore: (options) => serveStore(memoryStore(), options),
  withLeases: (options) => withLeases(memoryStore(), options),
  withDenyCache: (options) => withDenyCache(memoryStore(), options),
  slidingCount: (options) => slidingCount({ period: '1m', ...options }),
  upstreamLimiter: (options) => upstreamLimiter({ limits: [{ limit: 10, window: '1m' }], ...options }),
  'a limited fetch': (options) => [
    limitedInterceptor(upstream, options),
    limitedFetch(fetch, upstream, options),
  ],
  retry: (retry) => limitedFetch(fetch, upstream, { retry }),
  clientAddress: (options) => clientAddress({ trust: 1, ...options }),
  'a request': (options) => limiter.consume('ann', options),
  measure: (options) => measure(limiter, options)(),
  traced: (options) => traced(limiter, options),
}

it.each(Object.entries(TAKERS))('%s rejects an unknown option', async (what, make) => {
  await expectRefusal(() => make({ tiemoutMs: 5 }), {
    ...{ code: 'invalid_option', value: 'tiemoutMs' },
    right: new RegExp(
      `unknown option "tiemoutMs" for ${what.replaceAll(/[(){}]/g, '\\$&')}; (expected one of: \\w+|did you mean "timeoutMs"\\?)`,
    ),
  })
  await make({ tiemoutMs: undefined })
})

it('class instances can have other properties', () => {
  class Settings {
    readonly limits = limits
    readonly source = 'a file'
    get name() {
      return 'api'
    }
  }
  expect(createLimiter(new Settings()).name).toBe('api')
})
