// tier: system
import { expect, test } from 'vitest'
import { KINDS } from '../history/declarations.ts'
import { useRedis } from '../support/use-redis.ts'
import { deep, limitersOf, wide } from './alphabet.ts'
import { playInMemory, playOnRedis } from './play-all.ts'

// Most faults show in a few steps, if these are the right ones: so all histories of a few steps are played, on two keys
// under two limits of one kind, which are changed meanwhile. Nothing is random.

const { redis } = await useRedis()
// Connected before histories in memory keep this process busy.
await redis.ping()

test.each(KINDS)('%s alone', async (kind) => {
  const limiters = limitersOf(kind, kind)
  const [many, few] = [wide([kind]), deep([kind])]
  const played = {
    wide: await playInMemory(limiters, many, 4),
    deep: await playInMemory(limiters, few, few.length > 6 ? 5 : 6),
    redis: await playOnRedis(redis, limiters, many, 3),
  }
  console.log(kind, JSON.stringify(played))
  expect(played.wide).toBeGreaterThanOrEqual(15_000)
  expect(played.deep).toBeGreaterThanOrEqual(8000)
  expect(played.redis).toBeGreaterThanOrEqual(900)
})
