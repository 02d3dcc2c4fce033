import fc from 'fast-check'
import type { Redis } from 'ioredis'
import { describe, test } from 'vitest'
import { redisStore } from '../../src/stores/redis/index.ts'
import { storeConformance } from '../../src/testing/index.ts'
import { historyOf } from '../history/histories.ts'
import { keyedHistoryOf } from '../history/keyed-histories.ts'
import { playKeyed } from '../history/keyed-play.ts'
import { play, type StoreOf } from '../history/play.ts'
import { anewClient, rareWayClient } from '../history/rare-way.ts'
import { KEYED, SCALES } from './scales.ts'

const SEEDS = [1, 2, 3]

/** Registers histories with fixed seeds, and the conformance suite, as checks of the script. */
export function describeHistories(redis: Redis): void {
  const [anew, rare] = [anewClient(redis), rareWayClient(redis)]
  const stores: Record<string, StoreOf> = {
    Redis: (clock) => redisStore(redis, { clock: clock.now }),
    'written anew': (clock) => redisStore(anew, { clock: clock.now, prefix: 'slidegate:anew' }),
    'the rare way alone': (clock) => redisStore(rare, { clock: clock.now, prefix: 'slidegate:rare' }),
  }

  describe.each(SEEDS)('histories %i', (seed) => {
    test.each(Object.entries(SCALES))('%s', async (_, scale) => {
      const numRuns = scale.events > 500 ? 1 : 5
      for (const history of fc.sample(historyOf(scale), { seed, numRuns })) await play(history, stores)
    })

    test.each(Object.entries(KEYED))('%s', async (_, scale) => {
      for (const history of fc.sample(keyedHistoryOf(scale), { seed, numRuns: 5 })) {
        await playKeyed(history, stores)
      }
    })
  })

  describe('conformance', () => {
    for (const { name, run } of storeConformance) {
      test(name, () => run(({ clock }) => redisStore(redis, { clock })))
    }
  })
}
