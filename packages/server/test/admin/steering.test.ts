// tier: system
import { describe, expect, it, onTestFinished } from 'vitest'
import { startCluster } from '../../../slidegate/test/support/redis-cluster.ts'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { makeCertificates, startTlsRedis } from '../../../slidegate/test/support/tls.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import { useRedis } from '../../../slidegate/test/support/use-redis.ts'
import { RedisAuditLog } from '../../src/admin/audit-log.ts'
import { RedisLink } from '../../src/admin/redis-link.ts'
import { ALL, MemorySteering, RedisSteering, type Steering } from '../../src/admin/steering.ts'

const { server, redis } = await useRedis()

async function onRedis(prefix: string): Promise<Steering> {
  const link = new RedisLink({ url: server.url, prefix }, '/')
  onTestFinished(() => link.close())
  await expect.poll(() => link.connected()).toBe(true)
  return new RedisSteering(link)
}

let runs = 0

describe.each<[string, () => Promise<Steering>]>([
  ['in memory', async () => new MemorySteering()],
  ['in Redis', () => onRedis(`slidegate:steering-${++runs}`)],
])('what operators have said, %s', (_, make) => {
  it('is nothing at first', async () => {
    const steering = await make()
    expect(await steering.read()).toEqual({})
  })

  it('is kept for each limit and for all', async () => {
    const steering = await make()
    await steering.say('api', ALL, true)
    await steering.say('api', 'hourly', false)
    await steering.say('login', 'hourly', true)
    expect(await steering.read()).toEqual({ api: { '*': true, hourly: false }, login: { hourly: true } })
  })

  it('can be said otherwise', async () => {
    const steering = await make()
    await steering.say('api', 'hourly', true)
    await steering.say('api', 'hourly', false)
    expect(await steering.read()).toEqual({ api: { hourly: false } })
  })

  it('can be taken back of one limit, and of all at once', async () => {
    const steering = await make()
    await steering.say('api', ALL, true)
    await steering.say('api', 'hourly', false)
    await steering.say('api', 'daily', false)
    await steering.say('api.v2', 'hourly', true)
    await steering.say('api', 'daily', null)
    expect(await steering.read()).toEqual({ api: { '*': true, hourly: false }, 'api.v2': { hourly: true } })
    await steering.say('api', ALL, null)
    expect(await steering.read()).toEqual({ 'api.v2': { hourly: true } })
    await steering.say('api', ALL, null)
  })

  it('is the same text whatever the order in which it was said', async () => {
    const [one, other] = [await make(), await make()]
    await one.say('a', 'x', true)
    await one.say('b', 'y', true)
    await other.say('b', 'y', true)
    await other.say('a', 'x', true)
    expect(JSON.stringify(await one.read())).toBe(JSON.stringify(await other.read()))
  })

  it('is nothing of what all objects have', async () => {
    const steering = await make()
    await steering.say('__proto__', 'constructor', true)
    const read = await steering.read()
    expect(Object.keys(read)).toEqual(['__proto__'])
    expect(read.constructor).toBeUndefined()
    expect({}).not.toHaveProperty('constructor', true)
  })
})

it('passes over what it cannot read: a broken word enforces nothing', async () => {
  const steering = await onRedis('slidegate:broken')
  await redis.zadd('slidegate:broken:{shadow}', 2, 'api:x', 0.5, 'api:y', 1, 'api:z', 1, 'api1', 1, '')
  expect(JSON.stringify(await steering.read())).toBe('{"api":{"z":true}}')
})

describe('there are 10,000 words at most', () => {
  const limits = Array.from({ length: 10_000 }, (_, i) => `l${i}`)

  async function oneMoreIsRefused(steering: Steering): Promise<void> {
    await expect(steering.say('api', 'more', true)).rejects.toMatchObject({ status: 409, code: 'too_many' })
    await steering.say('api', 'l1', null)
    await steering.say('api', 'more', true)
    expect(Object.keys((await steering.read()).api!)).toHaveLength(10_000)
  }

  it('in memory', async () => {
    const steering = new MemorySteering()
    for (const limit of limits) await steering.say('api', limit, true)
    await oneMoreIsRefused(steering)
  })

  it('in Redis', async () => {
    const steering = await onRedis('slidegate:full')
    await redis.zadd('slidegate:full:{shadow}', ...limits.flatMap((limit) => [1, `api:${limit}`]))
    await oneMoreIsRefused(steering)
  })
})

