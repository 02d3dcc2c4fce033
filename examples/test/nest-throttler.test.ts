import { failurePolicy, memoryStore, type Store } from 'slidegate'
import { ManualClock } from 'slidegate/testing'
import { describe, expect, it } from 'vitest'
import { SlidegateThrottlerStorage } from '../nest-throttler/storage.ts'
import { served } from './support/example.ts'

it('ThrottlerGuard counts with the slidegate storage', async () => {
  const url = await served('nest-throttler')
  const ask = async () => {
    const { status, headers } = await fetch(url)
    const names = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after']
    return [status, ...names.map((name) => headers.get(name))]
  }
  expect(await ask()).toEqual([200, '3', '2', '60', null])
  await ask()
  expect(await ask()).toEqual([200, '3', '0', '60', null])
  expect((await ask())[0]).toBe(429)
})

describe('the storage', () => {
  const clock = new ManualClock()
  const storage = () => new SlidegateThrottlerStorage({ store: memoryStore({ clock: clock.now }) })
  /** Returns how many of three requests within a second pass. */
  const passed = async (at: SlidegateThrottlerStorage, blockDuration: number) => {
    let count = 0
    for (let i = 0; i < 3; i++) {
      if (!(await at.increment('ann', 10_000, 2, blockDuration, 'default')).isBlocked) count++
    }
    return count
  }

  it('a window slides, to the millisecond, and denials are not charged', async () => {
    const at = storage()
    expect(await passed(at, 0)).toBe(2)
    clock.advance(9_999)
    expect(await at.increment('ann', 10_000, 2, 0, 'default')).toMatchObject({
      isBlocked: true,
      timeToBlockExpire: 1,
    })
    clock.advance(1)
    expect(await passed(at, 0)).toBe(2)
  })

  it('the first denial blocks for blockDuration, and earlier usage still counts', async () => {
    const at = storage()
    expect(await passed(at, 1000)).toBe(2)
    clock.advance(1000)
    expect(await passed(at, 1000)).toBe(0)
    clock.advance(9_000)
    expect(await passed(at, 1000)).toBe(2)
  })

  it('throttlers and keys count separately, and storages on one store count together', async () => {
    const store = memoryStore()
    const [one, other] = [new SlidegateThrottlerStorage({ store }), new SlidegateThrottlerStorage({ store })]
    expect(await passed(one, 0)).toBe(2)
    expect(await passed(other, 0)).toBe(0)
    expect(await one.increment('ann', 10_000, 2, 0, 'long')).toMatchObject({ totalHits: 1 })
    expect(await one.increment('bob', 10_000, 2, 0, 'default')).toMatchObject({ totalHits: 1 })
  })

  it('usage still counts after a limit changes, and a limit of 0 denies all', async () => {
    const at = storage()
    const ask = (limit: number) => at.increment('ann', 10_000, limit, 0, 'default')
    expect(await ask(1)).toMatchObject({ totalHits: 1, isBlocked: false })
    expect(await ask(3)).toMatchObject({ totalHits: 2, isBlocked: false })
    expect(await ask(0)).toMatchObject({ isBlocked: true, timeToBlockExpire: 10 })
    for (let limit = 2000; limit < 3100; limit++) await ask(limit)
    expect(await ask(4000)).toMatchObject({ totalHits: 1103 })
  })

  it('an invalid window fails the request, and onStoreError applies while the store is down', async () => {
    await expect(storage().increment('ann', 0, 1, 0, 'default')).rejects.toMatchObject({
      code: 'invalid_duration',
    })
    const down: Store = {
      failurePolicy,
      apply: (_, call) => call.reject(new Error('ECONNREFUSED')),
      close() {},
    }
    const ask = (options: object) =>
      new SlidegateThrottlerStorage({ store: down, logger: false, ...options }).increment(
        'ann',
        1000,
        5,
        0,
        'x',
      )
    await expect(ask({})).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(await ask({ onStoreError: 'allow' })).toMatchObject({ isBlocked: false, totalHits: 0 })
  })
})
