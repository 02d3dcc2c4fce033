import {
  BurstyRateLimiter,
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  RateLimiterUnion,
} from 'rate-limiter-flexible'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  createLimiter,
  memoryStore,
  slidingWindow,
  tokenBucket,
} from '../../../packages/slidegate/src/index.ts'
import { redisStore } from '../../../packages/slidegate/src/stores/redis/index.ts'
import { ManualClock } from '../../../packages/slidegate/src/testing/index.ts'
import { type OpenRedis, startOpenRedis } from '../../../packages/slidegate/test/docs/open-redis.ts'
import { START, setDate } from './fake-date.ts'

// Tests the statements of docs/migrate/rate-limiter-flexible.md about both packages.

let open: OpenRedis
beforeAll(async () => {
  open = await startOpenRedis()
})
beforeEach(async () => {
  await open.redis.flushall()
})
afterAll(() => open.stop())

interface Consumer {
  consume(key: string, points?: number): Promise<unknown>
}

async function admitted(limiter: Consumer, requests: number, points = 1): Promise<number> {
  let count = 0
  for (let n = 1; n <= requests; n++) {
    const isAdmitted = await limiter.consume('ada', points).then(
      () => true,
      () => false,
    )
    if (isAdmitted) count++
  }
  return count
}

function ofOurs(limit: number, clock = new ManualClock(START)) {
  return createLimiter({
    limits: [slidingWindow({ limit, window: '1m' })],
    store: memoryStore({ clock: clock.now }),
  })
}

describe('the fullest minute', () => {
  it('contains 19 requests for a limit of 10 with rate-limiter-flexible', async () => {
    setDate(START)
    const limiter = new RateLimiterMemory({ points: 10, duration: 60 })
    expect(await admitted(limiter, 1)).toBe(1)
    vi.setSystemTime(START + 59_999)
    expect(await admitted(limiter, 20)).toBe(9)
    vi.setSystemTime(START + 60_000)
    expect(await admitted(limiter, 20)).toBe(10)
  })

  it('contains 10 requests for a limit of 10 with slidegate', async () => {
    const clock = new ManualClock(START)
    const limiter = ofOurs(10, clock)
    expect(limiter.consumeSync('ada').allowed).toBe(true)
    clock.advance(59_999)
    expect(limiter.consumeSync('ada', { cost: 9 }).allowed).toBe(true)
    clock.advance(1)
    expect(limiter.consumeSync('ada', { cost: 10 }).allowed).toBe(false)
    expect(limiter.consumeSync('ada').allowed).toBe(true)
  })
})

describe('a denied request', () => {
  it('charges its cost with rate-limiter-flexible', async () => {
    for (const limiter of [
      new RateLimiterMemory({ points: 10, duration: 60 }),
      new RateLimiterRedis({ storeClient: open.redis, points: 10, duration: 60 }),
    ]) {
      await limiter.consume('ada', 8)
      const rejected = await limiter.consume('ada', 5).catch((reason) => reason)
      expect(rejected).toMatchObject({ consumedPoints: 13, remainingPoints: 0 })
      expect(await admitted(limiter, 1)).toBe(0)
    }
  })

  it('costs nothing with slidegate', async () => {
    const inRedis = createLimiter({
      limits: [slidingWindow({ limit: 10, window: '1m' })],
      store: redisStore(open.redis),
      timeoutMs: 30_000,
    })
    for (const limiter of [ofOurs(10), inRedis]) {
      await limiter.consume('ada', { cost: 8 })
      expect(await limiter.consume('ada', { cost: 5 })).toMatchObject({ allowed: false, remaining: 2 })
      expect(await limiter.consume('ada', { cost: 2 })).toMatchObject({ allowed: true, remaining: 0 })
      limiter.close()
    }
  })

  it('rejects with a value that is not an Error with rate-limiter-flexible', async () => {
    const limiter = new RateLimiterMemory({ points: 1, duration: 60 })
    await limiter.consume('ada')
    const reason = await limiter.consume('ada').catch((reason) => reason)
    expect(reason).toBeInstanceOf(RateLimiterRes)
    expect(reason).not.toBeInstanceOf(Error)
  })
})