describe('the connection to Redis', () => {
  it('says that there is no answer at once where nobody listens, and goes on by itself when somebody does', async () => {
    const link = new RedisLink({ url: 'redis://:secret-word@127.0.0.1:1' }, '/')
    onTestFinished(() => link.close())
    expect(await link.connected()).toBe(false)
    const error = await link.ask((client) => client.get('slidegate:x')).catch((reason: Error) => reason)
    expect(error).toMatchObject({ status: 503, code: 'store_error' })
    expect(JSON.stringify(error) + (error as Error).message).not.toContain('secret-word')
  })

  it('keeps to so many commands at a time', async () => {
    const link = new RedisLink({ url: server.url }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    const asked = Array.from({ length: 300 }, () => link.ask((client) => client.get('slidegate:x')))
    const refused = (await Promise.allSettled(asked)).filter(({ status }) => status === 'rejected')
    expect(refused).toHaveLength(300 - 256)
  })

  it('gives up what Redis does not answer', async () => {
    const link = new RedisLink({ url: server.url }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    await expect(link.ask(() => new Promise(() => {}))).rejects.toMatchObject({ code: 'store_error' })
  })

  it('takes what Redis has answered while this process stood still', async () => {
    const link = new RedisLink({ url: server.url }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    const asked = link.ask((client) => client.ping())
    const startMs = performance.now()
    while (performance.now() - startMs < 1200);
    expect(await asked).toBe('PONG')
  })

  it('is made anew where the server has become a replica', async () => {
    const demoted = await startRedis()
    onTestFinished(() => demoted.stop())
    const link = new RedisLink({ url: demoted.url, prefix: 'slidegate' }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    const id = () => link.ask((client) => client.client('ID'))
    const before = await id()
    await link.ask((client) => client.call('REPLICAOF', '127.0.0.1', '1'))
    await expect(new RedisSteering(link).say('api', ALL, true)).rejects.toMatchObject({ status: 503 })
    await until('it is another one', async () => (await id().catch(() => before)) !== before)
  })

  it('is with TLS where the store is', async () => {
    const certificates = await makeCertificates()
    const tlsServer = await startTlsRedis(certificates)
    onTestFinished(async () => {
      await tlsServer.stop()
      await certificates.remove()
    })
    const link = new RedisLink({ url: tlsServer.url, tls: { ca: certificates.files.ca } }, '/')
    const doubtful = new RedisLink({ url: tlsServer.url }, '/')
    onTestFinished(() => {
      link.close()
      doubtful.close()
    })
    await expect.poll(() => link.connected()).toBe(true)
    expect(await doubtful.connected()).toBe(false)
    await new RedisSteering(link).say('api', ALL, true)
    expect(await new RedisSteering(link).read()).toEqual({ api: { '*': true } })
  })

  it('is to a Cluster where the store is one', async () => {
    const cluster = await startCluster()
    onTestFinished(() => cluster.stop())
    const url = cluster.nodes.slice(0, 2).map(({ port }) => `redis://127.0.0.1:${port}`)
    const link = new RedisLink({ url, cluster: true }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    const steering = new RedisSteering(link)
    await steering.say('api', ALL, true)
    expect(await steering.read()).toEqual({ api: { '*': true } })
    const entries = new RedisAuditLog(link)
    const id = await entries.append({ who: 'ops', what: 'reset', instance: 'here' })
    expect(await entries.page(undefined, 10)).toMatchObject([[id, { who: 'ops' }]])
  })

  it('is on the database that the URL names', async () => {
    const link = new RedisLink({ url: `${server.url}/3`, prefix: 'slidegate:db' }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    await new RedisSteering(link).say('api', 'hourly', true)
    expect(await redis.exists('slidegate:db:{shadow}')).toBe(0)
    await redis.select(3)
    expect(await redis.exists('slidegate:db:{shadow}')).toBe(1)
    await redis.select(0)
  })
})
