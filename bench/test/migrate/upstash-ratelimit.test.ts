import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Ratelimit } from '@upstash/ratelimit'
import { Redis as UpstashRedis } from '@upstash/redis'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  createLimiter,
  memoryStore,
  slidingWindow,
  tokenBucket,
} from '../../../packages/slidegate/src/index.ts'
import { ManualClock } from '../../../packages/slidegate/src/testing/index.ts'
import { type OpenRedis, startOpenRedis } from '../../../packages/slidegate/test/docs/open-redis.ts'
import { startUpstashShim, type UpstashShim } from '../upstash-shim.ts'
import { START, setDate } from './fake-date.ts'

// Tests the statements of docs/migrate/upstash-ratelimit.md about both packages.

let open: OpenRedis
let shim: UpstashShim
let client: UpstashRedis
beforeAll(async () => {
  open = await startOpenRedis()
  shim = await startUpstashShim(open.redis)
  client = new UpstashRedis({
    url: shim.env.UPSTASH_REDIS_REST_URL,
    token: shim.env.UPSTASH_REDIS_REST_TOKEN,
  })
})
beforeEach(async () => {
  await open.redis.flushall()
})
afterAll(async () => {
  await shim.close()
  await open.stop()
})

/** Its default timeout of 5 s would admit requests on a slow machine. */
const timeout = 60_000

function theirs(ephemeralCache: false | Map<string, number> = false) {
  const limiter = Ratelimit.slidingWindow(10, '60 s')
  return new Ratelimit({ redis: client, limiter, ephemeralCache, timeout })
}

function ours(clock: ManualClock) {
  const limits = [slidingWindow({ limit: 10, window: '60s' })]
  return createLimiter({ limits, store: memoryStore({ clock: clock.now }) })
}

async function admitted(limiter: Ratelimit, requests: number): Promise<number> {
  let count = 0
  for (let n = 1; n <= requests; n++) if ((await limiter.limit('ada')).success) count++
  return count
}

describe('a sliding window', () => {
  it('admits 20 requests within a minute for a limit of 10 with @upstash/ratelimit', async () => {
    setDate(START + 59_999)
    const limiter = theirs()
    expect(await admitted(limiter, 20)).toBe(10)
    let within = 10
    for (let ms = 65_000; ms < 119_999; ms += 6000) {
      vi.setSystemTime(START + ms)
      within += await admitted(limiter, 2)
    }
    expect(within).toBe(20)
  })

  it('denies requests after a minute of silence with @upstash/ratelimit', async () => {
    setDate(START)
    const limiter = theirs()
    expect(await admitted(limiter, 20)).toBe(10)
    vi.setSystemTime(START + 60_000)
    expect(await admitted(limiter, 20)).toBe(0)
    vi.setSystemTime(START + 90_000)
    expect(await admitted(limiter, 20)).toBe(5)
  })

  it('counts exactly with slidegate', async () => {
    const clock = new ManualClock(START + 59_999)
    const limiter = ours(clock)
    const rush = () =>
      Array.from({ length: 20 }, () => limiter.consumeSync('ada').allowed).filter(Boolean).length
    expect(rush()).toBe(10)
    clock.advance(59_999)
    expect(rush()).toBe(0)
    clock.advance(1)
    expect(rush()).toBe(10)
  })
})

describe('the time to retry', () => {
  it('still leads to a denial with @upstash/ratelimit', async () => {
    setDate(START)
    const limiter = theirs()
    await admitted(limiter, 10)
    const { success, reset } = await limiter.limit('ada')
    expect([success, reset]).toEqual([false, START + 60_000])
    vi.setSystemTime(reset)
    expect((await limiter.limit('ada')).success).toBe(false)
  })

  it('leads to an admission with slidegate, exact to the millisecond', async () => {
    const clock = new ManualClock(START)
    const limiter = ours(clock)
    limiter.consumeSync('ada', { cost: 10 })
    const { retryAfterMs } = limiter.consumeSync('ada')
    clock.advance(retryAfterMs - 1)
    expect(limiter.consumeSync('ada').allowed).toBe(false)
    clock.advance(1)
    expect(limiter.consumeSync('ada').allowed).toBe(true)
  })

  it('comes from the ephemeral cache of @upstash/ratelimit, even if there is room', async () => {
    setDate(START + 59_999)
    const [cached, asking] = [theirs(new Map()), theirs()]
    expect(await admitted(asking, 10)).toBe(10)
    vi.setSystemTime(START + 60_000)
    expect((await cached.limit('ada')).success).toBe(false)
    vi.setSystemTime(START + 119_000)
    expect(await cached.limit('ada')).toMatchObject({ success: false, reason: 'cacheBlock' })
    expect((await asking.limit('ada')).success).toBe(true)
  })
})

