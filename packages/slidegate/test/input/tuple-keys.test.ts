import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimiter, slidingWindow, tupleKey } from '../../src/index.ts'

describe('tupleKey', () => {
  it('returns readable keys', () => {
    expect(tupleKey('user:42', 'route:/users/:id')).toBe('user:42|route:/users/:id')
    expect(tupleKey('a|b', '100%')).toBe('a%7Cb|100%25')
    expect(tupleKey('a')).toBe('a')
  })

  const part = fc.oneof(
    fc.constantFrom('a', 'b', '|', '%', '%7C', '%25', '%257C', 'a|b', '7C', '||', '{a}', '*', ':'),
    fc.string({ minLength: 1 }),
  )
  const tuple = fc.array(part, { minLength: 1, maxLength: 4 })

  it('returns distinct keys for distinct tuples', () => {
    fc.assert(
      fc.property(tuple, tuple, (a, b) => {
        assert.equal(tupleKey(...a) === tupleKey(...b), JSON.stringify(a) === JSON.stringify(b))
      }),
      { numRuns: 20_000 },
    )
  })

  it('returns distinct keys for tuples with the same text', () => {
    fc.assert(
      fc.property(tuple, tuple, fc.constantFrom('|', '%7C', '%257C', ''), (a, b, between) => {
        const joined = [...a.slice(0, -1), `${a.at(-1)}${between}${b[0]}`, ...b.slice(1)]
        expect(tupleKey(...joined)).not.toBe(tupleKey(...a, ...b))
      }),
      { numRuns: 20_000 },
    )
  })

  it('returns keys that count separately', async () => {
    const limiter = createLimiter({ limits: [slidingWindow({ limit: 1, window: '1h' })] })
    const tuples = [['a', 'b'], ['a|b'], ['a%7Cb'], ['a', 'b', 'c'], ['a', 'b|c'], ['a|b', 'c'], ['a|b|c']]
    for (const parts of tuples) expect((await limiter.consume(tupleKey(...parts))).allowed).toBe(true)
    for (const parts of tuples) expect((await limiter.consume(tupleKey(...parts))).allowed).toBe(false)
  })

  it.each([[], [''], ['a', ''], ['a', 7], [undefined], [null], [['a']]])('rejects %j', (...parts) => {
    expect(() => tupleKey(...(parts as string[]))).toThrow(expect.objectContaining({ code: 'invalid_key' }))
  })
})
