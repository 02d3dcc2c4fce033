import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Decision } from '../../src/decision.ts'
import { HEADER_FORMATS } from '../../src/http/headers.ts'
import { createLimiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { type ResponseHeaders, readResponseHeaders } from '../../src/outbound/response-headers.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { anyCharacter } from '../support/characters.ts'

const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5)

function read(fields: Readonly<Record<string, string>>): ResponseHeaders {
  const lower = new Headers(fields)
  return readResponseHeaders((name) => lower.get(name), NOW_MS)
}

/** Returns the result without undefined fields. */
function quotas(fields: Readonly<Record<string, string>>): unknown {
  return JSON.parse(JSON.stringify(read(fields).quotas))
}

describe('quotas', () => {
  it('come from draft 8 and later: a list of policies and a list of states', () => {
    const fields = {
      'RateLimit-Policy': '"burst";q=50;w=10, "daily";q=10000;w=86400;pk=:YQ==:',
      RateLimit: '"burst";r=7;t=3, "daily";r=9000',
    }
    expect(quotas(fields)).toEqual([
      { name: 'burst', limit: 50, windowMs: 10_000, remaining: 7, resetMs: 3000 },
      { name: 'daily', limit: 10_000, windowMs: 86_400_000, remaining: 9000 },
    ])
  })

  it('come from draft 8 and later with names as tokens, in any order', () => {
    const fields = { 'RateLimit-Policy': 'a;q=5;w=1, b;q=9;w=2', RateLimit: 'b;r=1, a;r=2' }
    expect(quotas(fields)).toEqual([
      { name: 'a', limit: 5, windowMs: 1000, remaining: 2 },
      { name: 'b', limit: 9, windowMs: 2000, remaining: 1 },
    ])
  })

  it('exclude quotas of anything other than requests', () => {
    const policy = '"bytes";q=50;w=10;qu="content-bytes", "a";q=5;w=10;qu="requests"'
    expect(quotas({ 'RateLimit-Policy': policy })).toEqual([{ name: 'a', limit: 5, windowMs: 10_000 }])
  })

  it('come from draft 7: a dictionary and a list of numbers', () => {
    const fields = {
      'RateLimit-Policy': '100;w=60, 1000;w=3600',
      RateLimit: 'limit=100, remaining=50, reset=5',
    }
    expect(quotas(fields)).toEqual([
      { limit: 100, windowMs: 60_000, remaining: 50, resetMs: 5000 },
      { limit: 1000, windowMs: 3_600_000 },
    ])
  })

  it('come from draft 6: a header for each value', () => {
    const fields = {
      'RateLimit-Limit': '100, 100;w=60',
      'RateLimit-Remaining': '4',
      'RateLimit-Reset': '9',
    }
    expect(quotas(fields)).toEqual([{ limit: 100, windowMs: 60_000, remaining: 4, resetMs: 9000 }])
  })

  it.each(['X-RateLimit-', 'X-Rate-Limit-'])('come from %s*: a header for each value', (prefix) => {
    const fields = { [`${prefix}Limit`]: '100', [`${prefix}Remaining`]: '4', [`${prefix}Reset`]: '1.5' }
    expect(quotas(fields)).toEqual([{ limit: 100, remaining: 4, resetMs: 1500 }])
  })

  it('come from the newest format if there are several', () => {
    const fields = {
      'X-RateLimit-Limit': '100',
      'X-RateLimit-Remaining': '4',
      'RateLimit-Policy': '"a";q=5;w=1',
    }
    expect(quotas(fields)).toEqual([{ name: 'a', limit: 5, windowMs: 1000 }])
  })

  it.each([
    ['seconds from now', '90', 90_000],
    ['seconds since the epoch', `${NOW_MS / 1000 + 90}`, 90_000],
    ['milliseconds since the epoch', `${NOW_MS + 90_500}`, 90_500],
    ['an ISO 8601 date', new Date(NOW_MS + 90_000).toISOString(), 90_000],
    ['an HTTP date', new Date(NOW_MS + 90_000).toUTCString(), 90_000],
    ['a time that has passed', `${NOW_MS / 1000 - 90}`, 0],
  ])('reset at %s', (_, reset, resetMs) => {
    expect(quotas({ 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': reset })).toEqual([
      { remaining: 0, resetMs },
    ])
  })

  it.each([
    ['no number', { 'X-RateLimit-Remaining': 'plenty' }],
    ['below 0', { 'X-RateLimit-Remaining': '-1', 'X-RateLimit-Limit': '-1' }],
    ['no list', { RateLimit: '"a;r=', 'RateLimit-Policy': '((((' }],
    ['invalid numbers', { 'RateLimit-Policy': '"a";q=-5;w=10, "b";q="9";w=1' }],
    ['a flood', { 'RateLimit-Policy': '"a";q=5;w=1, '.repeat(1000) }],
  ])('ignore headers that are invalid: %s', (_, fields) => {
    expect(quotas(fields)).toEqual([])
  })

  it('include at most 16', () => {
    const policy = Array.from({ length: 100 }, (_, i) => `"${i}";q=5;w=${i}`).join(', ')
    expect(read({ 'RateLimit-Policy': policy }).quotas).toHaveLength(16)
  })
})

describe('Retry-After', () => {
  it.each([
    ['3', 3000],
    ['0', 0],
    ['1.2', 1200],
    [new Date(NOW_MS + 30_000).toUTCString(), 30_000],
    [new Date(NOW_MS - 30_000).toUTCString(), 0],
    ['999999999999999', 366 * 86_400_000],
    ['-3', undefined],
    ['soon', undefined],
    ['Fri, 99 Foo 9999 99:99:99 GMT', undefined],
  ])('%s', (value, ms) => {
    expect(read({ 'Retry-After': value }).retryAfterMs).toBe(ms)
  })

  it('uses the clock of its sender', () => {
    const upstreamMs = NOW_MS - 3_600_000
    const fields = {
      Date: new Date(upstreamMs).toUTCString(),
      'Retry-After': new Date(upstreamMs + 7000).toUTCString(),
    }
    expect(read(fields).retryAfterMs).toBe(7000)
  })
})

describe('our own headers', () => {
  it.each(['draft-11', 'draft-7', 'draft-6', 'legacy'] as const)(
    'in the format %s keep their meaning',
    async (format) => {
      const clock = new ManualClock(NOW_MS)
      const limits = [slidingWindow({ limit: 5, window: '10s' })]
      const limiter = createLimiter({ limits, store: memoryStore({ clock: clock.now }) })
      const decision: Decision = await limiter.consume('k', { cost: 2 })
      const fields = HEADER_FORMATS[format].write(decision).map(({ name, value }) => [name, value])
      const [quota] = read(Object.fromEntries(fields)).quotas
      expect(quota).toMatchObject({ limit: 5, remaining: 3 })
      expect(quota!.resetMs).toBeLessThanOrEqual(10_000)
    },
  )
})

describe('any headers of an upstream', () => {
  const NAMES = [
    ...['ratelimit', 'ratelimit-policy', 'retry-after', 'date'],
    ...['ratelimit-', 'x-ratelimit-', 'x-rate-limit-'].flatMap((prefix) =>
      ['limit', 'remaining', 'reset'].map((name) => prefix + name),
    ),
  ]
  const pieces = fc.constantFrom(
    ...['"a"', 'a', ';q=', ';w=', ';r=', ';t=', ';qu=', ', ', '=', 'limit=', 'remaining=', 'reset='],
    ...['0', '1', '-1', '9', '1e9', '999999999999999', '1.5', 'NaN', 'Infinity', '(', ')', ':', '?1', '@1'],
    ...[' ', '\t', '\u0000', 'é', 'Fri, 02 Jan 2026 03:04:05 GMT', '2026-01-02T03:04:05Z'],
  )
  const values = fc.oneof(
    fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join('')),
    fc.string({ unit: anyCharacter, maxLength: 40 }),
    fc.constantFrom(null, undefined),
  )

  it('parse without an error into finite numbers from 0', () => {
    fc.assert(
      fc.property(fc.record(Object.fromEntries(NAMES.map((name) => [name, values]))), (fields) => {
        const { quotas, retryAfterMs } = readResponseHeaders((name) => fields[name], NOW_MS)
        expect(quotas.length).toBeLessThanOrEqual(16)
        const times = [retryAfterMs, ...quotas.flatMap(({ windowMs, resetMs }) => [windowMs, resetMs])]
        const counts = quotas.flatMap(({ limit, remaining }) => [limit, remaining])
        for (const number of [...times, ...counts]) {
          if (number === undefined) continue
          expect(Number.isSafeInteger(number), `${number}`).toBe(true)
          expect(number).toBeGreaterThanOrEqual(0)
        }
        for (const ms of times) expect(ms ?? 0).toBeLessThanOrEqual(366 * 86_400_000)
      }),
      { numRuns: 2000 },
    )
  })
})
