import type { Clock } from '../../clock.ts'
import { checkOptions } from '../../errors.ts'
import { type Call, outcomeAt } from '../call.ts'
import { checkClock, readClock } from '../instant.ts'
import type { Op, Outcome, Store } from '../store.ts'
import { Batcher } from './batcher.ts'
import { type RedisClient, scriptRunner } from './client.ts'
import { keyspace } from './keyspace.ts'

export type { CommandClient, IoredisClient, NodeRedisClient, RedisClient } from './client.ts'

export interface RedisStoreOptions {
  /** What all keys begin with: 1 to 128 of `A-Z a-z 0-9 . _ : -`. Default: `slidegate`. */
  readonly prefix?: string
  /** Epoch milliseconds, for tests and replay: counts instead of the server's own clock. TTLs are then 10 minutes at least. */
  readonly clock?: Clock
}

/**
 * State in Redis 7.0 or later (or Valkey 7.2 or later), shared by every process that uses the same server and
 * prefix: one server, or one with replicas; not yet a Cluster. The server's clock counts. The client stays the caller's: it is neither configured nor closed.
 *
 * @throws {SlidegateError} `invalid_option`
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): Store {
  checkOptions(options, 'redisStore')
  const { prefix = 'slidegate', clock } = options
  checkClock(clock)
  const batcher = new Batcher(scriptRunner(client), keyspace(prefix))

  /** Several ops of one call travel like any others; the call hears of them when the last is answered. */
  function sendAll(ops: readonly Op[], nowMs: number | undefined, call: Call): void {
    const outcomes: Outcome[] = ops.map(() => undefined)
    let left = ops.length
    ops.forEach((op, i) => {
      batcher.send(op, nowMs, {
        get isSettled() {
          return call.isSettled
        },
        resolve([outcome], position) {
          outcomes[i] = outcomeAt(op, outcome, position)
          left--
          if (left === 0) call.resolve(outcomes, 0)
        },
        reject: (error) => call.reject(error),
      })
    })
  }

  return {
    apply(ops, call) {
      const nowMs = clock === undefined ? undefined : readClock(clock)
      if (ops.length === 1) batcher.send(ops[0]!, nowMs, call)
      else sendAll(ops, nowMs, call)
    },
    close() {},
  }
}
