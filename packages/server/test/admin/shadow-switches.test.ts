// tier: system
import { describe, expect, it, onTestFinished } from 'vitest'
import { startCluster } from '../../../slidegate/test/support/redis-cluster.ts'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import { makeCertificates, startTlsRedis } from '../../../slidegate/test/support/tls.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import { useRedis } from '../../../slidegate/test/support/use-redis.ts'
import { RedisAuditLog } from '../../src/admin/audit-log.ts'
import { RedisLink } from '../../src/admin/redis-link.ts'
import {
  ALL,
  MemoryShadowSwitches,
  RedisShadowSwitches,
  type ShadowSwitches,
} from '../../src/admin/shadow-switches.ts'

const { server, redis } = await useRedis()

async function onRedis(prefix: string): Promise<ShadowSwitches> {
  const link = new RedisLink({ url: server.url, prefix }, '/')
  onTestFinished(() => link.close())
  await expect.poll(() => link.connected()).toBe(true)
  return new RedisShadowSwitches(link)
}

let runs = 0

describe.each<[string, () => Promise<ShadowSwitches>]>([
  ['in memory', async () => new MemoryShadowSwitches()],
  ['in Redis', () => onRedis(`slidegate:switches-${++runs}`)],
])('shadow settings, %s', (_, make) => {
  it('start empty', async () => {
    const switches = await make()
    expect(await switches.read()).toEqual({})
  })

  it('exist per limit and for all limits', async () => {
    const switches = await make()
    await switches.set('api', ALL, true)
    await switches.set('api', 'hourly', false)
    await switches.set('login', 'hourly', true)
    expect(await switches.read()).toEqual({ api: { '*': true, hourly: false }, login: { hourly: true } })
  })

  it('change when they are set again', async () => {
    const switches = await make()
    await switches.set('api', 'hourly', true)
    await switches.set('api', 'hourly', false)
    expect(await switches.read()).toEqual({ api: { hourly: false } })
  })

  it('disappear for one limit, or for all at once, when set to null', async () => {
    const switches = await make()
    await switches.set('api', ALL, true)
    await switches.set('api', 'hourly', false)
    await switches.set('api', 'daily', false)
    await switches.set('api.v2', 'hourly', true)
    await switches.set('api', 'daily', null)
    expect(await switches.read()).toEqual({ api: { '*': true, hourly: false }, 'api.v2': { hourly: true } })
    await switches.set('api', ALL, null)
    expect(await switches.read()).toEqual({ 'api.v2': { hourly: true } })
    await switches.set('api', ALL, null)
  })

  it('give the same JSON regardless of the order in which they were set', async () => {
    const [one, other] = [await make(), await make()]
    await one.set('a', 'x', true)
    await one.set('b', 'y', true)
    await other.set('b', 'y', true)
    await other.set('a', 'x', true)
    expect(JSON.stringify(await one.read())).toBe(JSON.stringify(await other.read()))
  })

  it('contain no inherited properties', async () => {
    const switches = await make()
    await switches.set('__proto__', 'constructor', true)
    const read = await switches.read()
    expect(Object.keys(read)).toEqual(['__proto__'])
    expect(read.constructor).toBeUndefined()
    expect({}).not.toHaveProperty('constructor', true)
  })
})

it('skips invalid settings in Redis', async () => {
  const switches = await onRedis('slidegate:broken')
  await redis.zadd('slidegate:broken:{shadow}', 2, 'api:x', 0.5, 'api:y', 1, 'api:z', 1, 'api1', 1, '')
  expect(JSON.stringify(await switches.read())).toBe('{"api":{"z":true}}')
})

describe('at most 10,000 shadow settings are stored', () => {
  const limits = Array.from({ length: 10_000 }, (_, i) => `l${i}`)

  async function rejectsOneMore(switches: ShadowSwitches): Promise<void> {
    await expect(switches.set('api', 'more', true)).rejects.toMatchObject({ status: 409, code: 'too_many' })
    await switches.set('api', 'l1', null)
    await switches.set('api', 'more', true)
    expect(Object.keys((await switches.read()).api!)).toHaveLength(10_000)
  }

  it('in memory', async () => {
    const switches = new MemoryShadowSwitches()
    for (const limit of limits) await switches.set('api', limit, true)
    await rejectsOneMore(switches)
  })

  it('in Redis', async () => {
    const switches = await onRedis('slidegate:full')
    await redis.zadd('slidegate:full:{shadow}', ...limits.flatMap((limit) => [1, `api:${limit}`]))
    await rejectsOneMore(switches)
  })
})

