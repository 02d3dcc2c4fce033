import 'reflect-metadata'
import { type CanActivate, Controller, Get, type INestApplication, Module, type Type } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import {
  SkipThrottle,
  Throttle,
  ThrottlerGuard,
  ThrottlerModule,
  type ThrottlerModuleOptions,
  ThrottlerStorageService,
} from '@nestjs/throttler'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { SlidegateThrottlerStorage } from '../../../examples/nest-throttler/storage.ts'
import { RateLimit, RateLimitModule, SkipRateLimit } from '../../../packages/slidegate/src/adapters/nest.ts'
import { memoryStore, slidingWindow } from '../../../packages/slidegate/src/index.ts'
import { ManualClock } from '../../../packages/slidegate/src/testing/index.ts'
import { START, setDate } from './fake-date.ts'
import { admitted, statuses } from './serve.ts'

// Tests the statements of docs/migrate/nestjs-throttler.md about both packages.

const perMinute = (limit: number) => [slidingWindow({ limit, window: '1m' })]

/** A controller with two handlers. `decorate` adds the decorators under test. */
function cats(decorate: (controller: Type) => void = () => {}): Type {
  class Cats {
    a() {
      return 'a'
    }
    b() {
      return 'b'
    }
  }
  for (const name of ['a', 'b']) decorateMethod(Get(name), Cats, name)
  Controller()(Cats)
  decorate(Cats)
  return Cats
}

function decorateMethod(decorator: MethodDecorator, controller: Type, name: string): void {
  decorator(controller.prototype, name, Object.getOwnPropertyDescriptor(controller.prototype, name)!)
}

async function serve(controller: Type, imports: unknown[], guard?: Type<CanActivate>, trustProxy = false) {
  class App {}
  const providers = guard === undefined ? [] : [{ provide: APP_GUARD, useClass: guard }]
  Module({ imports: imports as Type[], controllers: [controller], providers })(App)
  const app: INestApplication = await NestFactory.create(App, { logger: false })
  app.getHttpAdapter().getInstance().set('trust proxy', trustProxy)
  await app.listen(0, '127.0.0.1')
  onTestFinished(() => app.close())
  const url = await app.getUrl()
  return async (path = '/a', init?: RequestInit) => {
    const response = await fetch(`${url}${path}`, init)
    await response.clone().arrayBuffer()
    return response
  }
}

const withTheirs = (options: ThrottlerModuleOptions, decorate?: (controller: Type) => void) =>
  serve(cats(decorate), [ThrottlerModule.forRoot(options)], ThrottlerGuard)
const withOurs = (
  options: Parameters<typeof RateLimitModule.forRoot>[0],
  decorate?: (controller: Type) => void,
) => serve(cats(decorate), [RateLimitModule.forRoot(options)])

describe('a block', () => {
  it('lasts for the ttl from the first denial with @nestjs/throttler', async () => {
    setDate(START)
    const ask = await withTheirs([{ limit: 2, ttl: 60_000 }])
    expect(await admitted(ask, 2)).toBe(2)
    vi.setSystemTime(START + 59_000)
    const denied = await ask()
    expect([denied.status, denied.headers.get('retry-after')]).toEqual([429, '60'])
    vi.setSystemTime(START + 60_000)
    expect((await ask()).status).toBe(429)
  })

  it('shorter than the ttl resets the count with @nestjs/throttler, which admits 10 of 2 per minute', async () => {
    setDate(START)
    const ask = await withTheirs([{ limit: 2, ttl: 60_000, blockDuration: 1000 }])
    let within = 0
    for (let second = 0; second < 5; second++) {
      vi.setSystemTime(START + second * 1000)
      within += await admitted(ask, 3)
    }
    expect(within).toBe(10)
  })

  it('lasts until there is room with slidegate', async () => {
    const clock = new ManualClock(START)
    const ask = await withOurs({ limits: perMinute(2), store: memoryStore({ clock: clock.now }) })
    expect(await admitted(ask, 2)).toBe(2)
    clock.advance(59_000)
    const denied = await ask()
    expect([denied.status, denied.headers.get('retry-after')]).toEqual([429, '1'])
    clock.advance(1000)
    expect(await admitted(ask, 3)).toBe(2)
  })
})

it('@nestjs/throttler in memory has a sliding window without a block', async () => {
  setDate(START)
  const ask = await withTheirs([{ limit: 2, ttl: 60_000, blockDuration: 0 }])
  expect(await admitted(ask, 1)).toBe(1)
  vi.setSystemTime(START + 59_999)
  expect(await admitted(ask, 3)).toBe(1)
  vi.setSystemTime(START + 60_000)
  expect(await admitted(ask, 3)).toBe(1)
})

describe('several handlers', () => {
  it('get separate limits with @nestjs/throttler', async () => {
    const ask = await withTheirs([{ limit: 1, ttl: 60_000 }])
    expect([...(await statuses(ask, 2)), (await ask('/b')).status]).toEqual([200, 429, 200])
  })

  it('share limits with slidegate, unless they have their own', async () => {
    const ask = await withOurs({ limits: perMinute(1) })
    expect([...(await statuses(ask, 2)), (await ask('/b')).status]).toEqual([200, 429, 429])
    const decorated = await withOurs({ limits: perMinute(9) }, (controller) => {
      for (const name of ['a', 'b']) decorateMethod(RateLimit({ limits: perMinute(1) }), controller, name)
    })
    expect([...(await statuses(decorated, 2)), (await decorated('/b')).status]).toEqual([200, 429, 200])
  })

  it('opt out by decorator with both', async () => {
    const theirs = await withTheirs([{ limit: 1, ttl: 60_000 }], (controller) =>
      decorateMethod(SkipThrottle(), controller, 'a'),
    )
    const ours = await withOurs({ limits: perMinute(1) }, (controller) =>
      decorateMethod(SkipRateLimit(), controller, 'a'),
    )
    for (const ask of [theirs, ours]) expect(await statuses(ask, 3)).toEqual([200, 200, 200])
  })
})

