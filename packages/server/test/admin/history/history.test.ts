// tier: integration
import { describe, expect, it } from 'vitest'
import { randomSequence } from '../../../../replay/test/support/logs.ts'
import { useRedis } from '../../../../slidegate/test/support/use-redis.ts'
import { MAX_PENDING } from '../../../src/admin/history/history.ts'
import { type HistoryStore, hourOf, type Step } from '../../../src/admin/history/history-store.ts'
import { type Counts, KEYS_PER_ORDER, RANGES, type Range } from '../../../src/admin/history/records.ts'
import { type Clock, countedBy, inMemory, known, MINUTE_MS, onRedis, START_MS } from './support.ts'

const { server, redis } = await useRedis()

describe.each<[string, (clock: Clock) => Promise<HistoryStore>]>([
  ['in memory', async (clock) => inMemory(clock)],
  ['in Redis', async (clock) => (await onRedis(server.url, clock))[0]!],
])('the history, %s', (_, make) => {
  it('counts requests, denials, shadow denials and units by minute and by full hour', async () => {
    const clock = { nowMs: START_MS }
    const { history, count, pass } = countedBy(await make(clock), clock)
    count('api', 'ann', 3, { cost: 5 })
    count('api', 'ann', 2, { allowed: false })
    await pass(1)
    const shadow = { name: 'hourly', shadow: true, allowed: false } as never
    count('api', 'bob', 1, { limits: [shadow] })
    await pass(1)
    clock.nowMs += 10_000
    const hour = await history.series('api', '1h')
    expect(known(hour, hour.allowed)).toEqual({ 0: 3, 1: 1 })
    expect(known(hour, hour.denied)).toEqual({ 0: 2, 1: 0 })
    expect(known(hour, hour.units)).toEqual({ 0: 15, 1: 1 })
    expect(known(hour, hour.shadowDenied!)).toEqual({ 0: 0, 1: 1 })
    expect(hour).toMatchObject({ limiter: 'api', range: '1h', stepSeconds: 60 })
    expect(hour.seconds).toHaveLength(60)
    expect(hour.seconds.at(-1)).toBe(START_MS / 1000 + 60)
    expect(hour.keys).toEqual([
      { key: 'ann', allowed: 3, denied: 2, units: 15 },
      { key: 'bob', allowed: 1, denied: 0, units: 1 },
    ])
    clock.nowMs = START_MS + 60 * MINUTE_MS + 10_000
    const week = await history.series('api', '7d')
    expect(week).toMatchObject({ range: '7d', stepSeconds: 3600 })
    expect(week.seconds).toHaveLength(168)
    expect(known(week, week.allowed)).toEqual({ 0: 4 })
    expect(known(week, week.units)).toEqual({ 0: 16 })
  })

  it('shows an idle minute as zero, and a minute without a running service as a gap', async () => {
    const clock = { nowMs: START_MS }
    const store = await make(clock)
    const before = countedBy(store, clock)
    before.count('api', 'ann', 1)
    await before.pass(2)
    await before.history.close()
    clock.nowMs += 3 * MINUTE_MS
    const after = countedBy(store, clock)
    after.count('api', 'ann', 7)
    await after.pass(1)
    clock.nowMs += 10_000
    const series = await after.history.series('api', '1h')
    // The last minute before the restart was stored as it ended.
    expect(known(series, series.allowed)).toEqual({ 0: 1, 1: 0, 2: 0, 5: 7 })
    const ann = await after.history.series('api', '1h', { key: 'ann' })
    expect(known(ann, ann.allowed)).toEqual({ 0: 1, 1: 0, 2: 0, 5: 7 })
  })

  it('keeps the counts of a minute that the service stops in, and adds those after the restart', async () => {
    const clock = { nowMs: START_MS }
    const store = await make(clock)
    const before = countedBy(store, clock)
    before.count('api', 'ann', 4)
    await before.history.close()
    const after = countedBy(store, clock)
    after.count('api', 'ann', 5)
    await after.pass(1)
    clock.nowMs += 10_000
    const series = await after.history.series('api', '1h')
    expect(known(series, series.allowed)).toEqual({ 0: 9 })
  })

  it('keeps the busiest and the most denied keys of a minute; the rest is unknown', async () => {
    const clock = { nowMs: START_MS }
    const { history, count, pass } = countedBy(await make(clock), clock)
    for (let i = 0; i < 100; i++) count('api', `busy-${i}`, 100 - (i >> 1))
    for (let i = 0; i < 10; i++) count('api', `denied-${i}`, 1 + i, { allowed: false })
    await pass(1)
    clock.nowMs += 10_000
    const of = async (key: string) => {
      const series = await history.series('api', '1h', { key })
      return [known(series, series.allowed), known(series, series.denied)]
    }
    expect(await of('busy-0')).toEqual([{ 0: 100 }, { 0: 0 }])
    expect(await of('busy-7')).toEqual([{ 0: 97 }, { 0: 0 }])
    expect(await of('busy-8')).toEqual([{}, {}])
    expect(await of('denied-9')).toEqual([{ 0: 0 }, { 0: 10 }])
    expect(await of('denied-1')).toEqual([{}, {}])
    expect((await history.series('api', '1h')).keys).toHaveLength(16)
  })

  it('shows zero for a key without requests if all keys are known', async () => {
    const clock = { nowMs: START_MS }
    const { history, count, pass } = countedBy(await make(clock), clock)
    count('api', 'ann', 3)
    await pass(1)
    clock.nowMs += 10_000
    const { isWatched, ...series } = await history.series('api', '1h', { key: 'carl' })
    expect(known(series, series.allowed)).toEqual({ 0: 0 })
    expect(isWatched).toBe(false)
  })

  it('counts a watched key exactly, however rare, until it is no longer watched', async () => {
    const clock = { nowMs: START_MS }
    const { history, count, pass } = countedBy(await make(clock), clock)
    const flood = () => {
      for (let i = 0; i < 3000; i++) count('api', `k${i % 1500}`, 1)
    }
    const rare = async () => {
      flood()
      count('api', 'rare', 1, { cost: 3 })
      await pass(1)
    }
    await rare()
    await history.watchList.watch('api', { key: 'rare' }, true)
    await rare()
    flood()
    await pass(1)
    clock.nowMs += 10_000
    const series = await history.series('api', '1h', { key: 'rare' })
    expect(known(series, series.units)).toEqual({ 1: 3, 2: 0 })
    expect(series.isWatched).toBe(true)
    await history.watchList.watch('api', { key: 'rare' }, false)
    await rare()
    const later = await history.series('api', '1h', { key: 'rare' })
    expect(known(later, later.units)).toEqual({ 1: 3 })
    expect(later.isWatched).toBe(false)
  })

  it('counts a blocked key, however rare', async () => {
    const clock = { nowMs: START_MS }
    const { history, count, pass } = countedBy(await make(clock), clock)
    for (let i = 0; i < 3000; i++) count('api', `k${i % 1500}`, 1, { allowed: false })
    count('api', 'banned', 1, { allowed: false, blockedMs: 1000 })
    await pass(1)
    clock.nowMs += 10_000
    const series = await history.series('api', '1h', { key: 'banned' })
    expect(known(series, series.denied)).toEqual({ 0: 1 })
  })

  it('watches up to 8 keys of a limiter: one more replaces the oldest, but not for an override', async () => {
    const clock = { nowMs: START_MS }
    const { history } = countedBy(await make(clock), clock)
    const isWatched = async (key: string) => (await history.series('api', '1h', { key })).isWatched
    for (let i = 0; i < 8; i++) {
      await history.watchList.watch('api', { key: `k${i}` }, true)
      clock.nowMs += 1000
    }
    await history.watchList.watchIfRoom('api', [{ key: 'overridden' }])
    expect([await isWatched('overridden'), await isWatched('k0')]).toEqual([false, true])
    await history.watchList.watch('api', { key: 'k8' }, true)
    expect([await isWatched('k8'), await isWatched('k1'), await isWatched('k0')]).toEqual([true, true, false])
    clock.nowMs += 7 * 24 * 60 * MINUTE_MS
    expect(await isWatched('k8')).toBe(false)
  })

  it('keeps the keys of each dimension apart', async () => {
    const clock = { nowMs: START_MS }
    const { history, count, pass } = countedBy(await make(clock), clock)
    count('login', { user: 'ann', address: '192.0.2.7' }, 4)
    count('login', { user: 'ann', address: '192.0.2.8' }, 3, { allowed: false, deniedBy: ['user.hourly'] })
    await pass(1)
    clock.nowMs += 10_000
    const of = async (dimension: string, key: string) => {
      const series = await history.series('login', '1h', { dimension, key })
      return [known(series, series.allowed), known(series, series.denied)]
    }
    expect(await of('user', 'ann')).toEqual([{ 0: 4 }, { 0: 3 }])
    expect(await of('address', '192.0.2.7')).toEqual([{ 0: 4 }, { 0: 0 }])
    const { keys } = await history.series('login', '1h')
    expect(keys![0]).toEqual({ dimension: 'user', key: 'ann', allowed: 4, denied: 3, units: 4 })
  })

  it('stores only hashes of the keys of a limiter with hashKeys, also of watched ones', async () => {
    const clock = { nowMs: START_MS }
    const store = await make(clock)
    const { history, count, pass } = countedBy(store, clock)
    await history.watchList.watch('secret', { key: 'ann' }, true)
    count('secret', 'ann', 2)
    count('secret', 'bob', 3)
    await pass(1)
    clock.nowMs += 10_000
    const { keys } = await history.series('secret', '1h')
    const hash = expect.stringMatching(/^~[\w-]{22}$/)
    expect(keys).toEqual([
      { key: hash, allowed: 3, denied: 0, units: 3 },
      { key: hash, allowed: 2, denied: 0, units: 2 },
    ])
    const [{ record }] = (await store.read('secret', RANGES['1h'], START_MS / MINUTE_MS, 1)) as [Step]
    expect(record!.c[`=${keys![1]!.key}`]).toEqual([2, 0, 2, 2])
    for (const key of ['ann', keys![1]!.key]) {
      const series = await history.series('secret', '1h', { key })
      expect(known(series, series.allowed)).toEqual({ 0: 2 })
      expect(series.isWatched).toBe(true)
    }
  })

  it('cuts long keys, and keeps those apart that begin the same', async () => {
    const clock = { nowMs: START_MS }
    const { history, count, pass } = countedBy(await make(clock), clock)
    const [one, other] = ['a', 'b'].map((end) => `${'k'.repeat(5000)}${end}`) as [string, string]
    count('api', one, 1)
    count('api', other, 2)
    await pass(1)
    clock.nowMs += 10_000
    const of = async (key: string) => (await history.series('api', '1h', { key })).allowed.at(-1)
    expect([await of(one), await of(other)]).toEqual([1, 2])
    const { keys } = await history.series('api', '1h')
    expect(keys!.map(({ key }) => key.length)).toEqual([64, 64])
    await history.watchList.watch('api', { key: one }, true)
    for (let i = 0; i < 3000; i++) count('api', `k${i % 1500}`, 1)
    count('api', one, 1)
    await pass(1)
    expect(await of(one)).toBe(1)
  })

  it('survives a clock that is set back', async () => {
    const clock = { nowMs: START_MS }
    const { history, count, pass } = countedBy(await make(clock), clock)
    count('api', 'ann', 1)
    await pass(2)
    clock.nowMs -= MINUTE_MS
    await history.run()
    count('api', 'ann', 5)
    await pass(1)
    clock.nowMs += 10_000
    const series = await history.series('api', '1h')
    expect(known(series, series.allowed)).toEqual({ 0: 1, 1: 5 })
  })
})

