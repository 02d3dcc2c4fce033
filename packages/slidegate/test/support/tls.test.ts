// tier: system
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, expect, it } from 'vitest'
import { makeCertificates, startTlsRedis } from './tls.ts'

const certificates = await makeCertificates()
const server = await startTlsRedis(certificates)
afterAll(async () => {
  await server.stop()
  await certificates.remove()
})

it('speaks TLS to clients that trust its authority, and to no other', async () => {
  const ioredis = new Redis(server.url, { tls: { ca: certificates.ca } })
  expect(await ioredis.ping()).toBe('PONG')
  ioredis.disconnect()

  const nodeRedis = createClient({ url: server.url, socket: { tls: true, ca: certificates.ca } })
  nodeRedis.on('error', () => {})
  await nodeRedis.connect()
  expect(await nodeRedis.ping()).toBe('PONG')
  nodeRedis.destroy()

  const patient = { reconnectStrategy: false, connectTimeout: 30_000 } as const
  const stranger = createClient({ url: server.url, socket: patient })
  stranger.on('error', () => {})
  await expect(stranger.connect()).rejects.toThrow(/certificate/)
})

it('is the same after a restart', async () => {
  await server.kill()
  await server.start()
  const redis = new Redis(server.url, { tls: { ca: certificates.ca } })
  expect(await redis.ping()).toBe('PONG')
  redis.disconnect()
})
