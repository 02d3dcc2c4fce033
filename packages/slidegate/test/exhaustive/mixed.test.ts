// tier: system
import { expect, test } from 'vitest'
import { KINDS, type KindName } from '../history/declarations.ts'
import { useRedis } from '../support/use-redis.ts'
import { deep, limitersOf, wide } from './alphabet.ts'
import { playInMemory, playOnRedis } from './play-all.ts'

// The same as in alone.test.ts, with a sliding window beside the limit: whatever happens, both are charged or none.

const { redis } = await useRedis()
// Connected before histories in memory keep this process busy.
await redis.ping()

const PAIRS: readonly (readonly [KindName, KindName])[] = [
  ...KINDS.filter((kind) => kind !== 'sliding' && kind !== 'distinct').map(
    (kind) => [kind, 'sliding'] as const,
  ),
  // The one finds a request that comes again, the other counts it again once it is found no longer.
  ['zset', 'stream'],
]

test.each(PAIRS)('%s with %s', async (kind, other) => {
  const limiters = limitersOf(kind, other)
  const [many, few] = [wide([kind]), deep([kind])]
  const played = {
    wide: await playInMemory(limiters, many, 4),
    deep: await playInMemory(limiters, few, 5),
    redis: await playOnRedis(redis, limiters, many, 3),
  }
  console.log(kind, other, JSON.stringify(played))
  expect(played.wide).toBeGreaterThanOrEqual(15_000)
  expect(played.deep).toBeGreaterThanOrEqual(3000)
  expect(played.redis).toBeGreaterThanOrEqual(900)
})
