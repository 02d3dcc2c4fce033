// tier: system
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  createLimiter,
  type Decision,
  fixedWindow,
  type Limit,
  type Limiter,
  slidingWindow,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type SteppedRedis, startRedisWithClock } from '../support/clock-shim.ts'
import { fullest } from './charged-history.ts'
import { Traffic } from './traffic.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** Much longer than each part of a test takes, and shorter than the shortest window. */
const STRETCH_MS = 25_000

const LIMITS: Readonly<Record<string, readonly Limit[]>> = {
  'a sliding window of 30s': [slidingWindow({ limit: 30, window: '30s' })],
  'a sliding window of 1h': [slidingWindow({ limit: 30, window: '1h' })],
  'a coarse sliding window': [slidingWindow({ limit: 30, window: '1h', precision: '1m' })],
  'several windows': [
    slidingWindow({ limit: 30, window: '30s', name: 'thirty' }),
    slidingWindow({ limit: 50, window: '1h', name: 'hour' }),
    fixedWindow({ limit: 60, window: '1h', name: 'fixed' }),
  ],
  'a fixed window of 30s': [fixedWindow({ limit: 30, window: '30s' })],
  'a fixed window of 1h': [fixedWindow({ limit: 30, window: '1h' })],
}

let server: SteppedRedis
let redis: Redis
beforeAll(async () => {
  server = await startRedisWithClock()
  redis = new Redis(server.port)
})
afterAll(async () => {
  redis?.disconnect()
  await server?.stop()
})
beforeEach(async () => {
  await redis.flushall()
  await startOfHour()
})

/** Moves the clock to the start of an hour. Otherwise a fixed window might end in the middle of a test. */
async function startOfHour(): Promise<void> {
  const nowMs = Date.now() + server.offsetMs
  await server.step(HOUR_MS - (nowMs % HOUR_MS))
}

/** Returns the longest wait until all units are free. It is the window plus the rest of its grain. */
function longestWaitMs({ windowMs, precisionMs }: { windowMs: number; precisionMs: number }): number {
  return precisionMs === windowMs ? windowMs : windowMs + precisionMs - 1
}

function expectBounded(decisions: readonly Decision[]): void {
  for (const { retryAfterMs, resetAfterMs, remaining, allowed, limits } of decisions) {
    const boundMs = Math.max(...limits.map(longestWaitMs))
    expect(remaining).toBeGreaterThanOrEqual(0)
    expect(retryAfterMs).toBeGreaterThanOrEqual(allowed ? 0 : 1)
    expect(retryAfterMs).toBeLessThanOrEqual(boundMs)
    expect(resetAfterMs).toBeGreaterThanOrEqual(0)
    expect(resetAfterMs).toBeLessThanOrEqual(boundMs)
    for (const limit of limits) {
      expect(limit.retryAfterMs).toBeGreaterThanOrEqual(0)
      expect(limit.retryAfterMs).toBeLessThanOrEqual(longestWaitMs(limit))
      expect(limit.resetAfterMs).toBeGreaterThanOrEqual(0)
      expect(limit.resetAfterMs).toBeLessThanOrEqual(longestWaitMs(limit))
    }
  }
}

async function expectAllKeysExpire(): Promise<void> {
  for (const key of await redis.keys('*')) expect(await redis.pttl(key)).toBeGreaterThan(0)
}

const longestMs = (limits: readonly Limit[]) => Math.max(...limits.map(longestWaitMs))
const tightest = (limits: readonly Limit[]) => Math.min(...limits.map(({ limit }) => limit))

