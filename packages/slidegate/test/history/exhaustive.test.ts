// tier: system
import { expect, test } from 'vitest'
import { useRedis } from '../support/use-redis.ts'
import { deep, limitersOf, wide } from './alphabet.ts'
import { KINDS } from './declarations.ts'
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
    wide: await playInMemory(limiters, many, 3),
    deep: await playInMemory(limiters, few, few.length > 6 ? 4 : 5),
    redis: await playOnRedis(redis, limiters, many, 2),
  }
  expect(played.wide).toBeGreaterThanOrEqual(900)
  expect(played.deep).toBeGreaterThanOrEqual(500)
  expect(played.redis).toBeGreaterThanOrEqual(50)
})
