import { describe, expect, it } from 'vitest'
import type { LimitDecision } from '../../src/decision.ts'
import {
  draft6Headers,
  draft7Headers,
  draft11Headers,
  exposedHeaders,
  HEADER_FORMATS,
  type HeaderFormat,
  type HeaderSet,
  type HeadersOption,
  legacyHeaders,
  placeHeaders,
  placeHeadersBefore,
  retryAfterHeaders,
} from '../../src/http/headers.ts'
import { decide, fields, limit } from './decisions.ts'

describe('draft-11', () => {
  it('lists all limits in declared order, with the rounded-up seconds until the full quota is available', () => {
    const decision = decide(
      limit('burst', { remaining: 50, resetAfterMs: 29_001 }),
      limit('hourly', { windowMs: 3_600_000 }),
    )
    expect(fields(draft11Headers(decision))).toEqual({
      'RateLimit-Policy': '"burst";q=100;w=60, "hourly";q=100;w=3600',
      RateLimit: '"burst";r=50;t=30, "hourly";r=99;t=60',
    })
  })

  it('adds a time only to the limits that denied, which can differ', () => {
    const decision = decide(
      limit('a', { allowed: false, remaining: 0, retryAfterMs: 1001 }),
      limit('b'),
      limit('c', { allowed: false, remaining: 2, retryAfterMs: 7000 }),
    )
    expect(fields(draft11Headers(decision)).RateLimit).toBe('"a";r=0;t=2, "b";r=99, "c";r=2;t=7')
  })

  it("omits the time if waiting doesn't help", () => {
    const decision = decide(
      limit('a', { allowed: false, remaining: 0, retryAfterMs: 1000 }),
      limit('b', { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY }),
    )
    expect(fields(draft11Headers(decision)).RateLimit).toBe('"a";r=0, "b";r=99')
  })

  it('lists an active ban before the limits, which keep their remaining units', () => {
    const banned = {
      ...decide(
        limit('ip.burst'),
        limit('user.tight', { allowed: false, remaining: 0, retryAfterMs: 700_000 }),
      ),
      ...{ deniedBy: ['ip.ban', 'user.tight'], remaining: 0, blockedMs: 600_000 },
    }
    expect(fields(draft11Headers(banned))).toEqual({
      'RateLimit-Policy': '"ip.ban";q=0, "ip.burst";q=100;w=60, "user.tight";q=100;w=60',
      RateLimit: '"ip.ban";r=0;t=600, "ip.burst";r=99, "user.tight";r=0;t=700',
    })
    expect(retryAfterHeaders(banned)).toEqual([{ name: 'Retry-After', value: '700' }])
    const never = { ...banned, retryAfterMs: Number.POSITIVE_INFINITY }
    expect(fields(draft11Headers(never)).RateLimit).toBe('"ip.ban";r=0, "ip.burst";r=99, "user.tight";r=0')
  })

  it('omits a ban that the denial itself caused', () => {
    const denied = {
      ...decide(limit('x', { allowed: false, remaining: 0, retryAfterMs: 1000 })),
      blockedMs: 60_000,
    }
    expect(fields(draft11Headers(denied)).RateLimit).toBe('"x";r=0;t=1')
  })

  it.each([
    [10, '"x";q=100'],
    [999, '"x";q=100'],
    [1000, '"x";q=100;w=1'],
    [1001, '"x";q=100;w=2'],
  ])('expresses a window of %i ms as %s', (windowMs, policy) => {
    expect(fields(draft11Headers(decide(limit('x', { windowMs }))))['RateLimit-Policy']).toBe(policy)
  })

  it('writes a new policy if one property differs from the last one', () => {
    const policyOf = (...limits: readonly LimitDecision[]) =>
      fields(draft11Headers(decide(...limits)))['RateLimit-Policy']
    expect(policyOf(limit('x'))).toBe('"x";q=100;w=60')
    expect(policyOf(limit('y'))).toBe('"y";q=100;w=60')
    expect(policyOf(limit('y', { limit: 9 }))).toBe('"y";q=9;w=60')
    expect(policyOf(limit('y', { limit: 9, windowMs: 1000 }))).toBe('"y";q=9;w=1')
    expect(policyOf(limit('y', { limit: 9, windowMs: 1000 }), limit('z'))).toBe('"y";q=9;w=1, "z";q=100;w=60')
    expect(policyOf(limit('y', { limit: 9, windowMs: 1000, shadow: true }), limit('z'))).toBe(
      '"z";q=100;w=60',
    )
    expect(policyOf(limit('y', { shadow: true }))).toBeUndefined()
    expect(policyOf(limit('y'))).toBe('"y";q=100;w=60')
  })
})

