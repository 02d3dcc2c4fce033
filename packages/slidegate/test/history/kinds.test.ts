// tier: system
import { describe, expect, test } from 'vitest'
import { KINDS } from './declarations.ts'
import { playAtRandom } from './play.ts'
import { LONG, longerIfHeld, type Scale, SUMMING } from './scale.ts'
import { useStores } from './use-stores.ts'

// Every kind of limit, alone and mixed with every other, where so little is let through that everything happens.

const stores = useStores()

const small: Omit<Scale, 'kinds'> = { limit: 6, windowMs: 200, events: 60, longWaits: 5 }

describe.each(KINDS)('%s', (kind) => {
  test.each([
    ['alone', small, 240],
    ['alone, the clock set back now and then', LONG, 120],
  ])('%s', async (_, scale, decisions) => {
    const alone = longerIfHeld({ ...scale, kinds: [kind] })
    expect(await playAtRandom(alone, stores, decisions)).toBeGreaterThanOrEqual(decisions)
  })

  const others = KINDS.slice(KINDS.indexOf(kind) + 1)
  test.each(others)('with %s', async (other) => {
    const mixed = longerIfHeld({ ...small, kinds: [kind, other] })
    expect(await playAtRandom(mixed, stores, 60)).toBeGreaterThanOrEqual(60)
  })
})

const great: Omit<Scale, 'kinds'> = { ...LONG, limit: 2 ** 40, windowMs: 100_000 }

describe.each(KINDS.filter((kind) => SUMMING.includes(kind)))('%s, of great numbers', (kind) => {
  test.each([
    ['charged what it admits', great],
    ['charged more than it holds', { ...great, charge: Number.MAX_SAFE_INTEGER }],
    ['of few, charged more than it holds', { ...LONG, charge: Number.MAX_SAFE_INTEGER }],
  ])('%s', async (_, scale) => {
    expect(await playAtRandom({ ...scale, kinds: [kind] }, stores, 80)).toBeGreaterThanOrEqual(80)
  })
})

test('all kinds at random, the clock set back now and then', async () => {
  expect(await playAtRandom(longerIfHeld({ ...LONG, kinds: KINDS }), stores, 300)).toBeGreaterThanOrEqual(300)
})
