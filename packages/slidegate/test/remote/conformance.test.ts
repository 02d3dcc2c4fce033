// tier: system
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { storeConformance } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { type Served, served } from './served.ts'

// Runs the conformance suite through a service on Redis. A service on memory receives the same bodies, see serve-store.test.ts.

const { redis } = await useRedis()

describe('a service on Redis', () => {
  let service: Served
  beforeAll(async () => {
    service = await served(memoryStore())
  })
  afterAll(() => service[Symbol.asyncDispose]())

  for (const { name, run } of storeConformance) {
    it(name, () =>
      run(({ clock }) => {
        service.serve(redisStore(redis, { clock, prefix: `slidegate:test:${randomUUID()}` }))
        return service.connect()
      }),
    )
  }
})
