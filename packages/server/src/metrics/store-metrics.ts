import type { MemoryStore, Store } from 'slidegate'
import type { RedisStore } from 'slidegate/redis'
import { counter, gauge, histogram, type Metric, type Row } from './metric.ts'

/** What the store says of itself: of a store in this process how much it holds, of one in Redis how it was asked. */
export function storeMetrics(
  store: Store | undefined,
  own: ReturnType<MemoryStore['stats']> = { keys: 0, evicted: 0 },
): Metric[] {
  const memory = isMemory(store) ? sumOf(store.stats(), own) : undefined
  const redis = isRedis(store) ? store.stats() : undefined
  const only = <Value>(value: Value | undefined): Row<Value>[] => (value === undefined ? [] : [[{}, value]])
  return [
    gauge('slidegate_memory_store_keys', 'Keys in the memory stores.', only(memory?.keys)),
    counter(
      'slidegate_memory_store_evicted_total',
      'Keys that full memory stores have evicted before their time.',
      only(memory?.evicted),
    ),
    histogram(
      'slidegate_store_call_seconds',
      'How long calls to Redis took, as this service sees them.',
      only(redis?.callMs),
      1000,
    ),
    histogram(
      'slidegate_store_call_requests',
      'Requests that have travelled in one call.',
      only(redis?.requestsPerCall),
    ),
    counter(
      'slidegate_store_call_errors_total',
      'Calls to Redis that have failed as a whole.',
      only(redis?.failedCalls),
    ),
    counter(
      'slidegate_store_script_loads_total',
      'How often Redis did not know the script, and was sent it.',
      only(redis?.scriptLoads),
    ),
  ]
}

function sumOf(one: ReturnType<MemoryStore['stats']>, other: typeof one): typeof one {
  return { keys: one.keys + other.keys, evicted: one.evicted + other.evicted }
}

function isMemory(store: Store | undefined): store is MemoryStore {
  return store?.applySync !== undefined && 'stats' in store
}

function isRedis(store: Store | undefined): store is RedisStore {
  return store?.applySync === undefined && store !== undefined && 'stats' in store
}