describe('a request with a cost', () => {
  it('costs units even if denied with @upstash/ratelimit', async () => {
    setDate(START)
    const limiter = theirs()
    expect(await admitted(limiter, 8)).toBe(8)
    expect((await limiter.limit('ada', { rate: 5 })).success).toBe(false)
    expect((await limiter.limit('ada')).success).toBe(false)
  })

  it('costs nothing if denied with slidegate', () => {
    const limiter = ours(new ManualClock(START))
    limiter.consumeSync('ada', { cost: 8 })
    expect(limiter.consumeSync('ada', { cost: 5 }).allowed).toBe(false)
    expect(limiter.consumeSync('ada', { cost: 2 }).allowed).toBe(true)
  })

  it('adds credit with @upstash/ratelimit if it is negative', async () => {
    setDate(START)
    const limiter = theirs()
    await limiter.limit('ada', { rate: -5 })
    expect(await admitted(limiter, 20)).toBe(15)
  })

  it('returns its cost at most once with slidegate', async () => {
    const limiter = ours(new ManualClock(START))
    const decision = limiter.consumeSync('ada', { cost: 5 })
    expect(await limiter.refund('ada', decision)).toBe(5)
    expect(await limiter.refund('ada', decision)).toBe(0)
    await expect(limiter.consume('ada', { cost: -5 })).rejects.toMatchObject({ code: 'invalid_cost' })
  })
})

it('a token bucket refills in steps with @upstash/ratelimit, and evenly with slidegate', async () => {
  setDate(START)
  const bucket = Ratelimit.tokenBucket(5, '10 s', 5)
  const limiter = new Ratelimit({ redis: client, limiter: bucket, ephemeralCache: false, timeout })
  expect(await admitted(limiter, 6)).toBe(5)
  vi.setSystemTime(START + 9999)
  expect(await admitted(limiter, 1)).toBe(0)
  vi.setSystemTime(START + 10_000)
  expect(await admitted(limiter, 6)).toBe(5)

  const clock = new ManualClock(START)
  const even = createLimiter({
    limits: [tokenBucket({ capacity: 5, refill: 5, interval: '10s' })],
    store: memoryStore({ clock: clock.now }),
  })
  even.consumeSync('ada', { cost: 5 })
  clock.advance(2000)
  expect([even.consumeSync('ada').allowed, even.consumeSync('ada').allowed]).toEqual([true, false])
})

it('@upstash/ratelimit uses the clock of each process, so one that is ahead counts separately', async () => {
  setDate(START)
  const limiter = theirs()
  expect(await admitted(limiter, 20)).toBe(10)
  vi.setSystemTime(START + 120_000)
  expect(await admitted(limiter, 20)).toBe(10)
})

it('a key with an asterisk resets other keys with @upstash/ratelimit', async () => {
  setDate(START)
  const limiter = theirs()
  await admitted(limiter, 10)
  await limiter.resetUsedTokens('*')
  expect(await admitted(limiter, 10)).toBe(10)
})

it('@upstash/ratelimit admits all requests after its timeout if the endpoint does not respond', async () => {
  const silent = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as AddressInfo
  try {
    const limiter = new Ratelimit({
      redis: new UpstashRedis({ url: `http://127.0.0.1:${port}`, token: 'none', retry: false }),
      limiter: Ratelimit.slidingWindow(10, '60 s'),
      timeout: 20,
    })
    expect(await limiter.limit('ada')).toMatchObject({ success: true, reason: 'timeout' })
  } finally {
    silent.closeAllConnections()
    silent.close()
  }
})

it('@upstash/ratelimit rejects if the endpoint fails', async () => {
  const limiter = new Ratelimit({
    redis: new UpstashRedis({ url: 'http://127.0.0.1:1', token: 'none', retry: false }),
    limiter: Ratelimit.slidingWindow(10, '60 s'),
  })
  await expect(limiter.limit('ada')).rejects.toThrow('fetch failed')
})
