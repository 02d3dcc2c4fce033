import { it } from 'vitest'
import { redisStore } from '../../src/stores/redis/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { writeOutcomes } from './outcomes.ts'

// No test, but run as one by write-fixtures.js.

const { redis } = await useRedis()

it('writes random histories with the outcomes of the present code', async () => {
  const count = await writeOutcomes(
    (clock) => redisStore(redis, { clock: clock.now, buckets: 1 }),
    () => redis.flushall(),
  )
  console.log(`${count} ops`)
})