describe('several limits', () => {
  it('count one by one in a union of rate-limiter-flexible, even after a denial', async () => {
    const minute = new RateLimiterMemory({ keyPrefix: 'minute', points: 1, duration: 60 })
    const hour = new RateLimiterMemory({ keyPrefix: 'hour', points: 10, duration: 3600 })
    const union = new RateLimiterUnion(minute, hour)
    expect(await admitted(union, 10)).toBe(1)
    expect((await hour.get('ada'))?.consumedPoints).toBe(10)
  })

  it('count together or not at all with slidegate', async () => {
    const limiter = createLimiter({
      limits: [slidingWindow({ limit: 1, window: '1m' }), slidingWindow({ limit: 10, window: '1h' })],
    })
    for (let n = 1; n <= 10; n++) await limiter.consume('ada')
    const { limits } = await limiter.peek('ada')
    expect(limits.map(({ remaining }) => remaining)).toEqual([0, 9])
  })

  it('count inner denials in a BurstyRateLimiter of rate-limiter-flexible', async () => {
    setDate(START)
    const steady = new RateLimiterMemory({ points: 1, duration: 60 })
    const burst = new RateLimiterMemory({ keyPrefix: 'burst', points: 2, duration: 600 })
    expect(await admitted(new BurstyRateLimiter(steady, burst), 5)).toBe(3)
    expect((await steady.get('ada'))?.consumedPoints).toBe(5)
  })

  it('become a token bucket with slidegate', async () => {
    const clock = new ManualClock(START)
    const limiter = createLimiter({
      limits: [tokenBucket({ capacity: 3, refill: 1, interval: '1s' })],
      store: memoryStore({ clock: clock.now }),
    })
    const ask = () => limiter.consumeSync('ada').allowed
    expect([ask(), ask(), ask(), ask()]).toEqual([true, true, true, false])
    clock.advance(1000)
    expect([ask(), ask()]).toEqual([true, false])
  })
})

describe('a block', () => {
  it('starts with the first denial with rate-limiter-flexible, and ends with an empty count', async () => {
    setDate(START)
    const limiter = new RateLimiterMemory({ points: 2, duration: 3600, blockDuration: 10 })
    expect(await admitted(limiter, 3)).toBe(2)
    vi.setSystemTime(START + 10_000)
    expect(await admitted(limiter, 3)).toBe(2)
  })

  it('starts after the configured number of denials with slidegate, and keeps the count', async () => {
    const clock = new ManualClock(START)
    const limiter = createLimiter({
      limits: [slidingWindow({ limit: 2, window: '1h' })],
      ban: { after: 1, within: '1h', for: '10s' },
      store: memoryStore({ clock: clock.now }),
    })
    for (let n = 1; n <= 2; n++) await limiter.consume('ada')
    expect(await limiter.consume('ada')).toMatchObject({ allowed: false, blockedMs: 10_000 })
    clock.advance(10_000)
    expect(await limiter.consume('ada')).toMatchObject({ allowed: false, deniedBy: ['2-per-1h'] })
  })
})

describe('a refund', () => {
  it('adds credit with rate-limiter-flexible', async () => {
    const limiter = new RateLimiterMemory({ points: 5, duration: 60 })
    await limiter.reward('ada', 2)
    expect(await admitted(limiter, 10)).toBe(7)
  })

  it('returns at most the cost of its request with slidegate', async () => {
    const limiter = ofOurs(5)
    const decision = await limiter.consume('ada', { cost: 2 })
    expect(await limiter.refund('ada', decision)).toBe(2)
    expect(await limiter.refund('ada', decision)).toBe(0)
    expect((await limiter.peek('ada')).remaining).toBe(5)
  })
})

describe('an unusual value', () => {
  it('passes with rate-limiter-flexible: negative points', async () => {
    const limiter = new RateLimiterMemory({ points: 5, duration: 60 })
    await limiter.consume('ada', -3)
    expect((await limiter.get('ada'))?.consumedPoints).toBe(-3)
  })

  it('throws with slidegate: a negative cost', async () => {
    await expect(ofOurs(5).consume('ada', { cost: -3 })).rejects.toMatchObject({ code: 'invalid_cost' })
  })

  it('leaves a key without a TTL with rate-limiter-flexible: half a second', async () => {
    const limiter = new RateLimiterRedis({ storeClient: open.redis, points: 5, duration: 0.5 })
    await limiter.consume('ada')
    expect(await open.redis.pttl('rlflx:ada')).toBe(-1)
  })

  it('works with slidegate: half a second', async () => {
    expect(slidingWindow({ limit: 5, window: '500ms' }).windowMs).toBe(500)
  })
})
