// tier: system
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisSentinel, startSentinel } from './redis-sentinel.ts'

describe.each([1, 3])('with %s sentinels', (count) => {
  let redis: RedisSentinel
  let client: Redis
  beforeAll(async () => {
    redis = await startSentinel({ sentinels: count })
    const sentinels = redis.sentinels.map((port) => ({ host: '127.0.0.1', port }))
    client = new Redis({ sentinels, name: redis.masterName })
    client.on('error', () => {})
  })
  afterAll(async () => {
    client?.disconnect()
    await redis?.stop()
  })

  it('leads a client to the master', async () => {
    expect(redis.servers).toHaveLength(2)
    expect(await redis.master()).toBe(redis.servers[0])
    await client.set('slidegate:a', '1')
    expect(await client.wait(1, 30_000)).toBe(1)
  })

  it('makes the replica the master when asked to, with its keys', async () => {
    expect(await redis.failover()).toBe(redis.servers[1])
    expect(await redis.master()).toBe(redis.servers[1])
    expect(await client.get('slidegate:a')).toBe('1')
  })

  it('makes the replica the master when the master is killed, which comes back as its replica', async () => {
    const old = await redis.master()
    await old.kill()
    const next = await redis.replaced(old)
    expect(next).toBe(redis.servers[0])
    expect(await client.get('slidegate:a')).toBe('1')
    await old.start()
    await redis.settled()
    expect(await redis.master()).toBe(next)
  })
})
