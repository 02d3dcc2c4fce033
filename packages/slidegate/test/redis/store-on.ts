import { randomUUID } from 'node:crypto'
import { createLimiter, failurePolicy, type Limiter, slidingWindow } from '../../src/index.ts'
import { batchedStore } from '../../src/stores/redis/batcher.ts'
import type { Connection } from '../../src/stores/redis/clients.ts'
import { keyspace } from '../../src/stores/redis/keyspace.ts'
import { ScriptTransport } from '../../src/stores/redis/transport.ts'
import type { Store } from '../../src/stores/store.ts'

/** Creates a store that uses this connection. On a Cluster, all its keys are in one slot. */
function storeOn(connection: Connection, prefix = 'slidegate'): Store {
  const transport = new ScriptTransport(connection, keyspace(prefix, 1))
  const { apply } = batchedStore([transport], { maxCalls: 16, readsFirst: false }, () => 0)
  return { apply, connection, failurePolicy, close() {} }
}

/** Creates a limiter of 1,000 per hour with keys that no other test uses. */
export function limiterOn(
  connection: Connection,
  options: { readonly prefix?: string; readonly timeoutMs?: number } = {},
): Limiter {
  return createLimiter({
    name: randomUUID(),
    limits: [slidingWindow({ limit: 1000, window: '1h' })],
    store: storeOn(connection, options.prefix),
    timeoutMs: options.timeoutMs ?? 30_000,
  })
}
