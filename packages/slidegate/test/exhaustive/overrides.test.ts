// tier: system
import { expect, test } from 'vitest'
import { KINDS, type KindName } from '../history/declarations.ts'
import { useRedis } from '../support/use-redis.ts'
import { limitersOf, overriding } from './alphabet.ts'
import { playInMemory, playOnRedis } from './play-all.ts'

// The same as in alone.test.ts, while the numbers of a key change, and it is exempt, blocked and let go.

const { redis } = await useRedis()
// Connected before histories in memory keep this process busy.
await redis.ping()

/** Kinds whose overrides change more than the limit, or whose logs keep entries. */
const OWN: readonly KindName[] = ['sliding', 'bucket', 'zset', 'concurrency']

test.each(KINDS)('overrides of a limit of kind %s, and of another beside it', async (kind) => {
  const limiters = limitersOf(kind, kind)
  const alphabet = overriding([kind])
  const played = {
    memory: await playInMemory(limiters, alphabet, OWN.includes(kind) ? 4 : 3),
    redis: await playOnRedis(redis, limiters, alphabet, 3),
  }
  console.log(kind, JSON.stringify(played))
  expect(played.memory).toBeGreaterThanOrEqual(OWN.includes(kind) ? 7000 : 500)
  expect(played.redis).toBeGreaterThanOrEqual(500)
})
