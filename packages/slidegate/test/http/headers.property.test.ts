import fc from 'fast-check'
import { parseDictionary, parseList } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import { draft7Headers, draft11Headers, retryAfterHeaders } from '../../src/http/headers.ts'
import { decisions, fields } from './decisions.ts'

describe('any decision', () => {
  it('in draft-11 parses as lists of strings with integers, without a time above Retry-After', () => {
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

  it('in draft-7 parses as a dictionary and a list of one declared limit', () => {
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
