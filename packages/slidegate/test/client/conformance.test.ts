// tier: system
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { memoryStore, type Store } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type CreateStore, storeConformance } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { type Served, served } from './served.ts'

// What every store promises, through a service.

const { redis } = await useRedis()

const BEHIND: Readonly<Record<string, (options: Parameters<CreateStore>[0]) => Store>> = {
  memory: ({ clock }) => memoryStore({ clock }),
  Redis: ({ clock }) => redisStore(redis, { clock, prefix: `slidegate:test:${randomUUID()}` }),
}

describe.each(Object.entries(BEHIND))('a service on %s', (_, createStore) => {
  let service: Served
  beforeAll(async () => {
    service = await served(memoryStore())
  })
  afterAll(() => service[Symbol.asyncDispose]())

  for (const { name, run } of storeConformance) {
    it(name, () =>
      run((options) => {
        service.serve(createStore(options))
        return service.connect()
      }),
    )
  }
})
