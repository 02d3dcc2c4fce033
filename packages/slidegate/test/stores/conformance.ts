import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, it } from 'vitest'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import type { Store } from '../../src/stores/store.ts'
import { type CreateStore, storeConformance } from '../../src/testing/index.ts'

/** A connected client, and a function to close it. */
export interface Connection {
  readonly client: RedisClient
  close(): Promise<unknown>
}

/** The cases to run: the `place`th of each `of`. */
export interface Share {
  readonly place: number
  readonly of: number
}

/** Registers a test for each case of the suite, or for a share of them. */
export function conforms(
  createStore: (options: Parameters<CreateStore>[0], name: string) => Store,
  { place, of }: Share = { place: 0, of: 1 },
): void {
  for (const { name, run } of storeConformance.filter((_, i) => i % of === place % of)) {
    it(name, () => run((options) => createStore(options, name)))
  }
}

/** Registers the suite for `redisStore` with one client. It connects before the first test. */
export function conformsBy(
  connect: () => Promise<Connection>,
  bucketsFor?: (name: string) => number,
  share?: Share,
): void {
  let connection: Connection
  beforeAll(async () => {
    connection = await connect()
  })
  afterAll(() => connection.close())

  conforms(({ clock }, name) => {
    const options = { clock, prefix: `slidegate:test:${randomUUID()}` }
    return redisStore(connection.client, bucketsFor ? { ...options, buckets: bucketsFor(name) } : options)
  }, share)
}
