// tier: system
import { expect, test } from 'vitest'
import { KnownSets } from '../../src/client/sets.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { Player } from '../compatibility/outcomes.ts'
import { RandomHistory } from '../compatibility/random-ops.ts'
import { useRedis } from '../support/use-redis.ts'
import { generalDriverClient } from './general-driver.ts'
import { TIMES } from './play.ts'

// The usual way and the general driver give the same outcomes. Each reads only what it has stored.

const { redis } = await useRedis()
const general = await generalDriverClient(redis)

/** The seed of the first history: `FIRST_SEED=1000` for others. */
const FIRST_SEED = Number(process.env.FIRST_SEED ?? 0)
const HISTORIES = 48 * TIMES

test('any history has the same outcomes by the usual way as by the general driver', async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed++) {
    await redis.flushall()
    const known = new KnownSets()
    const history = new RandomHistory(seed, (set) => known.of(set, () => {}), { isOrdered: true })
    const { sets, startMs } = history
    const usual = new Player(sets, startMs, (clock) =>
      redisStore(redis, { clock: clock.now, buckets: 1, prefix: 'slidegate:usual' }),
    )
    const generally = new Player(sets, startMs, (clock) =>
      redisStore(general, { clock: clock.now, buckets: 1, prefix: 'slidegate:general' }),
    )
    for (let batch = history.next(); batch !== undefined; batch = history.next()) {
      const outcomes = await usual.play(batch)
      const others = await generally.play(batch)
      history.learn(batch, outcomes)
      expect({ seed, batch, outcomes: others }).toEqual({ seed, batch, outcomes })
    }
  }
}, 600_000)
