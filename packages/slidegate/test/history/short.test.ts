// tier: integration
import { describe, expect, test } from 'vitest'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'
import { KINDS } from './declarations.ts'
import { playKeyedAtRandom } from './keyed-play.ts'
import { playAtRandom } from './play.ts'
import { LONG, longerIfHeld, type Scale } from './scale.ts'

// The quick form of the random histories: on memory and one client, a few hundred decisions each. The other files here play
// more of them, on every kind of connection, each kind mixed with every other.

const { redis } = await useRedis()
const stores = storesOn(redis)

const small: Omit<Scale, 'kinds'> = { limit: 6, windowMs: 200, events: 60, longWaits: 5 }

describe('memory, Redis and the oracle agree in every field of every decision', () => {
  test.each(KINDS)('for a limit of kind %s', async (kind) => {
    const scale = longerIfHeld({ ...small, kinds: [kind] })
    expect(await playAtRandom(scale, stores, 300)).toBeGreaterThanOrEqual(300)
  })

  test('for all kinds at random, with a clock that is set back now and then', async () => {
    const scale = longerIfHeld({ ...LONG, kinds: KINDS })
    expect(await playAtRandom(scale, stores, 1000)).toBeGreaterThanOrEqual(1000)
  })

  test('for sliding windows that share a log of hundreds of records', async () => {
    const scale: Scale = {
      limit: 300,
      windowMs: 1000,
      events: 900,
      longWaits: 1,
      oneLog: true,
      kinds: ['sliding'],
    }
    expect(await playAtRandom(scale, stores, 1500)).toBeGreaterThanOrEqual(1500)
  })

  test('for several keys, bans and reservations at once', async () => {
    const scale = { limit: 6, windowMs: 200, events: 50, longWaits: 5, limits: 2, kinds: KINDS }
    const everything = { ...scale, dimensions: [1, 2, 3], bans: true, reservations: true }
    const seen = await playKeyedAtRandom(everything, stores, { decisions: 400 })
    expect(seen.decisions).toBeGreaterThanOrEqual(400)
  })

  test('for two and three limits whose numbers change', async () => {
    const scale = { limit: 6, windowMs: 200, events: 50, longWaits: 5, limits: 3, kinds: KINDS }
    const changing = { ...scale, dimensions: [1], sets: [3], onlyNumbers: true }
    const seen = await playKeyedAtRandom(changing, stores, { decisions: 300, changed: 10 })
    expect(seen.changed).toBeGreaterThanOrEqual(10)
  })

  test('for keys with overrides, and a clock that is set back now and then', async () => {
    const scale = { ...LONG, events: 50, limits: 3, kinds: KINDS }
    const overridden = { ...scale, dimensions: [1, 2], overrides: true, bans: true }
    const seen = await playKeyedAtRandom(overridden, stores, { decisions: 300, overridden: 50 })
    expect(seen.overridden).toBeGreaterThanOrEqual(50)
  })
})