describe('the history of several instances', () => {
  it('adds up', async () => {
    const clock = { nowMs: START_MS }
    const [first, second] = await onRedis(server.url, clock, 2)
    const [one, other] = [countedBy(first!, clock), countedBy(second!, clock)]
    one.count('api', 'ann', 3)
    one.count('api', 'bob', 1)
    other.count('api', 'ann', 4, { allowed: false })
    await one.pass(1)
    await other.history.run()
    clock.nowMs += 10_000
    for (const { history } of [one, other]) {
      const all = await history.series('api', '1h')
      expect([known(all, all.allowed), known(all, all.denied)]).toEqual([{ 0: 4 }, { 0: 4 }])
      const ann = await history.series('api', '1h', { key: 'ann' })
      expect([known(ann, ann.allowed), known(ann, ann.denied)]).toEqual([{ 0: 3 }, { 0: 4 }])
    }
    await one.history.watchList.watch('api', { key: 'rare' }, true)
    await one.pass(1)
    await other.history.run()
    expect((await other.history.series('api', '1h', { key: 'rare' })).isWatched).toBe(true)
  })

  it('adds a batch once, even if it is sent again after a lost reply', async () => {
    const clock = { nowMs: START_MS }
    const [store] = await onRedis(server.url, clock)
    let isLost = true
    const losing: HistoryStore = {
      read: (...words) => store!.read(...words),
      watched: () => store!.watched(),
      watch: (...words) => store!.watch(...words),
      add: async (batch) => {
        await store!.add(batch)
        if (isLost) throw new Error('the reply was lost')
      },
    }
    const { history, count, pass, logged } = countedBy(losing, clock)
    count('api', 'ann', 3)
    await pass(1)
    isLost = false
    await history.close()
    clock.nowMs += 10_000
    const series = await history.series('api', '1h')
    expect(known(series, series.allowed)[0]).toBe(3)
    expect(logged).toEqual(["can't write the history; will retry for an hour"])
  })

  it('replaces a value that it cannot read', async () => {
    const clock = { nowMs: START_MS }
    const [store] = await onRedis(server.url, clock, 1, 'slidegate:damaged')
    const minute = START_MS / MINUTE_MS
    const name = `slidegate:damaged:{history}:api:m${minute}`
    const add = (number: number) =>
      store!.add({
        ...{ process: 'one', number, minute },
        limiters: [{ limiter: 'api', entries: { '': [1, 0, 1, 0] } }],
      })
    const record = async () => (await store!.read('api', RANGES['1h'], minute, 1))[0]!.record
    await add(1)
    const damage = ['not JSON', '{"c":{"":[1,2]},"r":{}}', '{"c":{"":["a",0,0,0]},"r":{}}', '[]', '3', '{}']
    for (const [i, text] of damage.entries()) {
      await redis.set(name, text)
      expect(await record()).toBeUndefined()
      await add(2 + i)
      expect(await record()).toEqual({ c: { '': [1, 0, 1, 0] }, r: { one: 2 + i } })
    }
    await redis.del(name)
    await redis.rpush(name, 'a list')
    expect(await record()).toBeUndefined()
    await add(20)
    expect(await record()).toMatchObject({ r: { one: 20 } })
  })

  it('gives each key in Redis a TTL', async () => {
    const clock = { nowMs: START_MS }
    const [store] = await onRedis(server.url, clock, 1, 'slidegate:ttl')
    const { count, pass } = countedBy(store!, clock)
    count('api', 'ann', 1)
    await pass(2)
    const names = await redis.keys('slidegate:ttl:*')
    expect(names).toHaveLength(5)
    for (const name of names) {
      const ttlMs = await redis.pttl(name)
      expect(ttlMs).toBeGreaterThan(0)
      expect(ttlMs).toBeLessThanOrEqual((/:m[0-9]+$/.test(name) ? 70 : 170 * 60) * MINUTE_MS)
    }
  })

  it('adds the same in memory and in Redis', async () => {
    const clock = { nowMs: START_MS }
    const stores = [inMemory(clock), (await onRedis(server.url, clock))[0]!]
    const random = randomSequence(7)
    const upTo = (most: number) => Math.floor(random() * most)
    const minute = START_MS / MINUTE_MS
    const counts = (most: number): Counts => [upTo(5), upTo(5), upTo(1000), upTo(most)]
    for (let number = 1; number <= 200; number++) {
      const keys = Array.from({ length: upTo(12) }, () => [`=k${upTo(40)}`, counts(3)] as const)
      const batch = {
        // Some batches are repeated.
        ...{ process: `p${upTo(3)}`, number: number - upTo(3), minute: minute + upTo(2) },
        limiters: [{ limiter: 'api', entries: Object.fromEntries([['', counts(9)], ...keys]) }],
      }
      for (const store of stores) await store.add(batch)
    }
    const read = (range: Range, from: number) =>
      Promise.all(stores.map((store) => store.read('api', range, from, 2)))
    for (const [one, other] of [
      await read(RANGES['1h'], minute),
      await read(RANGES['7d'], hourOf(minute)),
    ] as const) {
      expect(one).toEqual(other)
      expect(Object.keys(one![0]!.record!.c)).toHaveLength(1 + 3 * KEYS_PER_ORDER)
    }
  })
})

