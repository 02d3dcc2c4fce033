import fc from 'fast-check'
import type { Decision, LimitDecision, Source } from 'slidegate'
import { expect, it } from 'vitest'
import { decisionText } from '../../src/http/decisions.ts'

const name = fc.stringMatching(/^[A-Za-z0-9._-]{1,64}$/)
const ms = fc.oneof(fc.nat(), fc.double({ min: 0, noNaN: true }), fc.constant(Number.POSITIVE_INFINITY))
const units = fc.oneof(fc.integer({ min: 0, max: 2 ** 46 }), fc.constant(Number.POSITIVE_INFINITY))

const limit: fc.Arbitrary<LimitDecision> = fc.record({
  name,
  limit: fc.integer({ min: 1, max: 2 ** 40 }),
  windowMs: fc.nat(),
  precisionMs: fc.nat(),
  shadow: fc.boolean(),
  allowed: fc.boolean(),
  remaining: units,
  retryAfterMs: ms,
  resetAfterMs: ms,
})

const decision: fc.Arbitrary<Decision> = fc.record(
  {
    allowed: fc.boolean(),
    cost: fc.integer({ min: 1 }),
    remaining: units,
    retryAfterMs: ms,
    resetAfterMs: ms,
    deniedBy: fc.array(name, { maxLength: 4 }),
    limits: fc.array(limit, { maxLength: 4 }),
    source: fc.constantFrom<Source>('store', 'lease', 'denyCache', 'fallback', 'failOpen', 'failClosed'),
    atMs: fc.nat(),
    blockedMs: fc.nat(),
  },
  {
    requiredKeys: [
      'allowed',
      'cost',
      'remaining',
      'retryAfterMs',
      'resetAfterMs',
      'deniedBy',
      'limits',
      'source',
      'atMs',
    ],
  },
)

it('writes a decision like JSON.stringify', () => {
  fc.assert(
    fc.property(name, decision, (limiter, each) => {
      expect(JSON.parse(decisionText(limiter, each))).toEqual(
        JSON.parse(JSON.stringify({ limiter, ...each })),
      )
    }),
  )
})
