// tier: system
import { describe, expect, test } from 'vitest'
import { KINDS } from './declarations.ts'
import { playAtRandom } from './play.ts'
import { LONG, longerIfHeld, type Scale, SUMMING } from './scale.ts'
import { useStores } from './use-stores.ts'

// Every kind of limit, alone and mixed with every other. Limits are low, so that all branches run.

const stores = useStores()

const small: Omit<Scale, 'kinds'> = { limit: 6, windowMs: 200, events: 60, longWaits: 5 }

describe.each(KINDS)('%s', (kind) => {
  test.each([
    ['alone', small, 240],
    ['alone with a clock that is set back', LONG, 120],
  ])('decides like the oracle %s', async (_, scale, decisions) => {
    const alone = longerIfHeld({ ...scale, kinds: [kind] })
    expect(await playAtRandom(alone, stores, decisions)).toBeGreaterThanOrEqual(decisions)
  })

  const others = KINDS.slice(KINDS.indexOf(kind) + 1)
  test.each(others)('decides like the oracle when mixed with %s', async (other) => {
    const mixed = longerIfHeld({ ...small, kinds: [kind, other] })
    expect(await playAtRandom(mixed, stores, 60)).toBeGreaterThanOrEqual(60)
  })
})

const great: Omit<Scale, 'kinds'> = { ...LONG, limit: 2 ** 40, windowMs: 100_000 }

describe.each(KINDS.filter((kind) => SUMMING.includes(kind)))('%s with large numbers', (kind) => {
  test.each([
    ['when it is charged up to its limit', great],
    ['when it is charged more than its limit', { ...great, charge: Number.MAX_SAFE_INTEGER }],
    ['when a low limit is charged more than it holds', { ...LONG, charge: Number.MAX_SAFE_INTEGER }],
  ])('decides like the oracle %s', async (_, scale) => {
    expect(await playAtRandom({ ...scale, kinds: [kind] }, stores, 80)).toBeGreaterThanOrEqual(80)
  })
})

test('all kinds mixed at random, with a clock that is set back, decide like the oracle', async () => {
  expect(await playAtRandom(longerIfHeld({ ...LONG, kinds: KINDS }), stores, 300)).toBeGreaterThanOrEqual(300)
})
