// tier: integration

import { beforeEach, describe, expect, it } from 'vitest'
import { calendarWindow } from '../../src/calendar.ts'
import { type Limit, tokenBucket } from '../../src/index.ts'
import { MAX_NOTES } from '../../src/limits/notes.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import type { NoteOp, Op, Store } from '../../src/stores/store.ts'
import { useRedis } from '../support/use-redis.ts'
import { clock, inRedis, memory, namesOf, type Process, processOn, trial, vip } from './tables.ts'

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const stores: Record<string, () => Store> = { memory, redis: () => inRedis(redis) }

describe.each(Object.keys(stores))('overrides in %s', (name) => {
  let store: Store
  let one: Process
  let other: Process
  beforeEach(() => {
    store = stores[name]!()
    one = processOn(store)
    other = processOn(store)
  })

  it('is in force at once where it is set, and elsewhere within a second', async () => {
    expect(await other.ask('k')).toBeUndefined()
    await one.set('k', vip)
    expect(await one.ask('k')).toEqual(vip)
    expect(await one.ask('other')).toBeUndefined()
    clock.advance(1001)
    expect(await other.ask('k')).toEqual(vip)
  })

  it('ends with its ttl', async () => {
    await one.set('k', trial, { ttl: '2m' })
    clock.advance(100_000)
    const late = processOn(store)
    expect(await late.ask('k')).toEqual(trial)
    expect((await late.table.get(undefined, 'k'))?.expiresInMs).toBe(20_000)
    clock.advance(19_999)
    for (const each of [one, late]) expect(await each.ask('k')).toEqual(trial)
    clock.advance(1)
    for (const each of [one, late, processOn(store)]) {
      expect(await each.ask('k')).toBeUndefined()
      expect(await each.table.get(undefined, 'k')).toBeUndefined()
      expect(await each.table.list()).toEqual([])
    }
  })

  it('no process need hear of the end of a ttl', async () => {
    await one.set('k', trial, { ttl: 500 })
    expect(await one.ask('k')).toEqual(trial)
    clock.advance(499)
    expect(namesOf(one.table.of(undefined, 'k'))).toEqual(['trial'])
    clock.advance(1)
    expect(one.table.of(undefined, 'k')).toBeUndefined()
  })

  it('what is deleted gives way to the declared limits', async () => {
    await one.set('k', vip)
    expect(await one.table.delete(undefined, 'k')).toBe(true)
    expect(await one.table.delete(undefined, 'k')).toBe(false)
    expect(await one.ask('k')).toBeUndefined()
    clock.advance(1001)
    expect(await other.ask('k')).toBeUndefined()
  })

  it('of several changes, by several processes, the last is in force', async () => {
    await one.set('k', vip, { ttl: 500 })
    clock.advance(5000)
    await other.set('k', trial)
    clock.advance(1001)
    expect(await one.ask('k')).toEqual(trial)
    await one.table.delete(undefined, 'k')
    await other.set('k', vip)
    expect(await other.ask('k')).toEqual(vip)
  })

  it('is the same object until it changes, and of all keys for which it is the same', async () => {
    await one.set('k', vip)
    await one.set('l', vip)
    const [k, l] = [one.table.of(undefined, 'k'), one.table.of(undefined, 'l')]
    expect(l).toBe(k)
    clock.advance(1001)
    await one.set('m', trial)
    await one.ask('k')
    expect(one.table.of(undefined, 'k')).toBe(k)
  })

  it('lists what is in force, by the keys as they were given', async () => {
    const long = `user ${'ü'.repeat(200)}`
    await one.set('k', vip)
    await one.set(long, trial, { ttl: '1m' })
    await one.table.set('ip', 'k', trial)
    await one.set('gone', trial)
    await one.table.delete(undefined, 'gone')
    clock.advance(400)
    const overrides = (await other.table.list()).toSorted((a, b) => a.key.length - b.key.length)
    expect(overrides).toHaveLength(3)
    expect(overrides).toEqual(
      expect.arrayContaining([
        { key: 'k', limits: vip, expiresInMs: 0 },
        { key: 'k', dimension: 'ip', limits: trial, expiresInMs: 0 },
        { key: long, limits: trial, expiresInMs: 59_600 },
      ]),
    )
    expect(await other.table.get(undefined, long)).toEqual({ key: long, limits: trial, expiresInMs: 59_600 })
    expect(await other.table.get('ip', 'k')).toMatchObject({ dimension: 'ip' })
    expect(other.table.of('ip', 'k')).toEqual(trial)
    expect(other.table.of('user', 'k')).toBeUndefined()
  })

  it('is of one limiter', async () => {
    await one.set('k', vip)
    expect(await processOn(store, { limiter: 'login' }).table.list()).toEqual([])
  })

  it('holds other kinds, in full', async () => {
    const limits: readonly Limit[] = [
      tokenBucket({ capacity: 5, refill: 1, interval: '1s' }),
      calendarWindow({ limit: 5, unit: 'month', timeZone: 'Europe/Berlin', shadow: true }),
    ]
    await one.set('k', limits)
    expect((await other.table.get(undefined, 'k'))!.limits).toEqual(limits)
  })

  it('what others have written, and this version does not know, is not in force', async () => {
    await one.set('k', vip)
    const texts = ['', '{}', 'null', '[1', '{"key":"k","limits":[{"kind":"new"}],"ttlMs":0}']
    for (const [i, text] of texts.entries()) await outcomesOf(store, [noteOp(`foreign${i}`, text)])
    clock.advance(1001)
    for (const [i] of texts.entries()) expect(await other.ask(`foreign${i}`)).toBeUndefined()
    expect(await other.table.list()).toHaveLength(1)
    await other.set('foreign4', vip)
    expect(await other.ask('foreign4')).toEqual(vip)
  })

  it(`no more than ${MAX_NOTES} keys have one`, async () => {
    for (let first = 0; first < MAX_NOTES; first += 1000) {
      const ops: Op[] = Array.from({ length: 1000 }, (_, i) => noteOp(`k${first + i}`, 'text'))
      await outcomesOf(store, ops)
    }
    await expect(one.set('k', vip)).rejects.toMatchObject({
      code: 'store_unavailable',
      reason: 'full',
      message: 'no override for "k": the limiter "api" has 10000 already',
    })
    await one.set('k17', vip)
    expect(await one.ask('k17')).toEqual(vip)
  })

  function noteOp(key: string, text: string): NoteOp {
    let made: NoteOp | undefined
    const table = processOn(store, {
      apply: async (op) => {
        if (op.type === 'notes') made = { type: 'note', parts: op.parts, name: key, text, ttlMs: 0 }
        throw new Error('not sent')
      },
      applySync: undefined,
    }).table
    table.isFresh()
    return made!
  }
})

