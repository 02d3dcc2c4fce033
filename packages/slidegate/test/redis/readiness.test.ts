// tier: system
import { Redis as Ioredis5 } from 'ioredis'
import { Redis as Ioredis6 } from 'ioredis6'
import { Redis as Iovalkey } from 'iovalkey'
import { createClientPool, createClient as createNodeRedis6, createSentinel } from 'redis'
import { createClient as createNodeRedis5 } from 'redis5'
import { expect, it, onTestFinished, vi } from 'vitest'
import { connectionOf, type RedisClient } from '../../src/stores/redis/clients.ts'
import { runScript } from '../../src/stores/redis/transport.ts'
import { startRedis } from '../support/redis-server.ts'

interface Lazy {
  readonly client: RedisClient & { on(event: 'error', listener: () => void): unknown }
  connect(): Promise<unknown>
  end(): unknown
}

const ofIoredis = (client: Ioredis5 | Ioredis6 | Iovalkey): Lazy => ({
  client,
  connect: () => client.connect(),
  end: () => client.disconnect(),
})

const CLIENTS: Readonly<Record<string, (port: number) => Lazy>> = {
  'ioredis 5': (port) => ofIoredis(new Ioredis5({ port, lazyConnect: true })),
  'ioredis 6': (port) => ofIoredis(new Ioredis6({ port, lazyConnect: true })),
  iovalkey: (port) => ofIoredis(new Iovalkey({ port, lazyConnect: true })),
  'node-redis 5': (port) => {
    const client = createNodeRedis5({ socket: { port } })
    return { client, connect: () => client.connect(), end: () => client.destroy() }
  },
  'node-redis 6': (port) => {
    const client = createNodeRedis6({ socket: { port } })
    return { client, connect: () => client.connect(), end: () => client.destroy() }
  },
}

it.each(Object.entries(CLIENTS))('%s is ready unless it would queue commands', async (_, make) => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const { client, connect, end } = make(server.port)
  client.on('error', () => {})
  const connection = connectionOf(client)
  const becomes = (isReady: boolean) =>
    vi.waitFor(() => expect(connection.isReady).toBe(isReady), { timeout: 30_000, interval: 1 })

  // Nothing has been sent yet. A client without commands might never connect.
  expect(connection.isReady).toBe(true)
  const connected = connect()
  expect(connection.isReady).toBe(false)
  await connected
  expect(connection.isReady).toBe(true)
  await server.kill()
  await becomes(false)
  await server.start()
  await becomes(true)
  await end()
  // The next command reports the error.
  await becomes(true)
  await expect(runScript(connection, connection.sender(), 1, ['k'])).rejects.toThrow(/closed/i)
})

it("a pool and a Sentinel, which don't expose their state, count as ready", () => {
  const sentinelRootNodes = [{ host: '127.0.0.1', port: 1 }]
  expect(connectionOf(createClientPool()).isReady).toBe(true)
  expect(connectionOf(createSentinel({ name: 'm', sentinelRootNodes })).isReady).toBe(true)
})
