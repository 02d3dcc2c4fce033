// tier: integration
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type RedisServer, startRedis } from './redis-server.ts'
import { startProxy, type TcpProxy } from './tcp-proxy.ts'
import { until } from './until.ts'

let server: RedisServer
let proxy: TcpProxy
let direct: Redis
let client: Redis
beforeEach(async () => {
  server = await startRedis()
  proxy = await startProxy(server.port)
  direct = new Redis(server.port)
  client = await connected()
})
afterEach(async () => {
  client.disconnect()
  direct.disconnect()
  await proxy.stop()
  await server.stop()
})

/** A client that neither connects nor sends again, so that each test sees what became of its one connection. */
async function connected(): Promise<Redis> {
  const redis = new Redis(proxy.port, {
    retryStrategy: () => null,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    lazyConnect: true,
  })
  redis.on('error', () => {})
  await redis.connect()
  return redis
}

const KEY = 'slidegate:n'
const CLOSED = 'closed'
const incr = () => client.incr(KEY).catch(() => CLOSED)
const executed = (count: number) => until('execution', async () => (await direct.get(KEY)) === `${count}`)
const swallowed = () => until('it is swallowed', async () => proxy.lossy === 1)

it('hands on, and counts', async () => {
  const { requests, replies } = proxy
  expect(await Promise.all([incr(), incr(), incr()])).toEqual([1, 2, 3])
  expect(proxy.requests - requests).toBe(3)
  expect(proxy.replies - replies).toBe(3)
  expect(proxy.connections).toBe(1)
  expect(proxy.accepted).toBe(1)
})

it('delays replies, in order, even if it is healed meanwhile', async () => {
  proxy.delay(150)
  const startMs = performance.now()
  const { replies } = proxy
  const first = incr()
  await until('its reply', async () => proxy.replies > replies)
  proxy.heal()
  expect(await Promise.all([first, incr()])).toEqual([1, 2])
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(149)
})

it('delays requests', async () => {
  proxy.delay(0, 150)
  const startMs = performance.now()
  expect(await incr()).toBe(1)
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(149)
})

it('swallows all in a black hole, and keeps the connection open until it is healed', async () => {
  proxy.blackHole()
  const lost = incr()
  await swallowed()
  await server.kill()
  await server.start()
  expect(await direct.get(KEY)).toBe(null)
  expect(proxy.connections).toBe(1)
  proxy.heal()
  expect(await lost).toBe(CLOSED)
  client = await connected()
  expect(await incr()).toBe(1)
})

it('a connection that lost something can stay silent for ever', async () => {
  proxy.blackHole()
  const lost = incr()
  await swallowed()
  proxy.heal({ leaveSilent: true })
  const other = await connected()
  expect(await other.incr(KEY)).toBe(1)
  expect(await Promise.race([lost, incr(), other.ping()])).toBe('PONG')
  other.disconnect()
})

it('drops replies of what is executed', async () => {
  proxy.dropReplies()
  const lost = Promise.all([incr(), incr()])
  await executed(2)
  expect(proxy.connections).toBe(1)
  const later = incr()
  await executed(3)
  proxy.heal()
  expect(await Promise.all([lost, later])).toEqual([[CLOSED, CLOSED], CLOSED])
})

it('drops replies and closes', async () => {
  proxy.dropReplies({ thenClose: true })
  expect(await Promise.all([incr(), incr()])).toEqual([CLOSED, CLOSED])
  expect(await direct.get(KEY)).toBe('2')
})

it('cuts in the middle of a reply, once', async () => {
  proxy.cutMidReply()
  expect(await client.echo('x'.repeat(1000)).catch(() => CLOSED)).toBe(CLOSED)
  client = await connected()
  expect(await incr()).toBe(1)
})

it('cuts after a request was executed, once', async () => {
  proxy.cutAfterRequest()
  expect(await incr()).toBe(CLOSED)
  expect(await direct.get(KEY)).toBe('1')
  client = await connected()
  expect(await incr()).toBe(2)
})

it('refuses', async () => {
  proxy.refuse()
  await until('disconnected', async () => client.status === 'end')
  await expect(connected()).rejects.toThrow()
  expect(proxy.connections).toBe(0)
  proxy.heal()
  client = await connected()
  expect(await incr()).toBe(1)
})
