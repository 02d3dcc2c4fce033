// The service's store, and the stores for limiters that callers declare.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ConnectionOptions } from 'node:tls'
import { type MemoryStore, type MemoryStoreOptions, memoryStore, type Store } from 'slidegate'
import { type RedisStore, redisStore } from 'slidegate/redis'
import type { StoreConfig } from '../config/schema.ts'
import { fits } from './pattern.ts'

/** The configured store. Default: Redis if `REDIS_URL` is set, otherwise memory. */
export function storeConfigOf(config: StoreConfig | undefined, environment: NodeJS.ProcessEnv): StoreConfig {
  if (config !== undefined && (config.redis !== undefined || config.memory !== undefined)) return config
  const url = environment.REDIS_URL
  if (url === undefined || url === '') return { memory: {} }
  return { redis: { url: url.includes(',') ? url.split(',') : url } }
}

/**
 * @param folder the base folder for relative file names
 * @throws {SlidegateError} `invalid_option`
 */
export function openStore({ redis, memory }: StoreConfig, folder: string): MemoryStore | RedisStore {
  if (redis === undefined) return memoryStore(memory)
  const { url, cluster, tls, ...options } = redis
  return redisStore(
    { url, ...(cluster !== undefined && { cluster }), ...(tls && { tls: tlsOf(tls, folder) }) },
    options,
  )
}

/** TLS options for Redis, with the contents of the files instead of their names. */
export function tlsOf(
  tls: NonNullable<NonNullable<StoreConfig['redis']>['tls']>,
  folder: string,
): ConnectionOptions {
  const files = (['ca', 'cert', 'key'] as const).flatMap((what) => {
    const file = tls[what]
    return file === undefined ? [] : [[what, readFileSync(resolve(folder, file), 'utf8')] as const]
  })
  return { ...tls, ...Object.fromEntries(files) }
}

/** Maximum number of overrides per pattern. Overrides are never evicted. */
const MAX_OVERRIDES = 10_000

/**
 * The stores for limiters that callers declare.
 *
 * In memory, each pattern of `ownLimiters` has a separate store, so that a token that fills its store doesn't
 * evict other patterns' keys. In Redis, all patterns share one store.
 */
export class OwnStores {
  readonly #shared: Store | undefined
  readonly #options: MemoryStoreOptions | undefined
  readonly #stores = new Map<string, MemoryStore>()
  #patterns: readonly string[] = []
  /** Number of keys that the stores of removed patterns have evicted. */
  #evicted = 0

  constructor(store: Store, options: MemoryStoreOptions | undefined) {
    this.#shared = store.applySync === undefined ? store : undefined
    this.#options = options
  }

  /**
   * The store for a limiter. It depends only on the longest matching pattern, so all callers share it.
   *
   * @param patterns the patterns of all tokens, longest first. Must be the same array until the patterns change
   */
  of(limiter: string, patterns: readonly string[]): Store {
    if (this.#shared !== undefined) return this.#shared
    if (patterns !== this.#patterns) this.#keepOnly(patterns)
    // A reload may have removed the pattern.
    const pattern = patterns.find((each) => fits(each, limiter)) ?? '*'
    let store = this.#stores.get(pattern)
    if (store === undefined) {
      store = memoryStore({ ...this.#options, maxOverrides: MAX_OVERRIDES })
      this.#stores.set(pattern, store)
    }
    return store
  }

  /** The totals across all memory stores. */
  stats(): { readonly keys: number; readonly evicted: number } {
    const all = Array.from(this.#stores.values(), (store) => store.stats())
    return {
      keys: all.reduce((sum, { keys }) => sum + keys, 0),
      evicted: all.reduce((sum, { evicted }) => sum + evicted, this.#evicted),
    }
  }

  #keepOnly(patterns: readonly string[]): void {
    this.#patterns = patterns
    for (const [pattern, store] of this.#stores) {
      if (patterns.includes(pattern)) continue
      this.#evicted += store.stats().evicted
      this.#stores.delete(pattern)
    }
  }
}
