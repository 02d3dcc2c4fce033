import type { Redis } from 'ioredis'
import { createLimiter, type Decision, type Limit, memoryStore } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import type { LoggedRequest } from './request.ts'

/** A limiter that decides the requests of a log at the log's own time. */
export interface Decider {
  /** The decisions in the order of the requests, which is that of time. */
  decide(requests: readonly LoggedRequest[]): Promise<Decision[]>
  /** How many callers were forgotten while they still counted, for want of room. */
  forgotten(): number
}

/** Where nobody waits for an answer a slow Redis is better than none. */
const REDIS_TIMEOUT_MS = 30_000

export function memoryDecider(limits: readonly Limit[]): Decider {
  let nowMs = 0
  const store = memoryStore({ clock: () => nowMs })
  const limiter = createLimiter({ name: 'replay', limits, store })
  return {
    decide: async (requests) =>
      requests.map(({ timeMs, key, cost }) => {
        nowMs = timeMs
        return limiter.consumeSync(key, { cost })
      }),
    forgotten: () => store.stats().evicted,
  }
}

/** Requests are sent without waiting for each other: the store reads the clock at once, and keeps their order. */
export function redisDecider(limits: readonly Limit[], redis: Redis, prefix: string): Decider {
  let nowMs = 0
  const store = redisStore(redis, { prefix, clock: () => nowMs })
  // The first failure ends the run, and is told there.
  const limiter = createLimiter({ name: 'replay', limits, store, timeoutMs: REDIS_TIMEOUT_MS, logger: false })
  return {
    decide: (requests) =>
      Promise.all(
        requests.map(({ timeMs, key, cost }) => {
          nowMs = timeMs
          return limiter.consume(key, { cost })
        }),
      ),
    forgotten: () => 0,
  }
}
