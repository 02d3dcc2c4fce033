// tier: system
import { Cluster, Redis } from 'ioredis'
import { afterAll, expect, it } from 'vitest'
import { askText } from './ask.ts'
import { startCluster } from './redis-cluster.ts'

const cluster = await startCluster()
const client = new Cluster(cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
client.on('error', () => {})
afterAll(async () => {
  client.disconnect()
  await cluster.stop()
})

/** Of all keys below. */
const SLOT = Number(await askText(cluster.nodes[0]!.port, 'CLUSTER', 'KEYSLOT', 'slidegate:{tag}'))
const KEYS = Array.from({ length: 50 }, (_, i) => `slidegate:{tag}${i}`)
const fill = () => Promise.all(KEYS.map((key) => client.set(key, key)))

async function onNode(port: number, words: readonly string[]): Promise<unknown> {
  const redis = new Redis(port, { retryStrategy: () => null })
  const [name = '', ...rest] = words
  const reply = await redis.call(name, ...rest).catch((error: Error) => error.message)
  redis.disconnect()
  return reply
}

it('has three masters, each with a replica', async () => {
  expect(cluster.nodes).toHaveLength(6)
  expect(await cluster.masters()).toHaveLength(3)
  for (const master of await cluster.masters()) expect(await cluster.replicasOf(master)).toHaveLength(1)
})

it('moves a slot with its keys, and can stop on the way', async () => {
  await fill()
  const from = await cluster.masterOf(SLOT)
  const to = (await cluster.masters()).find((master) => master !== from)!
  await cluster.migrateSlot(SLOT, to, {
    async leaveOpenUntil(open) {
      expect(await open.move(['slidegate:{tag}0'])).toBe(1)
      expect(await open.keysLeft()).toHaveLength(49)
      expect(await onNode(from.port, ['GET', 'slidegate:{tag}0'])).toBe(`ASK ${SLOT} 127.0.0.1:${to.port}`)
      expect(await onNode(from.port, ['GET', 'slidegate:{tag}1'])).toBe('slidegate:{tag}1')
      expect(await onNode(from.port, ['MGET', 'slidegate:{tag}0', 'slidegate:{tag}1'])).toMatch(/^TRYAGAIN/)
      expect(await client.get('slidegate:{tag}0')).toBe('slidegate:{tag}0')
    },
  })
  expect(await cluster.masterOf(SLOT)).toBe(to)
  expect(await onNode(from.port, ['GET', 'slidegate:{tag}1'])).toBe(`MOVED ${SLOT} 127.0.0.1:${to.port}`)
  expect(await client.mget(KEYS)).toEqual(KEYS)
})

it('brings back what has moved', async () => {
  await fill()
  const from = await cluster.masterOf(SLOT)
  const to = (await cluster.masters()).find((master) => master !== from)!
  const open = await cluster.openSlot(SLOT, to)
  await open.move(20)
  expect(await open.keysLeft()).toHaveLength(30)
  await open.cancel()
  expect(await onNode(from.port, ['MGET', ...KEYS])).toEqual(KEYS)
})

it('fails over when asked to, and keeps its keys', async () => {
  await fill()
  await onNode((await cluster.masterOf(SLOT)).port, ['WAIT', '1', '30000'])
  const old = await cluster.masterOf(SLOT)
  const next = await cluster.failover(old)
  expect(next).not.toBe(old)
  expect(await cluster.masterOf(SLOT)).toBe(next)
  expect(await cluster.replicasOf(next)).toEqual([old])
  expect(await client.mget(KEYS)).toEqual(KEYS)
})

it('fails over when a master is killed, which comes back as a replica', async () => {
  const old = await cluster.masterOf(SLOT)
  await old.kill()
  const next = await cluster.replaced(old)
  expect(await cluster.masterOf(SLOT)).toBe(next)
  expect(await cluster.masters()).toHaveLength(3)
  await old.start()
  await cluster.settled()
  expect(await cluster.replicasOf(next)).toEqual([old])
})

it('fails over when a master stands still, or by force before that', async () => {
  const old = await cluster.masterOf(SLOT)
  old.freeze()
  const next = await cluster.failover(old, { force: true })
  old.thaw()
  await cluster.settled()
  expect(await cluster.masterOf(SLOT)).toBe(next)
  expect(await cluster.replicasOf(next)).toEqual([old])
})
