import { checkOptions, SlidegateError } from '../../errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import { whenIdle } from '../idle.ts'
import { checkClock, readClock } from '../instant.ts'
import type { Op, Store } from '../store.ts'
import { batchedStore } from './batched-store.ts'
import { Batcher, type Width } from './batcher.ts'
import { CallCounts, type RedisStoreStats } from './call-counts.ts'
import { warnOfClient } from './client-warnings.ts'
import type { RedisClient } from './clients.ts'
import { connectionTo, isUrlOptions, type OwnConnection, type UrlOptions } from './connect.ts'
import { type Connection, connectionOf } from './connection.ts'
import { firstAnswer } from './first-answer.ts'
import { keyspace } from './keyspace.ts'
import { Backlog } from './queue.ts'
import { ScriptTransport } from './transport.ts'

export type { RedisStoreStats } from './call-counts.ts'
export type { CommandClient, GlideClient, IoredisClient, NodeRedisClient, RedisClient } from './clients.ts'
export type { UrlOptions } from './connect.ts'

/** Where the keys are, and how calls reach them. Anything out of its range is `invalid_option`. */
export interface RedisStoreOptions {
  /** What all keys begin with: 1 to 128 of `A-Z a-z 0-9 . _ : -`. Default: `slidegate`. */
  readonly prefix?: string
  /**
   * Parts into which keys are divided, a power of two from 1 to 1024. On a Cluster a call reaches one of them: more parts spread
   * better over many servers, fewer make larger batches. All who share keys must say the same. Default: 64.
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
  /** What was asked of Redis since the store was made: numbers, never keys. */
  stats(): RedisStoreStats
}

/** Calls in flight, to one server; and for each bucket of a Cluster. */
const OF_SERVER: Width = { eager: 2, most: 16, readsFirst: false }
const OF_BUCKET: Width = { eager: 1, most: 4, readsFirst: true }

/**
 * State in Redis 7.0 or later (or Valkey 7.2 or later), shared by every process that uses the same server and
 * prefix: one server, one with replicas, or a Cluster. The server's clock counts. A client that is handed over stays the
 * caller's: it is neither configured nor closed.
 *
 * By a URL the store makes a client of its own. To one server it connects at once, without keeping the process alive until
 * the first request; to a Cluster with the first request. `close` finishes what is under way, for up to 2 s, and ends it.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function redisStore(client: RedisClient | UrlOptions, options: RedisStoreOptions = {}): RedisStore {
  checkOptions(options, 'redisStore', { prefix: true, buckets: true, clock: true })
  const { prefix = 'slidegate', clock, buckets = 64 } = options
  checkClock(clock)
  const keysOf = keyspace(prefix, buckets)
  const own = isUrlOptions(client) ? connectionTo(client) : undefined
  const connection = own ?? connectionTold(client as RedisClient)
  // On a Cluster the keys of a call lie in one slot, so each bucket has batches of its own.
  const length = connection.isCluster ? buckets : 1
  const backlog = new Backlog(length)
  const counts = new CallCounts()
  const batchers = Array.from({ length }, () => {
    const transport = new ScriptTransport(connection, keysOf, counts)
    return new Batcher(transport, connection.isCluster ? OF_BUCKET : OF_SERVER, backlog, counts)
  })
  const domainOf = (op: Op): number => (batchers.length === 1 ? 0 : keysOf.bucketOf(op))

  const now = clock && (() => readClock(clock))
  const { apply, isCrowded } = batchedStore(batchers, domainOf, now)
  // One server is up or down as a whole, and reaches all keys at once.
  return {
    ...{ apply, isCrowded, connection, ...(connection.isCluster && { domainOf }) },
    ready: () => firstAnswer(connection, counts),
    stats: () => counts.stats(),
    close() {},
    ...(own && owned(own, apply, () => batchers.every((batcher) => batcher.isIdle()))),
  }
}

/** Uses the connection from the first request on, and ends it when all are answered. */
function owned(
  own: OwnConnection,
  apply: Store['apply'],
  isIdle: () => boolean,
): Pick<Store, 'apply' | 'close'> {
  let isClosed = false
  return {
    apply(ops, call) {
      if (isClosed) {
        call.reject(new SlidegateError('closed', 'the store is closed'))
        return
      }
      own.use()
      apply(ops, call)
    },
    async close() {
      isClosed = true
      await whenIdle(isIdle)
      own.close()
    },
  }
}

/** What is known of a client that was handed over, which is warned of where it would do harm. */
function connectionTold(client: RedisClient): Connection {
  const connection = connectionOf(client)
  warnOfClient(client)
  return connection
}
