// tier: integration
import { expect, it } from 'vitest'
import { memoryStore, withDenyCache } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { playAtRandom, type StoreOf } from './play.ts'
import type { Result } from './result.ts'
import type { Scale } from './scale.ts'

// With a deny cache in front, stores return what the oracle returns, except for `remaining` and `source`.

const { redis } = await useRedis()

const stores: Record<string, StoreOf> = {
  memory: (clock) => withDenyCache(memoryStore({ clock: clock.now }), { clock: clock.now }),
  Redis: (clock) =>
    withDenyCache(redisStore(redis, { clock: clock.now }), { clock: clock.now, maxStaleMs: 40 }),
}

let fromCache = 0

function withoutRemaining(result: Result): unknown {
  if (typeof result !== 'object' || !('source' in result)) return result
  const { remaining: _, source, ...rest } = result
  if (source === 'denyCache') fromCache++
  return { ...rest, limits: rest.limits.map(({ remaining: _, ...limit }) => limit) }
}

const few: Scale = {
  ...{ limit: 6, windowMs: 200, events: 80, longWaits: 2 },
  kinds: ['sliding', 'sliding', 'sliding', 'fixed'],
}
const many: Scale = {
  ...{ limit: 40, windowMs: 1000, events: 300, longWaits: 1, oneLog: true },
  kinds: ['sliding'],
}

it.each([
  ['with small limits and all events', few, 2500],
  ['with several windows on one log', many, 2500],
] as const)('stores behind a deny cache decide like the oracle %s', async (_, scale, wanted) => {
  fromCache = 0
  await playAtRandom(scale, stores, wanted, withoutRemaining)
  expect(fromCache).toBeGreaterThan(wanted / 10)
})
