// A store in Redis: slidegate/redis.

import { checkOptions, noAnswer, SlidegateError } from '../../errors.ts'
import { failurePolicy } from '../../resilience/failure-policy.ts'
import { type Clock, checkClock, readClock } from '../../runtime/clock.ts'
import { START_MS, Start } from '../start.ts'
import type { Op, Store } from '../store.ts'
import { type BatchOptions, batchedStore } from './batcher.ts'
import type { RedisStoreStats } from './call-counts.ts'
import { warnOfClient } from './client-warnings.ts'
import { type Connection, connectionOf, type RedisClient } from './clients.ts'
import { OwnConnection } from './connect.ts'
import { keyspace } from './keyspace.ts'
import { runScript, ScriptTransport } from './transport.ts'
import { type UrlOptions, urlOptionsOf } from './url.ts'

export type { RedisStoreStats } from './call-counts.ts'
export type { CommandClient, GlideClient, IoredisClient, NodeRedisClient, RedisClient } from './clients.ts'
export type { UrlOptions } from './url.ts'

/** Where keys are stored. Values out of range are rejected with `invalid_option`. */
export interface RedisStoreOptions {
  /** Prefix for all keys: 1 to 128 characters from `A-Z a-z 0-9 . _ : -`. Default: `slidegate`. */
  readonly prefix?: string
  /**
   * Number of buckets for the keys, a power of two from 1 to 1024. Default: 64.
   *
   * On a Cluster, a call covers one bucket. More buckets spread the keys better over many servers; fewer buckets make
   * larger batches. All stores that share keys need the same number.
   */
  readonly buckets?: number
  /**
   * Returns epoch milliseconds, for tests and replay. Replaces the server's clock. TTLs are then at least 10 minutes.
   */
  readonly clock?: Clock
}

/** A store in Redis. */
export interface RedisStore extends Store {
  /**
   * Connects, and resolves when the first answer arrives.
   *
   * Rejects with a `StoreUnavailableError` after 2 s. You don't have to await it before sending requests: the deadline
   * for the first requests starts when the store is connected.
   */
  ready(): Promise<void>
  /** Counts of calls since the store was created. Contains no keys. */
  stats(): RedisStoreStats
}

const OF_SERVER: BatchOptions = { maxCalls: 16, readsFirst: false }
const OF_BUCKET: BatchOptions = { maxCalls: 4, readsFirst: true }

const RETRY_MS = 20

/**
 * Stores state in Redis 7.0 or later, or Valkey 7.2 or later.
 *
 * All processes with the same server and prefix share the state. Supports one server, replicas and Clusters. Time is read from
 * the server's clock. The store never configures or closes a client that you pass.
 *
 * With a URL or `{ url }`, the store creates its own client. For one server, it connects immediately, but
 * doesn't keep the process alive before the first request. A client for a Cluster connects on the first request.
 * `close` waits up to 2 s for calls in flight, then closes the client.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function redisStore(
  client: RedisClient | UrlOptions | string,
  options: RedisStoreOptions = {},
): RedisStore {
  checkOptions(options, 'redisStore', { prefix: true, buckets: true, clock: true })
  const { prefix = 'slidegate', clock, buckets = 64 } = options
  checkClock(clock)
  const keysOf = keyspace(prefix, buckets)
  const url = urlOptionsOf(client)
  const own = url && new OwnConnection(url)
  const connection = own ?? connectionOf(client as RedisClient)
  if (own === undefined) warnOfClient(client as RedisClient)
  const { isCluster } = connection
  // On a Cluster, all keys in a call must be in one slot, so each bucket has its own batches.
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
    // A single server is up or down as a whole, and one call can reach all of its keys.
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
      await batched.whenIdle()
      own.close()
    },
  }
}

async function firstAnswer(connection: Connection): Promise<void> {
  const send = connection.sender()
  const start = new Start()
  let isAnswered = false
  let failure: unknown
  const ask = async () => {
    while (!isAnswered && !start.isOver) {
      try {
        // Without ops, this only loads the script.
        await runScript(connection, send, 0, [])
        isAnswered = true
      } catch (error) {
        if (error instanceof SlidegateError) throw error
        failure = error
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      } finally {
        connection.answered()
      }
    }
  }
  await Promise.race([ask(), start.whenOver]).finally(() => start.end())
  if (isAnswered) return
  throw failure === undefined ? noAnswer(connection.diagnose(), START_MS) : connection.failure(failure)
}
