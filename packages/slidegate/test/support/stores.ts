import type { Redis } from 'ioredis'
import { memoryStore } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { ManualClock } from '../../src/testing/index.ts'

/** Returns both stores, each using a manual clock. */
export const storesOn = (redis: Redis) => ({
  memory: (clock: ManualClock) => memoryStore({ clock: clock.now }),
  Redis: (clock: ManualClock) => redisStore(redis, { clock: clock.now }),
})
