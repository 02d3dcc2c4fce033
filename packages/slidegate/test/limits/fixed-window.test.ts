// tier: integration

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type CalendarUnit, calendarWindow } from '../../src/calendar.ts'
import {
  createLimiter,
  fixedWindow,
  type Limit,
  type Limiter,
  memoryStore,
  StoreUnavailableError,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const { redis } = await useRedis()
beforeEach(() => redis.flushall())

const limiterOf = (limits: readonly Limit[], clock?: ManualClock): Limiter =>
  createLimiter({ limits, store: redisStore(redis, clock && { clock: clock.now }), timeoutMs: 30_000 })

describe('if the clocks of this process and of Redis differ', () => {
  afterEach(() => vi.restoreAllMocks())

  const hourly = [calendarWindow({ limit: 5, unit: 'hour', timeZone: 'Asia/Kathmandu', name: 'hourly' })]

  const { now } = Date
  function setOwnClock(byMs: number): void {
    vi.spyOn(Date, 'now').mockImplementation(() => now() + byMs)
  }

  it.each([-1.9, -1, 0, 1, 1.9])('by %s windows, the clock of Redis decides the hour', async (windows) => {
    setOwnClock(windows * HOUR_MS)
    const { atMs, resetAfterMs, remaining } = await limiterOf(hourly).consume('k', { cost: 2 })
    // Full hours of this time zone are a quarter past those of UTC.
    const edgeMs = Math.floor((atMs - HOUR_MS / 4) / HOUR_MS + 1) * HOUR_MS + HOUR_MS / 4
    expect([resetAfterMs, remaining]).toEqual([edgeMs - atMs, 3])
    const later = limiterOf(hourly)
    setOwnClock(0)
    const peeked = await later.peek('k')
    expect(peeked.remaining).toBe(peeked.atMs < edgeMs ? 3 : 5)
  })

  it.each([-4, 4, -50_000, 50_000])('by %s windows, requests fail and charge nothing', async (windows) => {
    const limits = [...hourly, slidingWindow({ limit: 5, window: '1h', name: 'sliding' })]
    const other = limiterOf([fixedWindow({ limit: 5, window: '1h' })])
    const limiter = limiterOf(limits)
    const decision = await limiter.consume('k')
    setOwnClock(windows * HOUR_MS)
    const asks = [
      () => limiter.consume('k'),
      () => limiter.peek('k'),
      () => limiter.charge('k', 2),
      () => limiter.refund('k', decision),
    ]
    for (const ask of asks) {
      const [beside, asked] = await Promise.allSettled([other.consume('k'), ask()])
      expect(beside.status).toBe('fulfilled')
      const error: unknown = asked.status === 'rejected' && asked.reason
      expect(error).toBeInstanceOf(StoreUnavailableError)
      expect(error).toMatchObject({
        reason: 'invalid_state',
        message: expect.stringMatching(/clocks of Redis and this process .* more than two calendar windows/),
      })
    }
    vi.restoreAllMocks()
    const { limits: both, atMs } = await limiter.peek('k')
    const edgeMs = decision.atMs + decision.limits[0]!.resetAfterMs
    expect(both.map(({ remaining }) => remaining)).toEqual([atMs < edgeMs ? 4 : 5, 4])
    // Such a key can still be reset.
    setOwnClock(windows * HOUR_MS)
    await limiter.reset('k')
    expect((await redis.keys('*:k:fhour*')).length).toBe(0)
  })
})

describe('the TTL of a key is the rest of its window and a quarter, at least 4 s', () => {
  const lifetimeOf = (leftMs: number) => leftMs + Math.max(5000, leftMs / 4)

  it.each([
    ['a month', calendarWindow({ limit: 5, unit: 'month' }), '2026-02-27T00:00Z', 2 * DAY_MS],
    ['a longer one', calendarWindow({ limit: 5, unit: 'month' }), '2026-03-01T00:00Z', 31 * DAY_MS],
    [
      'a week with a clock change',
      calendarWindow({ limit: 5, unit: 'week', timeZone: 'Europe/Berlin' }),
      '2026-10-20T00:00Z',
      143 * HOUR_MS,
    ],
    [
      'a window from its first hit',
      fixedWindow({ limit: 5, window: '1h', align: 'first-hit' }),
      '2026-10-20T00:20Z',
      HOUR_MS,
    ],
  ])('%s', async (_, limit, at, leftMs) => {
    await limiterOf([limit], new ManualClock(Date.parse(at))).consume('k')
    const [key = ''] = await redis.keys('*:k:f*')
    const ttlMs = await redis.pttl(key)
    expect(ttlMs).toBeGreaterThan(lifetimeOf(leftMs) - 60_000)
    expect(ttlMs).toBeLessThanOrEqual(lifetimeOf(leftMs))
  })

  it('also for a short window by the clock of Redis', async () => {
    await limiterOf([fixedWindow({ limit: 5, window: '50ms', align: 'first-hit' })]).consume('k')
    const [key = 'slidegate:none'] = await redis.keys('*:k:f*')
    expect(await redis.pttl(key)).toBeLessThanOrEqual(lifetimeOf(50))
  })

  it('even if the clock is set back within its month', async () => {
    const clock = new ManualClock(Date.parse('2026-02-25T00:00Z'))
    const limiter = limiterOf([calendarWindow({ limit: 5, unit: 'month' })], clock)
    await limiter.consume('k')
    const [key = ''] = await redis.keys('*:k:f*')
    clock.set(Date.parse('2026-02-01T00:00Z'))
    const { resetAfterMs } = await limiter.consume('k')
    expect(await redis.pttl(key)).toBeGreaterThan(resetAfterMs)
  })
})

it('a log charged with other rules for its time zone stays in the window that it began in', async () => {
  const clock = new ManualClock(Date.parse('2026-06-10T12:00Z'))
  const limiter = limiterOf([calendarWindow({ limit: 5, unit: 'day' })], clock)
  await limiter.consume('k', { cost: 4 })
  const [key = ''] = await redis.keys('*:k:f*')
  // Stores the start of the day by the rules of another process, where it began an hour later.
  const value = (await redis.getBuffer(key))!
  value.writeUIntBE(Date.parse('2026-06-10T01:00Z'), 1, 6)
  await redis.set(key, value, 'KEEPTTL')
  const { remaining, resetAfterMs } = await limiter.consume('k')
  expect([remaining, resetAfterMs]).toEqual([0, 12 * HOUR_MS])
})

it('a time zone can be spelled in two ways, and the default is UTC', async () => {
  const store = memoryStore({ clock: new ManualClock().now })
  const used = async (first: string | undefined, second: string | undefined) => {
    const limits = [first, second].map((timeZone) => [calendarWindow({ limit: 5, unit: 'day', timeZone })])
    const [one, other] = limits.map((each) => createLimiter({ limits: each, store }))
    await one!.reset('k')
    await other!.reset('k')
    await one!.consume('k')
    return 5 - (await other!.peek('k')).remaining
  }
  expect(await used('europe/berlin', 'Europe/Berlin')).toBe(1)
  expect(await used(undefined, 'utc')).toBe(1)
  expect(await used('Europe/Vienna', 'Europe/Berlin')).toBe(0)
})

it.each(Object.entries(storesOn(redis)))('a time zone can be an offset on %s', async (_, storeOf) => {
  const clock = new ManualClock(Date.parse('2026-06-10T22:00Z'))
  const store = storeOf(clock)
  const endOf = async (unit: CalendarUnit, timeZone: string) => {
    const limits = [calendarWindow({ limit: 5, unit, timeZone })]
    const { resetAfterMs } = await createLimiter({ limits, store, timeoutMs: 30_000 }).consume(
      `${unit}${timeZone}`,
    )
    return new Date(clock.now() + resetAfterMs).toISOString().slice(5, 16)
  }
  expect(await endOf('hour', '+00:37')).toBe('06-10T22:23')
  expect(await endOf('day', '+05:30')).toBe('06-11T18:30')
  expect(await endOf('day', '-00:37')).toBe('06-11T00:37')
  expect(await endOf('month', '-12:00')).toBe('07-01T12:00')
})

it('an offset is stored without its colon, which would separate parts of the key', async () => {
  const limits = [calendarWindow({ limit: 5, unit: 'day', timeZone: '+05:30' })]
  await createLimiter({ limits, store: redisStore(redis), timeoutMs: 30_000 }).consume('k')
  expect(await redis.keys('*')).toEqual([expect.stringMatching(/:k:fday-\+0530$/)])
})

it('expired calendar windows make room in memory', async () => {
  const clock = new ManualClock(Date.parse('2026-02-10T00:00Z'))
  const store = memoryStore({ clock: clock.now, maxKeys: 2 })
  const limiter = createLimiter({ limits: [calendarWindow({ limit: 1, unit: 'month' })], store })
  await limiter.consume('a')
  await limiter.consume('b')
  clock.set(Date.parse('2026-02-28T23:59:59.999Z'))
  await expect(limiter.consume('c')).rejects.toMatchObject({ reason: 'full' })
  clock.advance(1)
  expect((await limiter.consume('c')).allowed).toBe(true)
  expect(store.stats().evicted).toBe(0)
})

describe("invalid combinations of options don't compile", () => {
  it('such as a length for a calendar window, or a time zone for another', () => {
    // @ts-expect-error
    expect(() => calendarWindow({ limit: 1, window: '1h', unit: 'hour' })).toThrow()
    // @ts-expect-error
    expect(() => calendarWindow({ limit: 1 })).toThrow()
    // @ts-expect-error
    expect(() => fixedWindow({ limit: 1, window: '1h', timeZone: 'UTC' })).toThrow()
    // @ts-expect-error
    expect(() => fixedWindow({ limit: 1 })).toThrow()
    // @ts-expect-error
    expect(() => fixedWindow({ limit: 1, align: 'first-hit' })).toThrow()
    // @ts-expect-error
    expect(() => fixedWindow({ limit: 1, align: 'year' })).toThrow()
  })
})
