import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ConnectionOptions } from 'node:tls'
import { type MemoryStore, memoryStore } from 'slidegate'
import { type RedisStore, redisStore } from 'slidegate/redis'
import type { StoreConfig } from '../config/schema.ts'

/** The store that a configuration names; without one, Redis where the environment has `REDIS_URL`, else memory. */
export function storeConfigOf(config: StoreConfig | undefined, environment: NodeJS.ProcessEnv): StoreConfig {
  if (config !== undefined && (config.redis !== undefined || config.memory !== undefined)) return config
  const url = environment.REDIS_URL
  if (url === undefined || url === '') return { memory: {} }
  return { redis: { url: url.includes(',') ? url.split(',') : url } }
}

/**
 * @param folder against which the names of files are
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

/** What a connection to Redis is told of TLS: in place of files what is in them. */
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
