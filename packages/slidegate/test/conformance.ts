import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, it } from 'vitest'
import { type RedisClient, redisStore } from '../src/stores/redis/index.ts'
import type { Store } from '../src/stores/store.ts'
import { type CreateStore, storeConformance } from '../src/testing/index.ts'

/** A connected client, and how to end it. */
export interface Connection {
  readonly client: RedisClient
  close(): Promise<unknown>
}

/** Registers a test for each case of the suite. */
export function conforms(createStore: (options: Parameters<CreateStore>[0], name: string) => Store): void {
  for (const { name, run } of storeConformance) it(name, () => run((options) => createStore(options, name)))
}

/** The suite for `redisStore` over one client, which is connected before the first test. */
export function conformsBy(connect: () => Promise<Connection>, bucketsFor?: (name: string) => number): void {
  let connection: Connection
  beforeAll(async () => {
    connection = await connect()
  })
  afterAll(() => connection.close())

  conforms(({ clock }, name) => {
    const options = { clock, prefix: `slidegate:test:${randomUUID()}` }
    return redisStore(connection.client, bucketsFor ? { ...options, buckets: bucketsFor(name) } : options)
  })
}
