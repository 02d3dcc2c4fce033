// tier: integration
import { Redis } from 'ioredis'
import { beforeEach, describe, expect, it } from 'vitest'
import { outcomesOf } from '../../src/stores/call.ts'
import { startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { useRedis } from '../support/use-redis.ts'
import { clock, inRedis, memory, processOn, trial, vip } from './tables.ts'

// How fresh overrides are, what that costs, and what is in force while they cannot be read.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

describe('on Redis', () => {
  it('the first request waits for one read, and so does the first after a while', async () => {
    const { table, asked } = processOn(inRedis(redis))
    expect(table.isFresh()).toBe(false)
    await Promise.all([table.refresh(), table.refresh(), table.refresh()])
    expect(asked).toEqual(['notes'])
    expect(table.isFresh()).toBe(true)
    clock.advance(3_600_000)
    expect(table.isFresh()).toBe(false)
    expect(table.isFresh()).toBe(false)
    await table.refresh()
    expect(table.isFresh()).toBe(true)
    expect(asked).toEqual(['notes', 'notes'])
  })

  it('two reads a second, one at a time, whatever the rate; and no request waits', async () => {
    const { table, asked, waiting } = processOn(inRedis(redis))
    await table.refresh()
    for (let ms = 0; ms < 10_000; ms += 10) {
      clock.advance(10)
      for (let i = 0; i < 20; i++) expect(table.isFresh()).toBe(true)
      if (ms % 100 === 0) await table.refresh()
    }
    await table.refresh()
    expect(asked.length).toBeGreaterThanOrEqual(10)
    expect(asked.length).toBeLessThanOrEqual(21)
    expect(waiting.most).toBe(1)
  })

  it('nothing is asked while there are no requests', async () => {
    const { table, asked } = processOn(inRedis(redis))
    await table.refresh()
    clock.advance(60_000)
    await new Promise(setImmediate)
    expect(asked).toHaveLength(1)
  })

  it('under load a change is in force after half of the time, without waiting', async () => {
    const [one, other] = [processOn(inRedis(redis)), processOn(inRedis(redis))]
    await other.ask('k')
    await one.set('k', vip)
    clock.advance(499)
    expect(other.table.isFresh()).toBe(true)
    expect(other.table.of(undefined, 'k')).toBeUndefined()
    clock.advance(1)
    expect(other.table.isFresh()).toBe(true)
    await until('a read', async () => other.table.of(undefined, 'k') !== undefined)
    expect(other.asked).toHaveLength(2)
  })

  it('maxStaleMs says how fresh', async () => {
    const [one, other] = [processOn(inRedis(redis)), processOn(inRedis(redis), { maxStaleMs: 10 })]
    await other.ask('k')
    await one.set('k', vip)
    clock.advance(11)
    expect(other.table.isFresh()).toBe(false)
    expect(await other.ask('k')).toEqual(vip)
  })

  it('what is set at the same time by many is all there', async () => {
    const [one, other] = [processOn(inRedis(redis)), processOn(inRedis(redis))]
    const keys = Array.from({ length: 20 }, (_, i) => `k${i}`)
    await Promise.all(keys.map((key, i) => (i % 2 === 0 ? one : other).set(key, vip)))
    for (const each of [one, other]) expect(await each.table.list()).toHaveLength(20)
    expect(one.waiting.most).toBeLessThan(20)
  })
})

describe('while Redis is down', () => {
  it('what was known stands, nobody waits, and it is tried twice a second', async () => {
    const server = await startRedis()
    const client = new Redis(server.port, {
      enableOfflineQueue: false,
      retryStrategy: () => 20,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
    })
    client.on('error', () => {})
    await until('a connection', async () => client.status === 'ready')
    const store = inRedis(client)
    const { table, asked, set, ask } = processOn(store)
    await set('k', vip)
    await set('l', trial, { ttl: 5000 })
    await server.stop()
    clock.advance(1001)
    expect(table.isFresh()).toBe(false)
    await table.refresh()
    const first = asked.length
    for (let ms = 0; ms < 10_000; ms += 50) {
      expect(table.isFresh()).toBe(true)
      expect(table.of(undefined, 'k')).toEqual(vip)
      await table.refresh()
      clock.advance(50)
    }
    expect(asked.length - first).toBeGreaterThanOrEqual(15)
    expect(asked.length - first).toBeLessThanOrEqual(21)
    // Its ttl ends all the same.
    expect(await ask('l')).toBeUndefined()
    await expect(set('m', vip)).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect(table.list()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(table.of(undefined, 'm')).toBeUndefined()

    const never = processOn(store)
    expect(await never.ask('k')).toBeUndefined()
    client.disconnect()
  })

  it('what was written, but could not be read again, is in force here', async () => {
    const store = inRedis(redis)
    let isWritten = false
    const { table, set } = processOn(store, {
      apply: async (op) => {
        if (isWritten) throw new Error('the connection is lost')
        isWritten = op.type === 'note'
        return (await outcomesOf(store, [op]))[0]
      },
    })
    await set('k', vip)
    expect(table.of(undefined, 'k')).toEqual(vip)
  })

  it('a table that was lost is known to be lost', async () => {
    const { table, set, ask } = processOn(inRedis(redis))
    await set('k', vip)
    await redis.flushall()
    clock.advance(1001)
    expect(await ask('k')).toBeUndefined()
    await set('l', vip)
    expect(await table.list()).toHaveLength(1)
  })
})

it('in this process all is in force at once, for every limiter of the name', async () => {
  const store = memory()
  const [one, other] = [processOn(store), processOn(store)]
  expect(other.table.isFresh()).toBe(true)
  await one.set('k', vip)
  expect(other.table.isFresh()).toBe(true)
  expect(other.table.of(undefined, 'k')).toEqual(vip)
  await other.set('k', trial)
  one.table.refreshSync()
  expect(one.table.of(undefined, 'k')).toEqual(trial)
})
