import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { memoryStore } from '../src/index.ts'
import { redisStore } from '../src/stores/redis/index.ts'
import { type CreateStore, storeConformance } from '../src/testing.ts'
import { CLIENTS, type Connection } from './conformance-clients.ts'
import { type RedisServer, startRedis } from './support/redis-server.ts'

function conforms(createStore: CreateStore): void {
  for (const { name, run } of storeConformance) it(name, () => run(createStore))
}

describe('memory', () => conforms(({ clock }) => memoryStore({ clock })))

describe('Redis', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  describe.each(Object.entries(CLIENTS))('by %s', (_, connect) => {
    let connection: Connection
    beforeAll(async () => {
      connection = await connect(server.port)
    })
    afterAll(() => connection.close())

    conforms(({ clock }) => redisStore(connection.client, { clock, prefix: `test:${randomUUID()}` }))
  })
})