describe('draft-7', () => {
  it('uses the limit with the fewest units remaining', () => {
    const decision = decide(
      limit('a'),
      limit('b', { limit: 20, remaining: 5, resetAfterMs: 1500 }),
      limit('c'),
    )
    expect(fields(draft7Headers(decision))).toEqual({
      'RateLimit-Policy': '20;w=60',
      RateLimit: 'limit=20, remaining=5, reset=2',
    })
  })

  it('uses the limit with the longest wait on a denial, with a reset equal to Retry-After', () => {
    const decision = decide(
      limit('a', { allowed: false, remaining: 0, retryAfterMs: 1000 }),
      limit('b', { allowed: false, remaining: 3, retryAfterMs: 5000, limit: 20 }),
      limit('c', { remaining: 0 }),
    )
    expect(fields(draft7Headers(decision)).RateLimit).toBe('limit=20, remaining=3, reset=5')
    expect(fields(retryAfterHeaders(decision))).toEqual({ 'Retry-After': '5' })
  })

  it('omits the policy for a window shorter than one second', () => {
    const headers = fields(draft7Headers(decide(limit('x', { windowMs: 500 }))))
    expect(headers).toEqual({ RateLimit: 'limit=100, remaining=99, reset=60' })
  })

  it("resets when the full quota is available if waiting doesn't help", () => {
    const decision = decide(
      limit('x', { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, resetAfterMs: 4200 }),
    )
    expect(fields(draft7Headers(decision)).RateLimit).toBe('limit=100, remaining=99, reset=5')
  })
})

it("draft-7, draft-6 and legacy reset with Retry-After during a ban, and keep the limit's remaining units", () => {
  const banned = {
    ...decide(limit('ample'), limit('tight', { remaining: 98 })),
    ...{ allowed: false, deniedBy: ['ban'], remaining: 0, retryAfterMs: 90_000, blockedMs: 90_000 },
  }
  expect(fields(draft7Headers(banned)).RateLimit).toBe('limit=100, remaining=98, reset=90')
  expect(fields(draft6Headers(banned))).toMatchObject({
    'RateLimit-Remaining': '98',
    'RateLimit-Reset': '90',
  })
  expect(fields(legacyHeaders(banned))).toMatchObject({
    ...{ 'X-RateLimit-Remaining': '98', 'X-RateLimit-Reset': '1700000091' },
  })
})

it('draft-6 reports the same as draft-7 in separate headers', () => {
  const decision = decide(limit('a'), limit('b', { limit: 20, remaining: 5, resetAfterMs: 1500 }))
  expect(fields(draft6Headers(decision))).toEqual({
    'RateLimit-Policy': '20;w=60',
    'RateLimit-Limit': '20',
    'RateLimit-Remaining': '5',
    'RateLimit-Reset': '2',
  })
})

describe('legacy', () => {
  it('reports the reset in seconds since the epoch', () => {
    expect(fields(legacyHeaders(decide(limit('x', { resetAfterMs: 1000 }))))).toEqual({
      'X-RateLimit-Limit': '100',
      'X-RateLimit-Remaining': '99',
      'X-RateLimit-Reset': '1700000002',
    })
  })

  it('resets on a denial when the request fits', () => {
    const decision = decide(limit('x', { allowed: false, remaining: 0, retryAfterMs: 750 }))
    expect(fields(legacyHeaders(decision))['X-RateLimit-Reset']).toBe('1700000001')
  })
})

it.each([
  [1, '1'],
  [1000, '1'],
  [1001, '2'],
])('Retry-After for %i ms is %s', (retryAfterMs, value) => {
  const decision = decide(limit('x', { allowed: false, retryAfterMs }))
  expect(fields(retryAfterHeaders(decision))).toEqual({ 'Retry-After': value })
})

it('Retry-After is omitted if the request is allowed or will never be', () => {
  expect(retryAfterHeaders(decide(limit('x')))).toEqual([])
  expect(
    retryAfterHeaders(decide(limit('x', { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY }))),
  ).toEqual([])
})

it.each([draft11Headers, draft7Headers, draft6Headers, legacyHeaders])(
  'no header contains shadow limits: %o',
  (headersOf) => {
    const shadow = limit('shadow', {
      shadow: true,
      allowed: false,
      remaining: 0,
      retryAfterMs: 5000,
      limit: 7,
    })
    expect(headersOf(decide(shadow))).toEqual([])
    expect(fields(headersOf(decide(shadow, limit('x'))))).toEqual(fields(headersOf(decide(limit('x')))))
  },
)

