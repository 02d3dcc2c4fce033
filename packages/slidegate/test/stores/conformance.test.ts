// tier: integration
import { Redis } from 'ioredis'
import { describe } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { conforms, conformsBy } from './conformance.ts'

// On memory and on Redis by one client. conformance-clients.test.ts runs it by every client, on Sentinel and on a Cluster.

const { server } = await useRedis()

describe('memory', () => conforms(({ clock }) => memoryStore({ clock })))

describe('Redis by ioredis 5', () => {
  conformsBy(async () => {
    const client = new Redis(server.port)
    return { client, close: () => client.quit() }
  })
})
