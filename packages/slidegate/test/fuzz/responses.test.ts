import fc from 'fast-check'
import { parseDictionary, parseList } from 'structured-headers'
import { expect } from 'vitest'
import type { Decision } from '../../src/decision.ts'
import {
  draft7Headers,
  draft11Headers,
  legacyHeaders,
  placeHeaders,
  problemOf,
  retryAfterHeaders,
} from '../../src/http/index.ts'
import { decide, decisions } from '../http/decisions.ts'
import { fuzz } from './harness.ts'

/** Decisions from every source, with shadow limits and blocked keys. */
const anyDecisions: fc.Arbitrary<Decision> = fc
  .record({
    decision: decisions(),
    shadows: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
    blockedMs: fc.option(fc.integer({ min: 1, max: 366 * 86_400_000 }), { freq: 5 }),
    source: fc.constantFrom('store', 'lease', 'denyCache', 'fallback'),
  })
  .map(({ decision, shadows, blockedMs, source }) => {
    const made = {
      ...decide(...decision.limits.map((limit, i) => ({ ...limit, shadow: i > 0 && shadows[i]! }))),
      source,
    } as const
    if (blockedMs === null) return made
    return {
      ...made,
      ...{ allowed: false, remaining: 0, blockedMs },
      retryAfterMs: Math.max(made.retryAfterMs, blockedMs),
      resetAfterMs: Math.max(made.resetAfterMs, blockedMs),
      // No limit has this name.
      deniedBy: ['a dimension.ban', ...made.deniedBy],
    }
  })

fuzz('responses', fc.array(anyDecisions, { minLength: 1, maxLength: 3 }), (all) => {
  // Several limiters set headers on one response, up to the first denial.
  const upToDenial = all.slice(0, all.findIndex(({ allowed }) => !allowed) + 1 || all.length)
  const response = new Map<string, string>()
  for (const decision of upToDenial) {
    const set = {
      format: 'draft-11',
      isDenial: !decision.allowed,
      headers: draft11Headers(decision),
    } as const
    placeHeaders([set], {
      get: (name) => response.get(name),
      set: (name, value) => response.set(name, value),
    })
    for (const { name, value } of decision.allowed ? [] : retryAfterHeaders(decision))
      response.set(name, value)
  }
  for (const [name, value] of response) if (!/^[ -~]+$/.test(value)) throw new Error(`${name}: ${value}`)
  const names = upToDenial.flatMap(({ limits, deniedBy }) => [
    ...deniedBy.filter((name) => limits.every((limit) => limit.name !== name)),
    ...limits.filter(({ shadow }) => !shadow).map(({ name }) => name),
  ])
  const lists = ['RateLimit-Policy', 'RateLimit'].map((name) => parseList(response.get(name) ?? ''))
  for (const list of lists) expect(list.map(([name]) => name)).toEqual(names)
  const retryAfter = Number(response.get('Retry-After') ?? Number.POSITIVE_INFINITY)
  for (const [, parameters] of lists.flat()) {
    for (const number of parameters.values()) {
      if (!Number.isSafeInteger(number) || Number(number) < 0) throw new Error(`a parameter is ${number}`)
    }
  }
  const last = upToDenial.at(-1)!
  if (!last.allowed) {
    for (const [, state] of lists[1]!) expect(Number(state.get('t') ?? 0)).toBeLessThanOrEqual(retryAfter)
    expect(retryAfter).toBeGreaterThan(0)
    expect(JSON.parse(JSON.stringify(problemOf(last)))).toMatchObject({ status: 429 })
  }
  for (const { name, value } of all.flatMap((decision) => [
    ...draft7Headers(decision),
    ...legacyHeaders(decision),
  ])) {
    if (name === 'RateLimit') parseDictionary(value)
    else if (name === 'RateLimit-Policy') parseList(value)
    else expect(value).toMatch(/^\d{1,15}$/)
  }
})