describe('what is refused', () => {
  const { table, asked } = processOn(memory())

  it.each<[unknown, unknown, unknown, string]>([
    ['k', undefined, {}, 'invalid_limit'],
    ['k', [], {}, 'invalid_limit'],
    ['k', 'vip', {}, 'invalid_limit'],
    ['k', [{ ...vip[0], limit: 5 }], {}, 'invalid_limit'],
    ['k', [vip[0], vip[0]], {}, 'duplicate_limit'],
    ['k', vip, { ttl: 9 }, 'invalid_window'],
    ['k', vip, { ttl: '367d' }, 'invalid_window'],
    ['k', vip, { ttl: 'soon' }, 'invalid_window'],
    ['k', vip, null, 'invalid_option'],
    ['', vip, {}, 'invalid_key'],
    [5, vip, {}, 'invalid_key'],
    ['k'.repeat(9000), vip, {}, 'invalid_limit'],
  ])('%s, %j, %j', async (key, limits, options, code) => {
    const set = table.set(undefined, key as string, limits as Limit[], options as object)
    await expect(set).rejects.toMatchObject({ code })
    expect(asked).not.toContain('note')
  })

  it.each([9, 2 ** 31, 10.5, Number.NaN, '1s', null])('maxStaleMs: %s', (maxStaleMs) => {
    expect(() => processOn(memory(), { maxStaleMs: maxStaleMs as number })).toThrow(
      expect.objectContaining({ code: 'invalid_option' }),
    )
  })
})
