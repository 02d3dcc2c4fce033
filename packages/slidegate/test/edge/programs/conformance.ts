// Runs the conformance suite with APIs that Node, Bun and Deno share, and prints the failed cases. REDIS_URL is the server.

import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { memoryStore } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { type CreateStore, storeConformance } from 'slidegate/testing'

const url = process.env.REDIS_URL ?? ''
const nodeRedis = await createClient({ url }).connect()
const ioredis = new Redis(url)
let stores = 0
const onRedis =
  (client: Redis | typeof nodeRedis): CreateStore =>
  (options) =>
    redisStore(client, { ...options, prefix: `slidegate:${stores++}` })

const told: Record<string, object> = {}
for (const [name, createStore] of Object.entries({
  memory: memoryStore,
  redis: onRedis(nodeRedis),
  ioredis: onRedis(ioredis),
})) {
  const broken: string[] = []
  for (const each of storeConformance) {
    await each.run(createStore).catch((error) => broken.push(`${each.name}: ${error.message}`))
  }
  told[name] = { cases: storeConformance.length, broken }
}
await Promise.all([nodeRedis.close(), ioredis.quit()])
console.log(JSON.stringify(told))
