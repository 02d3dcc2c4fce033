// The store in Redis: slidegate/redis.

import { asUnavailable, checkOptions, noAnswer, SlidegateError } from '../../errors.ts'
import { failurePolicy } from '../../resilience/failure-policy.ts'
import type { Clock } from '../../runtime/clock.ts'
import { whenIdle } from '../idle.ts'
import { checkClock, readClock } from '../instant.ts'
import { START_MS, Start } from '../start.ts'
import type { Op, Store } from '../store.ts'
import { type BatchOptions, batchedStore } from './batcher.ts'
import type { RedisStoreStats } from './call-counts.ts'
import { warnOfClient } from './client-warnings.ts'
import { type Connection, connectionOf, type RedisClient } from './clients.ts'
import { OwnConnection } from './connect.ts'
import { keyspace } from './keyspace.ts'
import { runScript, ScriptTransport } from './transport.ts'
import { isUrlOptions, type UrlOptions } from './url.ts'

export type { RedisStoreStats } from './call-counts.ts'
export type { CommandClient, GlideClient, IoredisClient, NodeRedisClient, RedisClient } from './clients.ts'
export type { UrlOptions } from './url.ts'

/** Where the keys are, and how calls reach them. Anything out of its range is `invalid_option`. */
export interface RedisStoreOptions {
  /** What all keys begin with: 1 to 128 of `A-Z a-z 0-9 . _ : -`. Default: `slidegate`. */
  readonly prefix?: string
  /**
   * Parts into which keys are divided, a power of two from 1 to 1024. On a Cluster a call reaches one of them: more parts spread
   * better over many servers, fewer make larger batches. All stores that share keys need the same number. Default: 64.
   */
  readonly buckets?: number
  /** Epoch milliseconds, for tests and replay: counts instead of the server's own clock. TTLs are then 10 minutes at least. */
  readonly clock?: Clock
}

/** A store in Redis. */
export interface RedisStore extends Store {
  /**
   * Connects, and resolves with the first answer. Tries for 2 s, then rejects with a `StoreUnavailableError`. Requests
   * need not wait for it: the deadline of the first ones begins when the connection is there.
   */
  ready(): Promise<void>
  /** Counts of calls since the store was made. Never keys. */
  stats(): RedisStoreStats
}

/** Calls to one server, and to each bucket of a Cluster. */
const OF_SERVER: BatchOptions = { maxCalls: 16, readsFirst: false }
const OF_BUCKET: BatchOptions = { maxCalls: 4, readsFirst: true }

/** Milliseconds until `ready` retries. */
const RETRY_MS = 20

/**
 * Keeps state in Redis from 7.0, or Valkey from 7.2.
 *
 * All processes with the same server and prefix share it: one server, one with replicas, or a Cluster. The server's clock
 * counts. The store neither configures nor closes a client that you pass.
 *
 * With a URL the store makes its own client. To one server it connects at once, without keeping the process alive until
 * the first request; to a Cluster with the first request. `close` waits up to 2 s for calls in flight, then closes the client.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function redisStore(client: RedisClient | UrlOptions, options: RedisStoreOptions = {}): RedisStore {
  checkOptions(options, 'redisStore', { prefix: true, buckets: true, clock: true })
  const { prefix = 'slidegate', clock, buckets = 64 } = options
  checkClock(clock)
  const keysOf = keyspace(prefix, buckets)
  const own = isUrlOptions(client) ? new OwnConnection(client) : undefined
  const connection = own ?? connectionOf(client as RedisClient)
  if (own === undefined) warnOfClient(client as RedisClient)
  const { isCluster } = connection
  // On a Cluster the keys of a call lie in one slot, so each bucket has batches of its own.
  const transports = Array.from(
    { length: isCluster ? buckets : 1 },
    () => new ScriptTransport(connection, keysOf),
  )
  const shardOf = (op: Op): number => (transports.length === 1 ? 0 : keysOf.bucketOf(op))
  const now = clock && (() => readClock(clock))
  const batched = batchedStore(transports, isCluster ? OF_BUCKET : OF_SERVER, shardOf, now)
  let isClosed = false
  return {
    connection,
    failurePolicy,
    // One server is up or down as a whole, and reaches all keys at once.
    ...(isCluster && { shardOf }),
    isOverloaded: batched.isOverloaded,
    apply(ops, call) {
      if (isClosed) {
        call.reject(new SlidegateError('closed', 'the store is closed'))
        return
      }
      own?.use()
      batched.apply(ops, call)
    },
    ready: () => firstAnswer(connection),
    stats: () => batched.counts.read(connection.scriptLoads),
    async close() {
      if (own === undefined) return
      isClosed = true
      await whenIdle(batched.isIdle)
      own.close()
    },
  }
}

/**
 * Resolves with the first answer. Tries again for 2 s.
 *
 * @throws {StoreUnavailableError} if there is none
 * @throws {SlidegateError} `invalid_option` if no client is installed, `closed`
 */
async function firstAnswer(connection: Connection): Promise<void> {
  const send = connection.sender()
  const start = new Start()
  let isAnswered = false
  let failure: unknown
  const ask = async () => {
    while (!start.isOver) {
      try {
        // Without any op: it loads the script.
        await runScript(connection, send, 0, [])
        isAnswered = true
        return
      } catch (error) {
        if (error instanceof SlidegateError) throw error
        failure = error
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      } finally {
        connection.answered()
      }
    }
  }
  try {
    await Promise.race([ask(), start.whenOver])
  } finally {
    start.end()
  }
  if (isAnswered) return
  if (failure !== undefined) throw asUnavailable(failure, connection.server)
  throw noAnswer(connection.diagnose(), START_MS)
}
