import fc from 'fast-check'
import { parseDictionary, parseList } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import type { Decision, LimitDecision } from '../../src/decision.ts'
import {
  draft7Headers,
  draft11Headers,
  type Header,
  legacyHeaders,
  retryAfterHeaders,
} from '../../src/http/headers.ts'

const AT_MS = 1_700_000_000_250

describe('draft-11', () => {
  it('lists all limits in declared order, the time until all quota is back in seconds, rounded up', () => {
    const decision = decide(
      limit('burst', { remaining: 50, resetAfterMs: 29_001 }),
      limit('hourly', { windowMs: 3_600_000 }),
    )
    expect(fields(draft11Headers(decision))).toEqual({
      'RateLimit-Policy': '"burst";q=100;w=60, "hourly";q=100;w=3600',
      RateLimit: '"burst";r=50;t=30, "hourly";r=99;t=60',
    })
  })

  it('gives a denial its time only on the limits that denied, each its own', () => {
    const decision = decide(
      limit('a', { allowed: false, remaining: 0, retryAfterMs: 1001 }),
      limit('b'),
      limit('c', { allowed: false, remaining: 2, retryAfterMs: 7000 }),
    )
    expect(fields(draft11Headers(decision)).RateLimit).toBe('"a";r=0;t=2, "b";r=99, "c";r=2;t=7')
  })

  it('gives no time where waiting does not help', () => {
    const decision = decide(
      limit('a', { allowed: false, remaining: 0, retryAfterMs: 1000 }),
      limit('b', { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY }),
    )
    expect(fields(draft11Headers(decision)).RateLimit).toBe('"a";r=0, "b";r=99')
  })

  it.each([
    [10, '"x";q=100'],
    [999, '"x";q=100'],
    [1000, '"x";q=100;w=1'],
    [1001, '"x";q=100;w=2'],
  ])('expresses a window of %i ms as %s', (windowMs, policy) => {
    expect(fields(draft11Headers(decide(limit('x', { windowMs }))))['RateLimit-Policy']).toBe(policy)
  })

  it('adds to what earlier limiters said', () => {
    expect(draft11Headers(decide(limit('x'))).every((header) => header.append)).toBe(true)
  })
})

