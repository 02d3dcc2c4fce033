// tier: system
import { GlideClient, Logger } from '@valkey/valkey-glide'
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster6, Redis as Redis6 } from 'ioredis6'
import { Redis as Iovalkey, Cluster as IovalkeyCluster } from 'iovalkey'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { createClient as createClient5, createCluster as createCluster5 } from 'redis5'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { warnOfClient } from '../../src/stores/redis/client-warnings.ts'
import type { RedisClient } from '../../src/stores/redis/clients.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'

Logger.init('off')

const lazyConnect = true
const nodes = [{ host: '127.0.0.1', port: 1 }]
const rootNodes = [{ socket: { host: '127.0.0.1', port: 1 } }]
const sentinelRootNodes = [{ host: '127.0.0.1', port: 1 }]

/** Returns the warnings about a client. */
function warningsOf(client: RedisClient): string[] {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => emit.mockRestore())
  warnOfClient(client)
  warnOfClient(client)
  return emit.mock.calls.map((call) => JSON.stringify(call))
}

describe('a harmful client setting causes one warning', () => {
  const HARMFUL: readonly (readonly [string, () => RedisClient])[] = [
    ['maxRetriesPerRequest is null', () => new Redis({ lazyConnect, maxRetriesPerRequest: null })],
    ['maxRetriesPerRequest is null', () => new Redis6({ lazyConnect, maxRetriesPerRequest: null })],
    ['maxRetriesPerRequest is null', () => new Iovalkey({ lazyConnect, maxRetriesPerRequest: null })],
    ['retryStrategy', () => new Redis({ lazyConnect, retryStrategy: null as never })],
    ["role is 'slave'", () => new Redis({ lazyConnect, sentinels: nodes, name: 'm', role: 'slave' })],
    ['clusterRetryStrategy', () => new Cluster(nodes, { lazyConnect, clusterRetryStrategy: null as never })],
    ['maxRedirections is 1000', () => new Cluster6(nodes, { lazyConnect, maxRedirections: 1000 })],
    [
      'delays of up to 5000 ms',
      () => new IovalkeyCluster(nodes, { lazyConnect, retryDelayOnTryAgain: 5000 }),
    ],
    ['enableAutoPipelining', () => new IovalkeyCluster(nodes, { lazyConnect, enableAutoPipelining: true })],
    ['keyPrefix has braces', () => new Cluster(nodes, { lazyConnect, keyPrefix: '{app}:' })],
    ['socket.reconnectStrategy is false', () => createClient({ socket: { reconnectStrategy: false } })],
    ['socket.reconnectStrategy is false', () => createClient5({ socket: { reconnectStrategy: false } })],
    ['socket.socketTimeout is set', () => createClient({ socket: { socketTimeout: 1000 } })],
    ['readonly is true', () => createClient({ readonly: true })],
    [
      'socket.reconnectStrategy is false',
      () => createCluster({ rootNodes, defaults: { socket: { reconnectStrategy: false } } }),
    ],
    ['keyPrefix has braces', () => createCluster({ rootNodes, keyPrefix: 'a{b}' })],
  ]

  it.each(HARMFUL)('%s', (said, make) => {
    const warnings = warningsOf(make())
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain(said)
    expect(warnings[0]).toContain('docs/production.md#client-settings')
    expect(warnings[0]).toContain('SLIDEGATE_CLIENT_SETTINGS')
  })

  it('several settings of one client share a warning', () => {
    const socket = { reconnectStrategy: false } as const
    const warnings = warningsOf(createClient({ readonly: true, socket }))
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatch(/reconnectStrategy.*readonly/)
  })
})

describe('no warning is emitted for', () => {
  const HARMLESS: readonly (readonly [string, () => RedisClient])[] = [
    ['ioredis 5', () => new Redis({ lazyConnect })],
    ['ioredis 6', () => new Redis6({ lazyConnect })],
    ['iovalkey', () => new Iovalkey({ lazyConnect })],
    ['ioredis with Sentinel', () => new Redis({ lazyConnect, sentinels: nodes, name: 'm' })],
    ['a Cluster of ioredis 5', () => new Cluster(nodes, { lazyConnect })],
    ['a Cluster of ioredis 6', () => new Cluster6(nodes, { lazyConnect })],
    ['a Cluster of iovalkey', () => new IovalkeyCluster(nodes, { lazyConnect })],
    ['a Cluster with pipelines', () => new Cluster(nodes, { lazyConnect, enableAutoPipelining: true })],
    ['a Cluster with pipelines', () => new Cluster6(nodes, { lazyConnect, enableAutoPipelining: true })],
    ['a Cluster with a keyPrefix', () => new Cluster(nodes, { lazyConnect, keyPrefix: 'app:' })],
    ['braces on a single server', () => new Redis({ lazyConnect, keyPrefix: '{app}:' })],
    ['ioredis that does not queue', () => new Redis({ lazyConnect, enableOfflineQueue: false })],
    ['node-redis 5', () => createClient5()],
    ['node-redis 6', () => createClient()],
    ['node-redis by url', () => createClient({ url: 'redis://127.0.0.1:1' })],
    ['a pool of node-redis', () => createClientPool()],
    ['a Sentinel of node-redis', () => createSentinel({ name: 'm', sentinelRootNodes })],
    ['a Cluster of node-redis 5', () => createCluster5({ rootNodes })],
    ['a Cluster of node-redis 6', () => createCluster({ rootNodes })],
    [
      'a socketTimeout with a strategy',
      () => createClient({ socket: { socketTimeout: 1000, reconnectStrategy: () => 100 } }),
    ],
    ['{ command(words) }', () => ({ command: async () => undefined })],
  ]

  it.each(HARMLESS)('%s', (_, make) => expect(warningsOf(make())).toEqual([]))

  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  it('Valkey GLIDE', async () => {
    const client = await GlideClient.createClient({
      addresses: [{ host: '127.0.0.1', port: server.port }],
      advancedConfiguration: { connectionTimeout: 30_000 },
    })
    expect(warningsOf(client)).toEqual([])
    client.close()
  })
})