describe('the connection to Redis', () => {
  it('fails fast if nothing listens at the address, without revealing the password', async () => {
    const link = new RedisLink({ url: 'redis://:secret-word@127.0.0.1:1' }, '/')
    onTestFinished(() => link.close())
    expect(await link.connected()).toBe(false)
    const error = await link.ask((client) => client.get('slidegate:x')).catch((reason: Error) => reason)
    expect(error).toMatchObject({ status: 503, code: 'store_error' })
    expect(JSON.stringify(error) + (error as Error).message).not.toContain('secret-word')
  })

  it('allows at most 256 commands in flight', async () => {
    const link = new RedisLink({ url: server.url }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    const commands = Array.from({ length: 300 }, () => link.ask((client) => client.get('slidegate:x')))
    const rejected = (await Promise.allSettled(commands)).filter(({ status }) => status === 'rejected')
    expect(rejected).toHaveLength(300 - 256)
  })

  it('times out if Redis does not respond', async () => {
    const link = new RedisLink({ url: server.url }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    await expect(link.ask(() => new Promise(() => {}))).rejects.toMatchObject({ code: 'store_error' })
  })

  it('accepts a response that arrived while the event loop was blocked', async () => {
    const link = new RedisLink({ url: server.url }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    const response = link.ask((client) => client.ping())
    const startMs = performance.now()
    while (performance.now() - startMs < 1200);
    expect(await response).toBe('PONG')
  })

  it('reconnects if the server has become a replica', async () => {
    const demoted = await startRedis()
    onTestFinished(() => demoted.stop())
    const link = new RedisLink({ url: demoted.url, prefix: 'slidegate' }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    const id = () => link.ask((client) => client.client('ID'))
    const before = await id()
    await link.ask((client) => client.call('REPLICAOF', '127.0.0.1', '1'))
    await expect(new RedisShadowSwitches(link).set('api', ALL, true)).rejects.toMatchObject({ status: 503 })
    await until('the connection is a new one', async () => (await id().catch(() => before)) !== before)
  })

  it('uses TLS if the store does', async () => {
    const certificates = await makeCertificates()
    const tlsServer = await startTlsRedis(certificates)
    onTestFinished(async () => {
      await tlsServer.stop()
      await certificates.remove()
    })
    const link = new RedisLink({ url: tlsServer.url, tls: { ca: certificates.files.ca } }, '/')
    const untrusting = new RedisLink({ url: tlsServer.url }, '/')
    onTestFinished(() => {
      link.close()
      untrusting.close()
    })
    await expect.poll(() => link.connected()).toBe(true)
    expect(await untrusting.connected()).toBe(false)
    await new RedisShadowSwitches(link).set('api', ALL, true)
    expect(await new RedisShadowSwitches(link).read()).toEqual({ api: { '*': true } })
  })

  it('connects to a Cluster if the store is one', async () => {
    const cluster = await startCluster()
    onTestFinished(() => cluster.stop())
    const url = cluster.nodes.slice(0, 2).map(({ port }) => `redis://127.0.0.1:${port}`)
    const link = new RedisLink({ url, cluster: true }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    const switches = new RedisShadowSwitches(link)
    await switches.set('api', ALL, true)
    expect(await switches.read()).toEqual({ api: { '*': true } })
    const entries = new RedisAuditLog(link)
    const id = await entries.append({ who: 'ops', what: 'reset', instance: 'here' })
    expect(await entries.page(undefined, 10)).toMatchObject([[id, { who: 'ops' }]])
  })

  it('uses the database in the URL', async () => {
    const link = new RedisLink({ url: `${server.url}/3`, prefix: 'slidegate:db' }, '/')
    onTestFinished(() => link.close())
    await expect.poll(() => link.connected()).toBe(true)
    await new RedisShadowSwitches(link).set('api', 'hourly', true)
    expect(await redis.exists('slidegate:db:{shadow}')).toBe(0)
    await redis.select(3)
    expect(await redis.exists('slidegate:db:{shadow}')).toBe(1)
    await redis.select(0)
  })
})