describe('several limiters on one response', () => {
  type Spelt = [format: HeaderFormat, ...limits: LimitDecision[]]

  const setOf = ([format, ...limits]: Spelt): HeaderSet => {
    const decision = decide(...limits)
    const { write } = HEADER_FORMATS[format]
    return { format, isDenial: !decision.allowed, headers: write(decision) }
  }
  const response = (given: Record<string, string> = {}) => {
    const all = { ...given }
    const on = { get: (name: string) => all[name], set: (name: string, value: string) => (all[name] = value) }
    return { all, on }
  }
  /** Returns the final headers of a response, set limiter by limiter. Checks that the reverse order gives the same. */
  const placed = (...sets: readonly Spelt[]) => {
    const forward = response()
    for (const set of sets) placeHeaders([setOf(set)], forward.on)
    const backward = response()
    let isDenial = false
    for (const set of sets.toReversed()) {
      placeHeadersBefore([setOf(set)], backward.on, isDenial)
      isDenial ||= setOf(set).isDenial
    }
    expect(backward.all).toEqual(forward.all)
    return forward.all
  }

  const ample = limit('ample', { remaining: 9 })
  const scarce = limit('scarce', { limit: 20, remaining: 3 })
  const denying = limit('denying', { allowed: false, remaining: 7, retryAfterMs: 1000, limit: 30 })

  it('draft-11: all limits form one list', () => {
    expect(placed(['draft-11', ample], ['draft-11', scarce])).toEqual({
      'RateLimit-Policy': '"ample";q=100;w=60, "scarce";q=20;w=60',
      RateLimit: '"ample";r=9;t=60, "scarce";r=3;t=60',
    })
  })

  it('draft-11: a denial removes the times of limiters that allowed', () => {
    expect(placed(['draft-11', ample], ['draft-11', scarce], ['draft-11', denying])).toEqual({
      'RateLimit-Policy': '"ample";q=100;w=60, "scarce";q=20;w=60, "denying";q=30;w=60',
      RateLimit: '"ample";r=9, "scarce";r=3, "denying";r=7;t=1',
    })
  })

  it('draft-11: a denial removes only the time, however it is spelled', () => {
    const { all, on } = response({
      RateLimit: '"a";r=1;t=70;pk=:AA==:, "b;t=5\\";t=6";r=2; t=80, "c";r=3;at=4',
    })
    placeHeaders([setOf(['draft-11', denying])], on)
    expect(all.RateLimit).toBe('"a";r=1;pk=:AA==:, "b;t=5\\";t=6";r=2, "c";r=3;at=4, "denying";r=7;t=1')
  })

  it.each<[HeaderFormat, string, (limit: number, remaining: number) => string]>([
    ['draft-7', 'RateLimit', (limit, remaining) => `limit=${limit}, remaining=${remaining}, reset=60`],
    ['draft-6', 'RateLimit-Remaining', (_, remaining) => `${remaining}`],
    ['legacy', 'X-RateLimit-Remaining', (_, remaining) => `${remaining}`],
  ])('%s: the tighter of two allowing limits wins, in any order', (format, name, value) => {
    expect(placed([format, ample], [format, scarce])[name]).toBe(value(20, 3))
    expect(placed([format, scarce], [format, ample])).toEqual(placed([format, scarce]))
    expect(placed([format, ample], [format, limit('other', { remaining: 9 })])).toEqual(
      placed([format, ample]),
    )
  })

  it.each<HeaderFormat>(['draft-7', 'draft-6', 'legacy'])('%s: the denying limiter wins', (format) => {
    expect(placed([format, scarce], [format, denying])).toEqual(placed([format, denying]))
  })
})

describe('exposedHeaders', () => {
  it.each<[HeadersOption | undefined, string]>([
    [undefined, 'RateLimit-Policy, RateLimit, Retry-After'],
    ['draft-6', 'RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After'],
    [
      ['draft-7', 'legacy'],
      'RateLimit-Policy, RateLimit, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After',
    ],
    [false, 'Retry-After'],
  ])('%j', (formats, names) => {
    expect(exposedHeaders(formats).join(', ')).toBe(names)
  })

  it.each(Object.keys(HEADER_FORMATS) as HeaderFormat[])(
    '%s: lists all headers that the format sets',
    (format) => {
      const { headers } = { headers: HEADER_FORMATS[format].write(decide(limit('x'))) }
      expect(exposedHeaders(format)).toEqual([...headers.map(({ name }) => name), 'Retry-After'])
    },
  )
})