describe('several limits', () => {
  it('count the request in the first with @nestjs/throttler, even if the second denies', async () => {
    const storage = new ThrottlerStorageService()
    const throttlers = [
      { name: 'short', limit: 9, ttl: 30_000 },
      { name: 'long', limit: 1, ttl: 60_000 },
    ]
    const ask = await withTheirs({ throttlers, storage })
    expect(await statuses(ask, 3)).toEqual([200, 429, 429])
    const hits = [...storage.storage.values()].flatMap(({ totalHits }) => [...totalHits])
    expect(Object.fromEntries(hits)).toMatchObject({ short: 3 })
  })

  it('set separate headers with @nestjs/throttler, Retry-After too', async () => {
    const ask = await withTheirs([{ name: 'short', limit: 1, ttl: 60_000 }])
    expect((await ask()).headers.get('x-ratelimit-remaining-short')).toBe('0')
    const { headers } = await ask()
    expect(headers.get('retry-after-short')).toBe('60')
    expect(headers.get('retry-after')).toBe(null)
    expect(headers.get('x-ratelimit-limit-short')).toBe(null)
  })

  it('count together with slidegate, and share one header', async () => {
    const limits = [
      slidingWindow({ name: 'short', limit: 9, window: '1h' }),
      slidingWindow({ name: 'long', limit: 1, window: '1d' }),
    ]
    const clock = new ManualClock(START)
    const ask = await withOurs({ limits, store: memoryStore({ clock: clock.now }) })
    expect(await statuses(ask, 2)).toEqual([200, 429])
    const { headers } = await ask()
    expect(headers.get('ratelimit')).toBe('"short";r=8, "long";r=0;t=86400')
    expect(headers.get('retry-after')).toBe('86400')
  })
})

it('@Throttle on a class counts each handler separately with @nestjs/throttler', async () => {
  const ask = await withTheirs([{ limit: 9, ttl: 60_000 }], (controller) =>
    Throttle({ default: { limit: 1, ttl: 60_000 } })(controller),
  )
  expect([...(await statuses(ask, 2)), (await ask('/b')).status]).toEqual([200, 429, 200])
})

it('@RateLimit on a class counts its handlers together with slidegate', async () => {
  const ask = await withOurs({ limits: perMinute(9) }, (controller) =>
    RateLimit({ limits: perMinute(1) })(controller),
  )
  expect([...(await statuses(ask, 2)), (await ask('/b')).status]).toEqual([200, 429, 429])
})

it('a client with the user agent of a robot bypasses @nestjs/throttler with ignoreUserAgents', async () => {
  const ask = await withTheirs([{ limit: 1, ttl: 60_000, ignoreUserAgents: [/googlebot/i] }])
  const init = { headers: { 'User-Agent': 'Googlebot' } }
  expect(await statuses(() => ask('/a', init), 3)).toEqual([200, 200, 200])
})

describe("a 'trust proxy' that trusts every address", () => {
  async function spoofed(imports: unknown[], guard?: Type<CanActivate>): Promise<number[]> {
    const ask = await serve(cats(), imports, guard, true)
    let n = 0
    return await statuses(() => ask('/a', { headers: { 'X-Forwarded-For': `203.0.113.${n++}` } }), 3)
  }

  it('admits all clients with @nestjs/throttler', async () => {
    const module = ThrottlerModule.forRoot([{ limit: 1, ttl: 60_000 }])
    expect(await spoofed([module], ThrottlerGuard)).toEqual([200, 200, 200])
  })

  it('fails each request with slidegate', async () => {
    expect(await spoofed([RateLimitModule.forRoot({ limits: perMinute(1) })])).toEqual([500, 500, 500])
  })
})

describe('@nestjs/throttler with the slidegate storage', () => {
  const throttlers = [{ limit: 2, ttl: 60_000, blockDuration: 1000 }]

  it('keeps the count over a block, and charges no denials', async () => {
    const clock = new ManualClock(START)
    const storage = new SlidegateThrottlerStorage({ store: memoryStore({ clock: clock.now }) })
    const ask = await withTheirs({ throttlers, storage })
    let within = 0
    for (let second = 0; second < 5; second++) {
      within += await admitted(ask, 3)
      clock.advance(1000)
    }
    expect(within).toBe(2)
    clock.advance(55_000)
    expect(await admitted(ask, 3)).toBe(2)
  })

  it('shares counts between processes', async () => {
    const store = memoryStore()
    const [one, other] = [
      await withTheirs({ throttlers, storage: new SlidegateThrottlerStorage({ store }) }),
      await withTheirs({ throttlers, storage: new SlidegateThrottlerStorage({ store }) }),
    ]
    expect(await admitted(one, 2)).toBe(2)
    expect(await admitted(other, 2)).toBe(0)
  })
})
