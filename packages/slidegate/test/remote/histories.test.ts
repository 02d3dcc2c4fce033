// tier: system
import { afterAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { KINDS } from '../history/declarations.ts'
import type { KeyedScale } from '../history/keyed-histories.ts'
import { playKeyedAtRandom } from '../history/keyed-play.ts'
import { playAtRandom, type StoreOf } from '../history/play.ts'
import { useRedis } from '../support/use-redis.ts'
import { served } from './served.ts'

// The same random histories through the oracles and through a service, on memory and on Redis: equal in every field.

const { redis } = await useRedis()
const services = [await served(memoryStore()), await served(memoryStore())] as const
afterAll(() => Promise.all(services.map((service) => service[Symbol.asyncDispose]())))

const behind = (service: (typeof services)[number], storeOf: StoreOf): StoreOf => {
  return (clock) => {
    service.serve(storeOf(clock))
    return service.connect()
  }
}

const STORES: Record<string, StoreOf> = {
  'a service on memory': behind(services[0], (clock) => memoryStore({ clock: clock.now })),
  'a service on Redis': behind(services[1], (clock) =>
    redisStore(redis, { clock: clock.now, prefix: 'slidegate:served' }),
  ),
}

/** Nothing else can be reserved. */
const SUMS = KINDS.filter((kind) => !['zset', 'stream', 'concurrency', 'distinct'].includes(kind))

const small = { limit: 6, windowMs: 200, events: 50, longWaits: 5, limits: 2 }
/** By the real clock permits are renewed, and nothing is over before a history is. */
const hours = { ...small, shortestMs: 600_000, windowMs: 1_200_000 }

describe('a service and the oracle agree in every field of every answer', () => {
  test('one key, all kinds', async () => {
    const decisions = 300
    const scale = { ...hours, kinds: KINDS }
    expect(await playAtRandom(scale, STORES, decisions)).toBeGreaterThanOrEqual(decisions)
  })

  const keyed: Record<string, Partial<KeyedScale>> = {
    'several keys, bans, limits that change': { kinds: KINDS, bans: true, sets: [1, 2] },
    reservations: { kinds: SUMS, reservations: true, bans: true },
    overrides: { kinds: KINDS, limits: 3, overrides: true },
    'the clock set back': { kinds: SUMS, windowMs: 3000, clockSteps: true, bans: true, reservations: true },
  }
  test.each(Object.entries(keyed))('%s', async (_, scale) => {
    const { decisions } = await playKeyedAtRandom(
      { ...small, dimensions: [1, 2, 3], ...scale } as KeyedScale,
      STORES,
      { decisions: 120 },
    )
    expect(decisions).toBeGreaterThanOrEqual(120)
  })
})
