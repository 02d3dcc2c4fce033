import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { memoryStore, type Store } from 'slidegate'
import { redisStore } from 'slidegate/redis'
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
export function openStore({ redis, memory }: StoreConfig, folder: string): Store {
  if (redis === undefined) return memoryStore(memory)
  const { url, cluster, tls, ...options } = redis
  const read = (file: string | undefined) => file && readFileSync(resolve(folder, file), 'utf8')
  const secured = tls && {
    ...(tls.ca && { ca: read(tls.ca) }),
    ...(tls.cert && { cert: read(tls.cert) }),
    ...(tls.key && { key: read(tls.key) }),
    ...(tls.servername && { servername: tls.servername }),
  }
  return redisStore(
    { url, ...(cluster !== undefined && { cluster }), ...(secured && { tls: secured }) },
    options,
  )
}
