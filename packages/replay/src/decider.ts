// Limiters that use the log's times as their clock. Their state is in memory, or in the Redis server from --store.

import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { createLimiter, type Decision, type Limit, type LimitDecision, memoryStore } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { messageOf, UsageError } from './errors.ts'
import type { LoggedRequest } from './log/parse-line.ts'
import { printable } from './text.ts'

/** The parts of a decision that a replay counts. */
export interface Decided extends Pick<Decision, 'allowed'> {
  readonly limits: readonly Pick<LimitDecision, 'allowed'>[]
}

/** Decides on the requests in a log, at their logged times. */
export interface Decider {
  /** Decides on requests, which must be in chronological order. */
  decide(requests: readonly LoggedRequest[]): Promise<readonly Decided[]>
  /** Number of callers that the store dropped while their usage still counted. */
  forgotten(): number
}

/** A long timeout: no client is waiting, and a slow response is better than none. */
const REDIS_TIMEOUT_MS = 30_000

/** Admits all requests, for a replay without limits. */
export const ADMIT_ALL: Decider = {
  decide: async (requests) => requests.map(() => ({ allowed: true, limits: [] })),
  forgotten: () => 0,
}

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

/** Decides in Redis. Sends all requests of a batch at once, each with its own time. Redis gets them in order. */
export function redisDecider(limits: readonly Limit[], { redis, prefix }: RedisConnection): Decider {
  let nowMs = 0
  const store = redisStore(redis, { prefix, clock: () => nowMs })
  // Nothing is logged, because the first failure ends the run with an error message.
  const limiter = createLimiter({
    name: 'replay',
    limits,
    store,
    timeoutMs: REDIS_TIMEOUT_MS,
    logger: false,
    warnings: false,
  })
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

const ANSWER_TIMEOUT_MS = 5000

/** A connection to the user's Redis, with a prefix for this run's keys. */
export interface RedisConnection {
  readonly redis: Redis
  readonly prefix: string
  /** Deletes the keys of this run only, and disconnects. */
  close(): Promise<void>
}

/** Parses a Redis URL. @throws {UsageError} if it is invalid */
export function parseRedisUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'redis:' && url.protocol !== 'rediss:') || url.hostname === '') {
    const shown = url === undefined ? text : withoutPassword(url)
    throw new UsageError(`invalid --store "${printable(shown)}"; use a value such as redis://127.0.0.1:6379`)
  }
  return url
}

/** Connects once, without retries. A failed or lost connection ends the run. */
export async function connectRedis(url: URL): Promise<RedisConnection> {
  // Loaded only here, because most replays don't use Redis.
  const { Redis } = await import('ioredis')
  const redis = new Redis(url.href, {
    lazyConnect: true,
    connectTimeout: ANSWER_TIMEOUT_MS,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  })
  let failure: unknown
  redis.on('error', (error) => {
    failure = error
  })
  try {
    await inTime(redis.connect())
    await inTime(redis.ping())
  } catch (error) {
    redis.disconnect()
    throw new Error(`can't use Redis at ${withoutPassword(url)}: ${messageOf(failure ?? error)}`, {
      cause: error,
    })
  }
  const prefix = `slidegate-replay-${randomBytes(8).toString('hex')}`
  return { redis, prefix, close: () => removeAndDisconnect(redis, prefix) }
}

async function removeAndDisconnect(redis: Redis, prefix: string): Promise<void> {
  try {
    let cursor = '0'
    do {
      const [next, keys] = await inTime(redis.scan(cursor, 'MATCH', `${prefix}:*`, 'COUNT', 1000))
      if (keys.length > 0) await inTime(redis.unlink(keys))
      cursor = next
    } while (cursor !== '0')
  } catch {
    // Ignored, because the remaining keys expire.
  } finally {
    redis.disconnect()
  }
}

/** Rejects after a timeout, because a server may accept commands but not respond. */
function inTime<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`no response within ${ANSWER_TIMEOUT_MS / 1000} s`))
    const timer = setTimeout(late, ANSWER_TIMEOUT_MS)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

function withoutPassword(url: URL): string {
  const shown = new URL(url)
  shown.username = ''
  shown.password = ''
  shown.search = ''
  return shown.href
}
