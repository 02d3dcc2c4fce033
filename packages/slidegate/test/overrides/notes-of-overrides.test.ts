// tier: integration
import { beforeEach, describe, expect, it } from 'vitest'
import { slidingWindow } from '../../src/index.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import type { Store } from '../../src/stores/store.ts'
import { useRedis } from '../support/use-redis.ts'
import { clock, inRedis, memory, type Process, processOn, trial, vip } from './tables.ts'

// Overrides that several processes write at once, and tables that are damaged or lost.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const stores: Record<string, () => Store> = { memory, redis: () => inRedis(redis) }
describe.each(Object.keys(stores))('written by several at once, in %s', (name) => {
  let store: Store
  let one: Process
  beforeEach(() => {
    store = stores[name]!()
    one = processOn(store)
  })

  /** A process before whose writes something happens, so often. */
  function slowProcess(times: number, before: () => Promise<unknown>): Process {
    let left = times
    return processOn(store, {
      apply: async (op) => {
        if (op.type === 'note' && left-- > 0) await before()
        return (await outcomesOf(store, [op]))[0]
      },
      // Also on a store in this process, where else nothing could.
      applySync: undefined,
    })
  }

  it('other keys do not stand in the way', async () => {
    let writes = 0
    await one.set('k', vip)
    const slow = slowProcess(9, () => one.set(`other${writes++}`, vip))
    await slow.set('k', trial)
    expect(writes).toBe(1)
  })

  it('what another has deleted meanwhile is not deleted twice', async () => {
    await one.set('k', vip)
    const slow = slowProcess(1, () => one.table.delete(undefined, 'k'))
    expect(await slow.table.delete(undefined, 'k')).toBe(false)
    expect(await slow.ask('k')).toBeUndefined()
  })

  it('who never gets his turn is told, and nothing is in force', async () => {
    const slow = slowProcess(100, () => one.set('k', vip))
    await expect(slow.set('k', trial)).rejects.toMatchObject({ code: 'store_unavailable', reason: 'error' })
    expect(await slow.ask('k')).toEqual(vip)
  })

  it('each gets his turn', async () => {
    const other = processOn(store)
    const sets = Array.from({ length: 40 }, (_, i) => slidingWindow({ limit: i + 1, window: '1h' }))
    await Promise.all(sets.map((limit, i) => (i % 2 === 0 ? one : other).set('k', [limit])))
    expect((await one.table.get(undefined, 'k'))!.limits[0]!.limit).toBeGreaterThan(0)
  })
})

describe('in Redis', () => {
  const tableKey = async () => (await redis.keys('*~overrides:n'))[0]!

  it('after a failover that has lost writes nobody goes on with them', async () => {
    const [one, other, third] = [0, 1, 2].map(() => processOn(inRedis(redis))) as [Process, Process, Process]
    await one.set('a', vip)
    const key = await tableKey()
    const before = await redis.dumpBuffer(key)
    clock.advance(1)
    await one.set('b', vip)
    expect(await other.table.list()).toHaveLength(2)
    await redis.restore(key, 0, before, 'REPLACE')
    clock.advance(1)
    await third.set('c', vip)
    for (const each of [one, other]) {
      expect((await each.table.list()).map((override) => override.key).toSorted()).toEqual(['a', 'c'])
    }
  })

  it('after all was lost nobody goes on with it', async () => {
    const [one, other] = [processOn(inRedis(redis)), processOn(inRedis(redis))]
    await one.set('a', vip)
    await other.table.list()
    await redis.flushall()
    clock.advance(1)
    await one.table.list()
    await one.set('b', vip)
    expect((await other.table.list()).map(({ key }) => key)).toEqual(['b'])
  })

  it('what is damaged, or is not known here, gives way to what is set, and to a deletion', async () => {
    const one = processOn(inRedis(redis))
    await one.set('a', vip)
    const key = await tableKey()
    const limits = [{ kind: 'of a later version' }]
    const unknown = `1 0 ${JSON.stringify({ key: 'n', limits, ttlMs: 0 })}`
    await redis.hset(key, { bad: 'garbage', worse: '', new: unknown })
    const other = processOn(inRedis(redis))
    expect(await other.table.list()).toHaveLength(1)
    for (const name of ['bad', 'worse', 'new']) {
      expect(await other.table.delete(undefined, name)).toBe(false)
      expect(await redis.hget(key, name)).toBeNull()
      await redis.hset(key, name, 'garbage')
      await other.set(name, vip)
      expect(await other.ask(name)).toEqual(vip)
    }
    expect(await processOn(inRedis(redis)).table.list()).toHaveLength(4)
  })
})
