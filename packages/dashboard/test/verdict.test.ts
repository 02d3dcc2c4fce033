import { describe, expect, it } from 'vitest'
import type { TopKey } from '../src/api-types.ts'
import { verdictOf } from '../src/limiter/verdict.tsx'

function keys(...counts: number[]): TopKey[] {
  return counts.map((count, i) => ({ key: `user:${i}`, count, error: 0 }))
}

const usual = {
  spanMs: 300_000,
  requests: 10_000,
  denied: 1000,
  callers: 500,
  denials: keys(...new Array(20).fill(10)),
}

describe('abuse, or a limit that is too low', () => {
  it('is nothing where nothing was denied', () => {
    expect(verdictOf({ ...usual, denied: 0 })).toEqual({
      kind: 'none',
      text: 'Nothing was denied in the last 5 min.',
    })
  })

  it('is not told by a few denials', () => {
    expect(verdictOf({ ...usual, denied: 19 }).kind).toBe('few')
    expect(verdictOf({ ...usual, denied: 20 }).kind).not.toBe('few')
  })

  it('looks like abuse where few keys have most of the denials', () => {
    expect(verdictOf({ ...usual, denials: keys(300, 150, 50, 1) })).toMatchObject({
      kind: 'concentrated',
      text: expect.stringContaining('At least 50% of the denials are those of 3 keys'),
    })
    expect(verdictOf({ ...usual, denials: keys(300, 150, 49, 1) }).kind).toBe('unclear')
  })

  it('goes by what a key has at least', () => {
    const denials = keys(300, 150, 50).map((key) => ({ ...key, error: 10 }))
    expect(verdictOf({ ...usual, denials }).kind).toBe('unclear')
  })

  it('goes by what no key has more of', () => {
    const denials = keys(49, 48, 47).map((key) => ({ ...key, count: key.count + 1, error: 1 }))
    expect(verdictOf({ ...usual, denials }).kind).toBe('unclear')
  })

  it('looks like a limit that is too low where many are denied a little', () => {
    expect(verdictOf({ ...usual, denials: keys(49, 48, 47) }).kind).toBe('spread')
    expect(verdictOf({ ...usual, denials: keys(50, 48, 47) }).kind).toBe('unclear')
  })

  it('looks like many addresses of one where very many ask seldom', () => {
    expect(verdictOf({ ...usual, callers: 5000 }).kind).toBe('distributed')
    expect(verdictOf({ ...usual, callers: 999, requests: 2000 }).kind).toBe('spread')
    expect(verdictOf({ ...usual, callers: 1000, requests: 3000 }).kind).toBe('spread')
  })

  it('is not told by shares of a handful of callers', () => {
    expect(verdictOf({ ...usual, callers: 9, denials: keys(900) }).kind).toBe('unclear')
    expect(verdictOf({ ...usual, callers: 10, denials: keys(900) }).kind).toBe('concentrated')
  })

  it('counts the keys of each dimension on their own', () => {
    const denials = ['user', 'address'].flatMap((dimension) =>
      keys(200, 100, 50).map((key) => ({ ...key, dimension })),
    )
    expect(verdictOf({ ...usual, denials }).kind).toBe('unclear')
  })
})
