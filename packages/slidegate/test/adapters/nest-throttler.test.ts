// tier: system
import { APP_GUARD } from '@nestjs/core'
import {
  seconds,
  Throttle,
  ThrottlerGuard,
  ThrottlerModule,
  type ThrottlerModuleOptions,
} from '@nestjs/throttler'
import { beforeEach, describe, expect, it } from 'vitest'
import { SlidegateThrottlerStorage, type ThrottlerStorageOptions } from '../../src/adapters/nest-throttler.ts'
import { memoryStore, type Store } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing.ts'
import { useRedis } from '../support/use-redis.ts'
import { type App, controllerAt, temporaryApp } from './nest-app.ts'
import { statuses } from './temporary.ts'

const { redis } = await useRedis()

type Throttlers = Extract<ThrottlerModuleOptions, { throttlers: unknown }>

describe.each<[string, (clock: ManualClock) => Store]>([
  ['memory', (clock) => memoryStore({ clock: clock.now })],
  ['Redis', (clock) => redisStore(redis, { clock: clock.now })],
])('the storage for @nestjs/throttler on %s', (_, newStore) => {
  let clock: ManualClock
  let store: Store
  beforeEach(async () => {
    await redis.flushall()
    clock = new ManualClock()
    store = newStore(clock)
  })

  const timeoutMs = 30_000
  const storageOn = (options: ThrottlerStorageOptions = {}) =>
    new SlidegateThrottlerStorage({ store, timeoutMs, ...options })

  async function serve(
    throttlers: Throttlers['throttlers'],
    controllers: readonly ReturnType<typeof controllerAt>[] = [],
    options: Partial<Throttlers> = {},
  ): Promise<App> {
    return await temporaryApp('Express', {
      imports: [ThrottlerModule.forRoot({ throttlers, storage: storageOn(), ...options })],
      providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
      controllers,
    })
  }

  const times = (n: number): string[] => Array(n).fill('/')

  function limitHeaders(response: Response): Record<string, string> {
    const named = [...response.headers].filter(([name]) => /^(x-ratelimit|retry-after)/.test(name))
    return Object.fromEntries(named)
  }

  it('the guard reads from it what is left, and when all of it is back', async () => {
    const server = await serve([{ limit: 2, ttl: seconds(10) }])
    expect(limitHeaders(await fetch(server.url))).toEqual({
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '1',
      'x-ratelimit-reset': '10',
    })
    clock.advance(4500)
    expect(limitHeaders(await fetch(server.url))).toMatchObject({
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '10',
    })
    const denied = await fetch(server.url)
    expect([denied.status, limitHeaders(denied)]).toEqual([429, { 'retry-after': '10' }])
    expect([server.served(), server.errors]).toEqual([2, []])
  })

  it('without a block it is an exact sliding window, to the millisecond', async () => {
    const server = await serve([{ limit: 2, ttl: seconds(10), blockDuration: 0 }])
    expect(await statuses(server, times(1))).toEqual([200])
    clock.advance(9000)
    expect(await statuses(server, times(2))).toEqual([200, 429])
    clock.advance(999)
    const denied = await fetch(server.url)
    expect([denied.status, limitHeaders(denied)]).toEqual([429, { 'retry-after': '1' }])
    clock.advance(1)
    expect(await statuses(server, times(2))).toEqual([200, 429])
    clock.advance(8999)
    expect(await statuses(server, times(1))).toEqual([429])
    clock.advance(1)
    expect(await statuses(server, times(2))).toEqual([200, 429])
  })

  it('requests that are denied are charged nothing', async () => {
    const server = await serve([{ limit: 1, ttl: seconds(10), blockDuration: 0 }])
    expect(await statuses(server, times(20))).toEqual([200, ...Array(19).fill(429)])
    clock.advance(seconds(10))
    expect(await statuses(server, times(2))).toEqual([200, 429])
  })

  it('the first denial blocks for blockDuration, and no later one makes it longer', async () => {
    const server = await serve([{ limit: 1, ttl: seconds(10), blockDuration: seconds(60) }])
    expect(await statuses(server, times(2))).toEqual([200, 429])
    clock.advance(seconds(30))
    const denied = await fetch(server.url)
    expect([denied.status, limitHeaders(denied)]).toEqual([429, { 'retry-after': '30' }])
    clock.advance(seconds(30) - 1)
    expect(await statuses(server, times(1))).toEqual([429])
    clock.advance(1)
    expect(await statuses(server, times(2))).toEqual([200, 429])
  })

  it('what was used before a block counts on behind it', async () => {
    const server = await serve([{ limit: 2, ttl: seconds(10), blockDuration: seconds(1) }])
    expect(await statuses(server, times(3))).toEqual([200, 200, 429])
    clock.advance(seconds(1))
    expect(await statuses(server, times(1))).toEqual([429])
    clock.advance(seconds(9))
    expect(await statuses(server, times(3))).toEqual([200, 200, 429])
  })

  it('the same limit may block here and not there', async () => {
    const storage = storageOn()
    const denials = async (key: string, blockDuration: number) => {
      await storage.increment(key, 1000, 1, blockDuration, 'default')
      return (await storage.increment(key, 1000, 1, blockDuration, 'default')).timeToBlockExpire
    }
    expect([await denials('ann', 0), await denials('bob', 5000), await denials('cid', 9000)]).toEqual([
      1, 5, 9,
    ])
  })

  it('several throttlers count apart, though the application gives them one key', async () => {
    const throttlers = [
      { name: 'short', limit: 2, ttl: seconds(1), blockDuration: 0 },
      { name: 'long', limit: 3, ttl: seconds(10), blockDuration: 0 },
    ]
    const server = await serve(throttlers, [], { generateKey: (_, tracker) => tracker })
    const first = await fetch(server.url)
    expect(limitHeaders(first)).toMatchObject({
      'x-ratelimit-remaining-short': '1',
      'x-ratelimit-remaining-long': '2',
    })
    expect(await statuses(server, times(2))).toEqual([200, 429])
    clock.advance(seconds(1))
    expect(await statuses(server, times(1))).toEqual([200])
    const denied = await fetch(server.url)
    expect([denied.status, limitHeaders(denied)]).toMatchObject([429, { 'retry-after-long': '9' }])
  })

  it('routes have limits of their own', async () => {
    const strict = Throttle({ default: { limit: 1, ttl: seconds(60), blockDuration: 0 } })
    const cats = controllerAt('cats', ['list', 'strict'], { strict: [strict] })
    const server = await serve([{ limit: 2, ttl: seconds(10), blockDuration: 0 }], [cats])
    const paths = ['/cats/list', '/cats/strict', '/cats/strict', '/cats/list', '/cats/list']
    expect(await statuses(server, paths)).toEqual([200, 200, 429, 200, 429])
    clock.advance(seconds(10))
    expect(await statuses(server, ['/cats/strict', '/cats/list'])).toEqual([429, 200])
  })

  it('a limit that is told anew for each request counts what was counted under another', async () => {
    let limit = 1
    const server = await serve([{ limit: () => limit, ttl: seconds(10), blockDuration: 0 }])
    expect(await statuses(server, times(2))).toEqual([200, 429])
    limit = 3
    expect(await statuses(server, times(3))).toEqual([200, 200, 429])
    limit = 0
    const denied = await fetch(server.url)
    expect([denied.status, limitHeaders(denied)]).toEqual([429, { 'retry-after': '10' }])
  })

  it('storages of one store and name share the counts, as processes do; others do not', async () => {
    const of = (storage: SlidegateThrottlerStorage) => storage.increment('ann', 1000, 1, 0, 'default')
    const shared = { totalHits: 1, timeToExpire: 1, isBlocked: false, timeToBlockExpire: 0 }
    expect(await of(storageOn())).toEqual(shared)
    expect(await of(storageOn())).toEqual({
      totalHits: 2,
      timeToExpire: 1,
      isBlocked: true,
      timeToBlockExpire: 1,
    })
    expect(await of(storageOn({ name: 'other' }))).toEqual(shared)
  })

  it('counts on under ever new limits', async () => {
    const storage = storageOn()
    for (let limit = 1; limit <= 1100; limit++)
      await storage.increment('ann', 60_000, 2000, 0, `${limit % 2}`)
    for (let limit = 2000; limit < 3100; limit++) await storage.increment('bob', 60_000, limit, 0, 'default')
    expect(await storage.increment('bob', 60_000, 2000, 0, 'default')).toMatchObject({ totalHits: 1101 })
  })

  it('refuses what is no window and no limit, at the request; what are no options, at once', async () => {
    const storage = storageOn()
    await expect(storage.increment('ann', 0, 1, 0, 'default')).rejects.toMatchObject({
      code: 'invalid_window',
    })
    await expect(storage.increment('ann', 1000, 1.5, 0, 'default')).rejects.toMatchObject({
      code: 'invalid_limit',
    })
    expect(() => storageOn({ name: 'no name' })).toThrow(expect.objectContaining({ code: 'invalid_name' }))
  })
})

it('while the store is down the options say what becomes of requests', async () => {
  const down: Store = { apply: (_, call) => call.reject(new Error('ECONNREFUSED')), close() {} }
  const ask = (options: ThrottlerStorageOptions) =>
    new SlidegateThrottlerStorage({ store: down, logger: false, ...options }).increment(
      'ann',
      1000,
      5,
      0,
      'x',
    )
  await expect(ask({})).rejects.toMatchObject({ code: 'store_unavailable' })
  expect(await ask({ onStoreError: 'allow' })).toMatchObject({ isBlocked: false, totalHits: 0 })
  expect(await ask({ onStoreError: 'deny' })).toMatchObject({ isBlocked: true, timeToBlockExpire: 1 })
})
