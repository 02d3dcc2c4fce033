// tier: integration
import { beforeEach, describe, expect, it } from 'vitest'
import {
  concurrency,
  createLimiter,
  fixedWindow,
  type Limit,
  type Limiter,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { declarationOf } from '../../src/limits/declaration.ts'
import type { Notes } from '../../src/limits/limit.ts'
import { limitSet, withLog } from '../../src/limits/limit-set.ts'
import { notesLog } from '../../src/limits/notes.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import type { Op, Part, Store } from '../../src/stores/store.ts'
import { useRedis } from '../support/use-redis.ts'
import {
  clock,
  declared,
  formerNames,
  inRedis,
  memory,
  type Process,
  processOn,
  trial,
  vip,
} from './tables.ts'

// What is remembered of the limits that were in force before, by how many, and for how long.

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const stores: Record<string, () => Store> = { memory, redis: () => inRedis(redis) }
/** The table, as it is stored. */
const parts: readonly [Part] = [{ key: '~overrides', set: withLog(limitSet('api', []), notesLog) }]
const HELD_MS = 30 * 86_400_000

/** Of a log of its own for each precision. */
const fine = (precision: number, window = '1m', name = `p${precision}`): Limit =>
  slidingWindow({ limit: 5, window, precision, name })

describe.each(Object.keys(stores))('former limits in %s', (name) => {
  let store: Store
  let one: Process
  beforeEach(() => {
    store = stores[name]!()
    one = processOn(store)
  })
  const limiterOf = (limits: readonly Limit[]): Limiter =>
    createLimiter({ name: 'x', store, limits, overrides: true, timeoutMs: 30_000 })

  it('numbers may be changed for ever: what is charged to the same logs is told by the set in force', async () => {
    await one.set('k', [fixedWindow({ limit: 5, window: '1d', name: 'day' })])
    for (let i = 1; i <= 40; i++) {
      clock.advance(1)
      await one.set('k', [
        slidingWindow({ limit: 10 + i, window: '1h', precision: 20, name: `n${i}` }),
        slidingWindow({ limit: i, window: '1h', shadow: true, name: `s${i}` }),
      ])
    }
    expect(formerNames(await one.ask('k'))).toEqual([['day'], ['10-per-1m']])
  })

  it('of sets with the same logs the one that counts longest is remembered', async () => {
    await one.set('k', [fine(7, '1h', 'long')])
    await one.set('k', [fine(7, '10s', 'short')])
    await one.set('k', [fine(9)])
    expect(formerNames(await one.ask('k'))).toEqual([['long'], ['10-per-1m']])
    clock.advance(3_600_000)
    expect(formerNames(await one.ask('k'))).toEqual([['long']])
    clock.advance(1007)
    expect(formerNames(await one.ask('k'))).toEqual([])
  })

  it('a set that counts longer than the one in force is remembered though both charge the same logs', async () => {
    await one.set('k', [fine(7, '1h', 'long')])
    await one.set('k', [fine(7, '10s', 'short')])
    clock.advance(200_000)
    await one.set('k', [fine(9, '10s')])
    expect(formerNames(await one.ask('k'))).toEqual([['long']])
  })

  it('shadow limits leave nothing behind', async () => {
    await one.set('k', [slidingWindow({ limit: 1, window: '1d', shadow: true })])
    await one.set('k', vip)
    expect(formerNames(await one.ask('k'))).toEqual([['10-per-1m']])
  })

  it('a ninth that may still count is refused, rather than one forgotten; a deletion never is', async () => {
    for (let i = 2; i <= 9; i++) await one.set('k', [fine(i)])
    const before = ['p8', 'p7', 'p6', 'p5', 'p4', 'p3', 'p2', '10-per-1m'].map((each) => [each])
    expect(formerNames(await one.ask('k'))).toEqual(before)
    await expect(one.set('k', [fine(10)])).rejects.toMatchObject({
      code: 'invalid_limit',
      message: expect.stringMatching(/it may be 8: wait 61001 ms, or set limits that differ from/),
    })
    expect((await one.ask('k')).limits).toEqual([fine(9)])
    await one.set('k', [fine(9, '2m', 'other')])
    expect(await one.table.delete(undefined, 'k')).toBe(true)
    expect(formerNames(await one.ask('k'))).toEqual([['other'], ...before.slice(0, -1)])
    await one.set('k', [fine(9)])
    expect(await one.table.delete(undefined, 'k')).toBe(true)
    clock.advance(62_000)
    await one.set('k', [fine(10)])
    expect(formerNames(await one.ask('k'))).toEqual([['10-per-1m'], ['other']])
  })

  it('limits that do not fit beside those of before are refused', async () => {
    const many = (make: (name: string) => Limit): Limit[] =>
      Array.from({ length: 50 }, (_, i) => make(`the-limit-of-number-${i}`))
    await one.set(
      'k',
      many((name) => slidingWindow({ limit: 5, window: '1m', precision: 5, name })),
    )
    await expect(
      one.set(
        'k',
        many((name) => fixedWindow({ limit: 5, window: '1m', name })),
      ),
    ).rejects.toMatchObject({ code: 'invalid_limit', message: expect.stringContaining('may still count') })
    await one.set('k', vip)
    expect(await one.table.delete(undefined, 'k')).toBe(true)
  })

  it('one that is not known here is left out, and kept', async () => {
    const odd = {
      key: 'k',
      limits: vip.map(declarationOf),
      ttlMs: 0,
      keptMs: 5000,
      before: [
        { limits: [{ kind: 'of a later version' }], leftMs: 9000 },
        { limits: [declarationOf(fine(4))], leftMs: 8000 },
      ],
    }
    const op: Op = { type: 'note', parts, name: 'k', text: JSON.stringify(odd), ttlMs: 0 }
    await outcomesOf(store, [op])
    expect(await one.ask('k')).toEqual({ limits: vip, formerly: [[fine(4)]] })
    await one.set('k', [fine(6)])
    expect(formerNames(await one.ask('k'))).toEqual([['vip'], ['p4']])
    const [notes] = await outcomesOf(store, [{ type: 'notes', parts, since: 0 }])
    expect((notes as Notes).notes[0]!.text).toContain('of a later version')
  })

  it('who holds on is counted, though those who come now are held to another ttl', async () => {
    const limiter = limiterOf([concurrency({ limit: 1, ttl: '1s' })])
    const permit = await limiter.acquire('k')
    await limiter.overrides.set('k', [concurrency({ limit: 1, ttl: '2s' })])
    for (let i = 0; i < 20; i++) {
      clock.advance(400)
      expect(await permit.extend()).toBe(true)
      expect((await limiter.consume('k')).allowed).toBe(false)
    }
    await limiter.overrides.delete('k')
    await limiter.overrides.set('k', [concurrency({ limit: 1, ttl: '3s' })])
    clock.advance(400)
    expect((await limiter.consume('k')).allowed).toBe(false)
    await permit.release()
    expect((await limiter.consume('k')).allowed).toBe(true)
    await limiter.close()
  })

  it('former limits of holders are remembered for 30 days', async () => {
    await one.set('k', [concurrency({ limit: 1, ttl: '1s', name: 'short' })])
    await one.set('k', [concurrency({ limit: 1, ttl: '2s', name: 'longer' })])
    clock.advance(HELD_MS + 999)
    expect(formerNames(await one.ask('k'))).toEqual([['short']])
    clock.advance(1)
    expect(formerNames(await one.ask('k'))).toEqual([])
  })

  it('however often limits of other numbers are set, what was charged to another kind counts', async () => {
    const limiter = limiterOf([fixedWindow({ limit: 10, window: '366d' })])
    let admitted = 0
    for (let i = 0; i < 10; i++) admitted += Number((await limiter.consume('k')).allowed)
    for (let i = 0; i < 20; i++) {
      await limiter.overrides.set('k', [slidingWindow({ limit: 10 + (i % 9), window: '1h' })])
    }
    await limiter.overrides.set('k', [slidingWindow({ limit: 10, window: '1h' })])
    for (let i = 0; i < 10; i++) admitted += Number((await limiter.consume('k')).allowed)
    expect(admitted).toBe(10)
    await limiter.close()
  })
})

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

  it('what another has set meanwhile is remembered as what was in force before', async () => {
    const slow = slowProcess(1, () => one.set('k', vip))
    await slow.set('k', trial)
    expect(await slow.ask('k')).toEqual({ limits: trial, formerly: [vip, declared] })
    await one.table.list()
    expect(await one.ask('k')).toEqual(await slow.ask('k'))
  })

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
    expect((await slow.ask('k')).formerly).toEqual([vip])
  })

  it('who never gets his turn is told, and nothing is in force', async () => {
    const slow = slowProcess(100, () => one.set('k', vip))
    await expect(slow.set('k', trial)).rejects.toMatchObject({ code: 'store_unavailable', reason: 'error' })
    expect((await slow.ask('k')).limits).toEqual(vip)
  })

  it('each gets his turn', async () => {
    const other = processOn(store)
    const sets = Array.from({ length: 40 }, (_, i) => slidingWindow({ limit: i + 1, window: '1h' }))
    await Promise.all(sets.map((limit, i) => (i % 2 === 0 ? one : other).set('k', [limit])))
    expect((await one.table.get(undefined, 'k'))!.limits[0]!.limit).toBeGreaterThan(0)
  })

  it('all of them are remembered', async () => {
    const other = processOn(store)
    const sets = Array.from({ length: 6 }, (_, i) => [fine(i + 2)])
    await Promise.all(sets.map((limits, i) => (i % 2 === 0 ? one : other).set('k', limits)))
    await one.table.list()
    const { limits, formerly } = await one.ask('k')
    const all = [limits!, ...formerly].map((set) => set[0]!.name)
    expect(all.toSorted()).toEqual(['10-per-1m', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7'])
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
    const unknown = `1 0 ${JSON.stringify({ key: 'n', limits, ttlMs: 0, keptMs: 0, before: [] })}`
    await redis.hset(key, { bad: 'garbage', worse: '', new: unknown })
    const other = processOn(inRedis(redis))
    expect(await other.table.list()).toHaveLength(1)
    for (const name of ['bad', 'worse', 'new']) {
      expect(await other.table.delete(undefined, name)).toBe(false)
      expect(await redis.hget(key, name)).toBeNull()
      await redis.hset(key, name, 'garbage')
      await other.set(name, vip)
      expect((await other.ask(name)).limits).toEqual(vip)
    }
    expect(await processOn(inRedis(redis)).table.list()).toHaveLength(4)
  })
})

describe('limits that a function tells, after an override', () => {
  it.each<[string, (limits: readonly Limit[]) => () => readonly Limit[]]>([
    ['the same array', (limits) => () => limits],
    ['another array each time', (limits) => () => [...limits]],
  ])('%s: what was charged before counts, and the set is made once', async (_, told) => {
    const limits = [tokenBucket({ capacity: 10, refill: 1, interval: '1h' })]
    const store = memory()
    const limiter = createLimiter({ name: 'x', store, limits: told(limits), overrides: true })
    await limiter.overrides.set('k', [slidingCounter({ limit: 10, window: '1h' })])
    for (let i = 0; i < 7; i++) await limiter.consume('k')
    await limiter.overrides.delete('k')
    expect((await limiter.peek('k')).limits[0]!.remaining).toBe(3)
    await limiter.close()
  })
})
