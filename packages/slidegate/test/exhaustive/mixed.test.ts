import { expect, test } from 'vitest'
import { KINDS } from '../history/declarations.ts'
import { useRedis } from '../support/use-redis.ts'
import { deep, limitersOf, wide } from './alphabet.ts'
import { playInMemory, playOnRedis } from './play-all.ts'

// The same as in alone.test.ts, with a sliding window beside the limit: whatever happens, both are charged or none.

const { redis } = await useRedis()
// Connected before histories in memory keep this process busy.
await redis.ping()

test.each(KINDS.filter((kind) => kind !== 'sliding'))('%s with a sliding window', async (kind) => {
  const limiters = limitersOf(kind, 'sliding')
  const played = {
    wide: await playInMemory(limiters, wide([kind]), 4),
    deep: await playInMemory(limiters, deep([kind]), 5),
    redis: await playOnRedis(redis, limiters, wide([kind]), 3),
  }
  console.log(kind, JSON.stringify(played))
  expect(played.wide).toBeGreaterThanOrEqual(1000)
  expect(played.deep).toBeGreaterThanOrEqual(1000)
  expect(played.redis).toBeGreaterThanOrEqual(1000)
})