describe('draft-7', () => {
  it('names the limit with the least remaining', () => {
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

  it('names on a denial the limit that denies for longest, and resets as Retry-After says', () => {
    const decision = decide(
      limit('a', { allowed: false, remaining: 0, retryAfterMs: 1000 }),
      limit('b', { allowed: false, remaining: 3, retryAfterMs: 5000, limit: 20 }),
      limit('c', { remaining: 0 }),
    )
    expect(fields(draft7Headers(decision)).RateLimit).toBe('limit=20, remaining=3, reset=5')
    expect(fields(retryAfterHeaders(decision))).toEqual({ 'Retry-After': '5' })
  })

  it('has no policy for a window that its required w cannot express', () => {
    const headers = fields(draft7Headers(decide(limit('x', { windowMs: 500 }))))
    expect(headers).toEqual({ RateLimit: 'limit=100, remaining=99, reset=60' })
  })

  it('resets, where no wait helps, when all quota is back', () => {
    const decision = decide(
      limit('x', { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, resetAfterMs: 4200 }),
    )
    expect(fields(draft7Headers(decision)).RateLimit).toBe('limit=100, remaining=99, reset=5')
  })
})

describe('legacy', () => {
  it('gives the reset as seconds since the epoch', () => {
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

it('Retry-After is left out where the request is allowed or never will be', () => {
  expect(retryAfterHeaders(decide(limit('x')))).toEqual([])
  expect(
    retryAfterHeaders(decide(limit('x', { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY }))),
  ).toEqual([])
})

it.each([draft11Headers, draft7Headers, legacyHeaders])('shadow limits are in no header: %o', (headersOf) => {
  const shadow = limit('shadow', { shadow: true, allowed: false, remaining: 0, retryAfterMs: 5000, limit: 7 })
  expect(headersOf(decide(shadow))).toEqual([])
  expect(headersOf(decide(shadow, limit('x')))).toEqual(headersOf(decide(limit('x'))))
})

describe('whatever the decision', () => {
  it('draft-11 parses as lists of strings with integers, no time beyond Retry-After', () => {
    fc.assert(
      fc.property(decisions(), (decision) => {
        const headers = fields(draft11Headers(decision))
        const names = decision.limits.map(({ name }) => name)
        const policies = parseList(headers['RateLimit-Policy']!)
        const states = parseList(headers.RateLimit!)
        expect(policies.map(([name]) => name)).toEqual(names)
        expect(states.map(([name]) => name)).toEqual(names)
        const retryAfter = Number(
          fields(retryAfterHeaders(decision))['Retry-After'] ?? Number.POSITIVE_INFINITY,
        )
        decision.limits.forEach(({ limit, windowMs, remaining, allowed }, index) => {
          const [, policy] = policies[index]!
          const [, state] = states[index]!
          expect(policy.get('q')).toBe(limit)
          expect(policy.get('w')).toBe(windowMs < 1000 ? undefined : Math.ceil(windowMs / 1000))
          expect(state.get('r')).toBe(remaining)
          const t = state.get('t')
          expect(t !== undefined).toBe(
            decision.allowed || (!allowed && decision.retryAfterMs < Number.POSITIVE_INFINITY),
          )
          if (t !== undefined) expect(Number.isInteger(t)).toBe(true)
          if (!decision.allowed && t !== undefined) expect(t).toBeLessThanOrEqual(retryAfter)
        })
      }),
    )
  })

  it('draft-7 parses as a dictionary and a list, of one declared limit', () => {
    fc.assert(
      fc.property(decisions(), (decision) => {
        const headers = fields(draft7Headers(decision))
        const state = parseDictionary(headers.RateLimit!)
        const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) => state.get(name)![0])
        const shown = decision.limits.filter((each) => each.limit === limit && each.remaining === remaining)
        expect(shown.some((each) => each.allowed === decision.allowed)).toBe(true)
        expect(Number.isInteger(reset) && Number(reset) >= 0).toBe(true)
        if (headers['RateLimit-Policy'] === undefined) return
        const [[quota, parameters]] = parseList(headers['RateLimit-Policy']) as [
          [number, Map<string, unknown>],
        ]
        expect(quota).toBe(limit)
        expect(parameters.get('w')).toBeGreaterThan(0)
      }),
    )
  })
})

function limit(name: string, changes: Partial<LimitDecision> = {}): LimitDecision {
  return {
    name,
    limit: 100,
    windowMs: 60_000,
    precisionMs: 1,
    shadow: false,
    allowed: true,
    remaining: 99,
    retryAfterMs: 0,
    resetAfterMs: 60_000,
    ...changes,
  }
}

/** The decision over these limits. */
function decide(...limits: readonly LimitDecision[]): Decision {
  const enforced = limits.filter(({ shadow }) => !shadow)
  const denying = enforced.filter(({ allowed }) => !allowed)
  return {
    allowed: denying.length === 0,
    cost: 1,
    remaining: Math.min(...enforced.map(({ remaining }) => remaining)),
    retryAfterMs: Math.max(0, ...denying.map(({ retryAfterMs }) => retryAfterMs)),
    resetAfterMs: Math.max(0, ...enforced.map(({ resetAfterMs }) => resetAfterMs)),
    deniedBy: denying.map(({ name }) => name),
    limits,
    source: 'store',
    atMs: AT_MS,
  }
}

function decisions(): fc.Arbitrary<Decision> {
  const units = fc.integer({ min: 1, max: 2 ** 40 })
  const waits = fc.integer({ min: 1, max: 366 * 86_400_000 })
  const denial = fc.oneof(
    { weight: 9, arbitrary: waits },
    { weight: 1, arbitrary: fc.constant(Number.POSITIVE_INFINITY) },
  )
  const one = fc.record({
    name: fc.stringMatching(/^[A-Za-z0-9._-]{1,64}$/),
    limit: units,
    windowMs: fc.integer({ min: 10, max: 366 * 86_400_000 }),
    remaining: fc.integer({ min: 0, max: 2 ** 40 }),
    resetAfterMs: waits,
    denies: fc.option(denial, { freq: 3 }),
  })
  return fc.uniqueArray(one, { selector: ({ name }) => name, minLength: 1, maxLength: 5 }).map((drawn) => {
    const limits = drawn.map(({ denies, ...changes }) =>
      limit(changes.name, { ...changes, allowed: denies === null, retryAfterMs: denies ?? 0 }),
    )
    return decide(...limits)
  })
}

function fields(headers: readonly Header[]): Record<string, string> {
  return Object.fromEntries(headers.map(({ name, value }) => [name, value]))
}
