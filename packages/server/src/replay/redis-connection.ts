import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { messageOf, UsageError } from '../errors.ts'
import { printable } from '../text.ts'

const CONNECT_TIMEOUT_MS = 5000

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
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  })
  let failure: unknown
  redis.on('error', (error) => {
    failure = error
  })
  const late = new AbortController()
  try {
    await Promise.race([redis.connect(), refusal(late.signal)])
    await redis.ping()
  } catch (error) {
    redis.disconnect()
    throw new Error(`cannot use Redis at ${withoutPassword(url)}: ${messageOf(failure ?? error)}`, {
      cause: error,
    })
  } finally {
    late.abort()
  }
  const prefix = `slidegate-replay-${randomBytes(8).toString('hex')}`
  return { redis, prefix, close: () => removeAndDisconnect(redis, prefix) }
}

/** For a server that takes the connection and then says nothing. */
async function refusal(signal: AbortSignal): Promise<void> {
  await delay(CONNECT_TIMEOUT_MS, undefined, { signal }).catch(() => {})
  if (!signal.aborted) throw new Error(`no answer within ${CONNECT_TIMEOUT_MS / 1000} s`)
}

async function removeAndDisconnect(redis: Redis, prefix: string): Promise<void> {
  try {
    for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: 1000 })) {
      if (keys.length > 0) await redis.unlink(keys)
    }
  } catch {
    // What could not be removed expires by itself.
  } finally {
    redis.disconnect()
  }
}

function withoutPassword(url: URL): string {
  const shown = new URL(url)
  shown.username = ''
  shown.password = ''
  return shown.href
}
