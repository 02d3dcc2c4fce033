import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import {
  concurrency,
  distinct,
  fixedWindow,
  type Limit,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from 'slidegate'
import { calendarWindow } from 'slidegate/calendar'
import { onlyKey } from '../redis/copies.ts'
import { bytesOf } from '../redis/info.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { Figure } from '../scenario.ts'
import { limiterOf, type Use } from '../steady/ours.ts'
import { WEIGHED_WINDOW_MS, weigh } from '../steady/weigh.ts'

const KEY = 'user:1'
const LIMITS = [100, 1000, 10_000]

/** A kind whose keys are measured. `grows`: the unit for which the log has one record each, if the log grows. */
interface WeighedKind extends Pick<Use, 'values'> {
  readonly name: string
  readonly grows?: 'request' | 'holder' | 'value'
  /** The number of windows with traffic, if charges don't expire with time. */
  readonly windows?: number
  limit(limit: number, windowMs: number): Limit
}

const KINDS: readonly WeighedKind[] = [
  { name: 'slidingWindow', grows: 'request', limit: (limit, window) => slidingWindow({ limit, window }) },
  {
    name: 'slidingWindow, zset',
    grows: 'request',
    limit: (limit, window) => slidingWindow({ limit, window, log: 'zset' }),
  },
  {
    name: 'slidingWindow, stream',
    grows: 'request',
    limit: (limit, window) => slidingWindow({ limit, window, log: 'stream' }),
  },
  { name: 'concurrency', grows: 'holder', limit: (limit, ttl) => concurrency({ limit, ttl }) },
  { name: 'distinct', grows: 'value', values: 'new', limit: (limit, window) => distinct({ limit, window }) },
  {
    name: 'tokenBucket',
    limit: (limit, interval) => tokenBucket({ capacity: limit, refill: limit, interval }),
  },
  { name: 'slidingCounter', limit: (limit, window) => slidingCounter({ limit, window }) },
  { name: 'fixedWindow', limit: (limit, window) => fixedWindow({ limit, window }) },
  { name: 'fixedWindow, one day', windows: 1, limit: (limit) => calendarWindow({ limit, unit: 'day' }) },
]

/** Returns the peak memory of keys over three windows of traffic at the limit. */
export async function bytesFigures(): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const kind of KINDS) {
    for (const limit of kind.grows === undefined ? [1000] : LIMITS) {
      const weights = await withRedis((redis) => weighKind(redis, kind, limit))
      const largest = Math.max(...weights)
      figures.push({
        name:
          kind.grows === undefined
            ? `memory: ${kind.name}, per key`
            : `memory: ${kind.name}, limit ${limit}, per ${kind.grows}`,
        value: kind.grows === undefined ? largest : largest / limit,
        unit: 'bytes',
        note: `${largest} bytes`,
        raw: { bytes: weights },
      })
    }
  }
  return figures
}

async function weighKind(redis: Redis, kind: WeighedKind, limit: number): Promise<number[]> {
  let nowMs = 0
  const limiter = limiterOf(redis, 'bench', { limits: [kind.limit(limit, WEIGHED_WINDOW_MS)] }, () => nowMs)
  const weights = await weigh(
    limit,
    {
      async isAdmitted(atMs, number) {
        nowMs = atMs
        const decision = await limiter.consume(
          KEY,
          kind.values
            ? { value: `10.0.${number >> 8}.${number & 255}` }
            : kind.grows === 'holder'
              ? { requestId: `${number}` }
              : {},
        )
        assert.equal(decision.atMs, atMs, 'the decision uses the time that was passed')
        return decision.allowed
      },
      bytesAt: async () => bytesOf(redis, [await onlyKey(redis, 'slidegate:*')]),
      // Counters are approximate, and deny some of this traffic.
      admitsAll: kind.grows !== undefined,
    },
    kind.windows,
  )
  limiter.close()
  return weights
}
