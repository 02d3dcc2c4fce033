import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { StoreConfig } from '../config/schema.ts'
import { messageOf } from '../errors.ts'
import { ServiceError } from '../service/service-error.ts'
import { tlsOf } from '../service/store.ts'

type RedisConfig = NonNullable<StoreConfig['redis']>

const DEFAULT_PREFIX = 'slidegate'

/** What takes longer is given up. */
const ANSWER_MS = 1000

/** Commands under way at a time. */
const MAX_PENDING = 256

const MAX_BACKOFF_MS = 1000

/**
 * A connection of the admin side's own, beside that of the store: nothing here is in the way of a request. It connects again
 * for as long as it is open; what cannot be sent now fails now, and nothing is sent twice.
 */
export class RedisLink {
  /** What all keys of the service begin with. */
  readonly prefix: string
  readonly #client: Redis | Cluster
  #pending = 0
  #lastError = 'not connected yet'

  /** @param folder against which the names of files are */
  constructor(config: RedisConfig, folder: string) {
    this.prefix = config.prefix ?? DEFAULT_PREFIX
    this.#client = clientOf(config, folder)
    // Only the text: what hangs on errors of ioredis are commands, AUTH with the password among them.
    this.#client.on('error', (error) => {
      this.#lastError = messageOf(error)
    })
    this.#client.connect().catch(() => {})
  }

  /** Whether it is connected, for which it waits a moment. */
  async connected(withinMs: number = ANSWER_MS): Promise<boolean> {
    if (this.#client.status === 'ready') return true
    return new Promise((resolve) => {
      const done = (isReady: boolean) => {
        clearTimeout(timer)
        this.#client.off('ready', ready).off('close', closed)
        resolve(isReady)
      }
      const ready = () => done(true)
      const closed = () => done(false)
      const timer = setTimeout(closed, withinMs)
      this.#client.on('ready', ready).on('close', closed)
    })
  }

  /** @throws {ServiceError} `store_error` where there is no answer: whether it was done is then unknown */
  async ask<Answer>(command: (client: Redis | Cluster) => Promise<Answer>): Promise<Answer> {
    if (this.#pending >= MAX_PENDING) throw noAnswer('too much waits for it')
    this.#pending++
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`nothing within ${ANSWER_MS} ms`)), ANSWER_MS)
    })
    try {
      return await Promise.race([command(this.#client), late])
    } catch (error) {
      throw noAnswer(this.#client.status === 'ready' ? messageOf(error) : this.#lastError)
    } finally {
      clearTimeout(timer)
      this.#pending--
    }
  }

  close(): void {
    this.#client.disconnect()
  }
}

function noAnswer(why: string): ServiceError {
  return new ServiceError(503, 'store_error', `Redis has not answered: ${why}`)
}

function clientOf({ url, cluster, tls }: RedisConfig, folder: string): Redis | Cluster {
  const urls = (Array.isArray(url) ? url : [url]).map((each) => new URL(each))
  const [first] = urls as [URL, ...URL[]]
  const isTls = /^(rediss|valkeys):$/.test(first.protocol)
  const options: RedisOptions = {
    ...(first.username && { username: decodeURIComponent(first.username) }),
    ...(first.password && { password: decodeURIComponent(first.password) }),
    ...(isTls && { tls: tlsOf(tls ?? {}, folder) }),
    connectTimeout: ANSWER_MS,
    socketTimeout: 2 * ANSWER_MS,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    disableClientInfo: true,
    // Behind a name that leads to another server since, this one keeps the connection, and refuses whatever is written.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
  }
  const backoffMs = (attempts: number) => Math.min(MAX_BACKOFF_MS, 50 * attempts)
  const nodes = urls.map((each) => ({ host: hostOf(each), port: Number(each.port || 6379) }))
  if (cluster ?? urls.length > 1) {
    return new Cluster(nodes, {
      redisOptions: options,
      clusterRetryStrategy: backoffMs,
      retryDelayOnFailover: 0,
      enableOfflineQueue: false,
      enableReadyCheck: false,
      lazyConnect: true,
    })
  }
  const db = Number(first.pathname.slice(1) || 0)
  return new Redis({ ...options, ...nodes[0], db, retryStrategy: backoffMs, lazyConnect: true })
}

/** Brackets are how a URL spells an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}
