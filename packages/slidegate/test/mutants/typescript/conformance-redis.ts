import { randomUUID } from 'node:crypto'
import { describe, it } from 'vitest'
import { redisStore } from '../../../src/stores/redis/index.ts'
import { storeConformance } from '../../../src/testing/index.ts'
import { useRedis } from '../../support/use-redis.ts'

const { redis } = await useRedis()

describe('a server', () => {
  for (const { name, run } of storeConformance) {
    it(name, () => run(({ clock }) => redisStore(redis, { clock, prefix: `slidegate:${randomUUID()}` })))
  }
})