describe('while Redis is down', () => {
  it('counts are kept, and added when it is back', async () => {
    const clock = { nowMs: START_MS }
    const [store] = await onRedis(server.url, clock)
    const { history, count, pass } = countedBy(store!, clock)
    await server.kill()
    for (let minute = 0; minute < 3; minute++) {
      count('api', 'ann', 1 + minute)
      await pass(1)
    }
    await expect(history.series('api', '1h')).rejects.toMatchObject({ code: 'store_error' })
    await server.start()
    clock.nowMs += 10_000
    await expect
      .poll(async () => {
        await history.run()
        const series = await history.series('api', '1h').catch(() => undefined)
        return series && known(series, series.allowed)
      })
      .toEqual({ 0: 1, 1: 2, 2: 3 })
  })

  it('at most an hour of counts is kept', async () => {
    const clock = { nowMs: START_MS }
    const added: number[] = []
    let isDown = true
    const store: HistoryStore = {
      ...{ read: async () => [], watched: async () => [], watch: async () => {} },
      add: async ({ minute }) => {
        if (isDown) throw new Error('down')
        added.push(minute)
      },
    }
    const { history, pass, logged } = countedBy(store, clock)
    await pass(MAX_PENDING + 5)
    isDown = false
    await history.close()
    const first = START_MS / MINUTE_MS
    expect(added).toHaveLength(MAX_PENDING)
    // The minute that is still running is the last one.
    expect([added[0], added.at(-1)]).toEqual([first + 6, first + MAX_PENDING + 5])
    expect(logged.filter((line) => line.includes('dropped'))).toHaveLength(6)
  })
})
