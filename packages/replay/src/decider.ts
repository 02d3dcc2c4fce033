// Limiters that decide at the time of the log: in memory, or on the Redis of --store.

import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { createLimiter, type Decision, type Limit, memoryStore } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { messageOf, UsageError } from './errors.ts'
import type { LoggedRequest } from './log/parse-line.ts'
import { printable } from './text.ts'

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
export function redisDecider(limits: readonly Limit[], { redis, prefix }: RedisConnection): Decider {
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

const ANSWER_TIMEOUT_MS = 5000

/** A connection to the user's Redis and the one prefix under which this run writes. */
export interface RedisConnection {
  readonly redis: Redis
  readonly prefix: string
  /** Removes what this run has written, and nothing else, and disconnects. */
  close(): Promise<void>
}

/** The address of a Redis, refused as a usage error unless it is one. */
export function parseRedisUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'redis:' && url.protocol !== 'rediss:') || url.hostname === '') {
    const shown = url === undefined ? text : withoutPassword(url)
    throw new UsageError(`--store is "${printable(shown)}"; write it like redis://127.0.0.1:6379`)
  }
  return url
}

/** Connects once, without retries: a connection that fails or is lost ends the run. */
export async function connectRedis(url: URL): Promise<RedisConnection> {
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
    throw new Error(`cannot use Redis at ${withoutPassword(url)}: ${messageOf(failure ?? error)}`, {
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
    // What could not be removed expires by itself.
  } finally {
    redis.disconnect()
  }
}

/** For a server that takes what it is sent and then says nothing. */
function inTime<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1000} s`))
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
