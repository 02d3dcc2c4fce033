// tier: integration
import { Redis } from 'ioredis'
import { describe } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { conforms, conformsBy } from './conformance.ts'

// Runs the suite on memory, and on Redis with one client. conformance-clients.test.ts runs it with every client, on
// Sentinel and on a Cluster.

const { server } = await useRedis()

describe('memory', () => conforms(({ clock }) => memoryStore({ clock })))

describe('Redis with ioredis 5', () => {
  conformsBy(async () => {
    const client = new Redis(server.port)
    return { client, close: () => client.quit() }
  })
})
