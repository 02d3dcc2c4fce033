// tier: integration
import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { Player, readOutcomes, type StoreBy } from './outcomes.ts'

// Random histories of ops, and the outcome of each op. How the file is written: `npm run fixtures -- outcomes`.

const { redis } = await useRedis()
const stores: Record<string, StoreBy> = {
  memory: (clock) => memoryStore({ clock: clock.now }),
  Redis: (clock) => redisStore(redis, { clock: clock.now, buckets: 1 }),
}

describe.each(Object.entries(stores))('%s', (_, storeBy) => {
  it.each(readOutcomes().map((history, i) => ({ history, i })))(
    'gives the stored outcomes of history $i: $history.feature',
    async ({ history }) => {
      await redis.flushall()
      const player = new Player(history.sets, history.startMs, storeBy)
      for (const [i, batch] of history.batches.entries()) {
        const outcomes = await player.play(batch)
        for (const [j, outcome] of outcomes.entries()) {
          expect({ batch, outcome }).toEqual({ batch, outcome: history.outcomes[i]![j] })
        }
      }
    },
  )
})