describe.skipIf(process.platform !== 'linux')('when the clock of Redis is set', () => {
  const limiterOf = (limits: readonly Limit[]): Limiter =>
    createLimiter({ limits: [...limits], store: redisStore(redis), timeoutMs: 30_000 })

  describe.each(Object.entries(LIMITS))('%s', (_, limits) => {
    it.each([-HOUR_MS, -MINUTE_MS, MINUTE_MS, HOUR_MS])(
      'by %s ms under traffic, no window exceeds its limit',
      async (stepMs) => {
        const limiter = limiterOf(limits)
        const traffics = ['a', 'b'].map((key) => new Traffic(limiter, [key], 10))
        // The start of each stretch, by the server's clock. Stretches don't overlap.
        const beginningsMs: number[] = []
        const steps = [0, stepMs, longestMs(limits) + 2 * MINUTE_MS]
        for (const step of steps) {
          // Recorded before the step, because decisions may arrive before `step` resolves.
          beginningsMs.push(Date.now() + server.offsetMs + step)
          await server.step(step)
          await more(traffics)
        }
        await Promise.all(traffics.map((traffic) => traffic.stop()))
        limiter.close()

        for (const traffic of traffics) {
          expect(traffic.complaints).toEqual([])
          const { decisions } = traffic
          const stretches = beginningsMs.map((beginMs) =>
            decisions.filter(({ atMs }) => atMs >= beginMs - 2 && atMs < beginMs + STRETCH_MS),
          )
          expect(stretches.flat()).toHaveLength(decisions.length)
          expectBounded(decisions)
          for (const limit of limits) expect(fullest(limit, stretches)).toBeLessThanOrEqual(limit.limit)
          const admitted = stretches.map((stretch) => stretch.filter(({ allowed }) => allowed).length)
          expect(admitted[0]).toBe(tightest(limits))
          // Charges still count, unless the step was longer than the windows.
          if (stepMs < 0) expect(admitted[1]).toBe(0)
          if (stepMs >= longestMs(limits)) expect(admitted[1]).toBe(tightest(limits))
          expect(admitted[2]).toBe(tightest(limits))
        }
        await expectAllKeysExpire()
      },
    )

    it.each([-MINUTE_MS, -HOUR_MS])(
      'by %s ms, an exhausted key stays denied for at most one window',
      async (stepMs) => {
        const limiter = limiterOf(limits)
        await exhaust(limiter)
        await server.step(stepMs)
        // The next request detects the step, however much later it arrives.
        await server.step(1000)
        const denied = await limiter.consume('k')
        expect(denied.allowed).toBe(false)
        expectBounded([denied])
        // Denials in between don't restart the wait.
        await server.step(denied.retryAfterMs - 20_000)
        const again = await limiter.consume('k')
        expect(again.allowed).toBe(false)
        expect(again.retryAfterMs).toBeLessThanOrEqual(20_000)
        await server.step(again.retryAfterMs)
        expect((await limiter.consume('k')).allowed).toBe(true)
        await expectAllKeysExpire()
        limiter.close()
      },
    )

    it.each([MINUTE_MS, HOUR_MS])('by %s ms, limits behave as if that time had passed', async (stepMs) => {
      const limiter = limiterOf(limits)
      const last = await exhaust(limiter)
      await server.step(stepMs)
      const decision = await limiter.consume('k')
      expectBounded([decision])
      expect(decision.allowed).toBe(stepMs >= last.retryAfterMs)
      if (!decision.allowed) {
        const sinceMs = decision.atMs - last.atMs
        expect(sinceMs).toBeGreaterThanOrEqual(stepMs)
        expect(decision.retryAfterMs).toBe(last.retryAfterMs - sinceMs)
      }
      limiter.close()
    })

    it('back and forth, no limit is exceeded and no key is locked out', async () => {
      const limiter = limiterOf(limits)
      await exhaust(limiter)
      await server.step(-HOUR_MS)
      expect((await limiter.consume('k')).allowed).toBe(false)
      await server.step(HOUR_MS)
      const decision = await limiter.consume('k')
      expectBounded([decision])
      await server.step(decision.retryAfterMs)
      expect((await limiter.consume('k')).allowed).toBe(true)
      limiter.close()
    })
  })
})

/** Waits until each key has had enough requests to reach its limit. */
async function more(traffics: readonly Traffic[]): Promise<void> {
  const wanted = traffics.map(({ decisions }) => decisions.length + 80)
  while (traffics.some(({ decisions }, i) => decisions.length < wanted[i]!)) await nextTurn()
}

/** Makes requests until one is denied. Returns the denial. */
async function exhaust(limiter: Limiter): Promise<Decision> {
  for (;;) {
    const decision = await limiter.consume('k')
    if (!decision.allowed) return decision
  }
}
