// The admin API's Redis connection, separate from the store's.

import { createRequire } from 'node:module'
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { messageOf } from '../../../replay/src/errors.ts'
import type { StoreConfig } from '../config/schema.ts'
import { ServiceError } from '../service/service-error.ts'
import { tlsOf } from '../service/stores.ts'

type RedisConfig = NonNullable<StoreConfig['redis']>

const require = createRequire(import.meta.url)

const DEFAULT_PREFIX = 'slidegate'
const DEFAULT_PORT = 6379

/** The timeout for a command, in milliseconds. */
const ANSWER_MS = 1000

/** The maximum number of commands in flight. */
const MAX_PENDING = 256

const MAX_BACKOFF_MS = 1000

/** The message that ioredis uses for every failure to connect to a Cluster node. */
const CLOSED = 'Connection is closed.'

/** Minimum time between refreshes of a Cluster's node list, in milliseconds. */
const NODES_MS = 5000

/** The maximum number of Cluster nodes to query. */
const MAX_SERVERS = 256

/**
 * The admin API's Redis connection. The store has its own connection, so this one never delays requests.
 *
 * Reconnects until it is closed. A command that can't be sent fails immediately, and no command is sent twice.
 */
export class RedisLink {
  /** The prefix of all the service's keys. */
  readonly prefix: string
  /** The address without passwords: `host:port`, or several for a Cluster. */
  readonly address: string
  readonly #redis: Redis | Cluster
  readonly #connect: () => Redis | Cluster
  /** A connection for subscriptions, which can't send other commands. */
  #listener: Redis | Cluster | undefined
  #pending = 0
  #nodesAtMs = performance.now()
  /** Why there is no connection. Undefined before the first failed attempt. */
  #lastError: string | undefined

  /** @param folder the base folder for relative file names */
  constructor(config: RedisConfig, folder: string) {
    this.prefix = config.prefix ?? DEFAULT_PREFIX
    this.address = urlsOf(config)
      .map(({ hostname, port }) => `${hostname}:${port || DEFAULT_PORT}`)
      .join(', ')
    this.#connect = () => redisOf(config, folder)
    this.#redis = this.#connect()
    // Keeps only the text, because ioredis errors include commands, such as AUTH with the password.
    this.#redis
      .on('error', (error) => {
        this.#lastError = reasonOf(error)
      })
      .on('ready', () => {
        this.#lastError = 'connection lost'
      })
    this.#redis.connect().catch(() => {})
  }

  /** Whether connecting failed or the connection was lost. False during the first attempt. */
  get isUnreachable(): boolean {
    return this.#redis.status !== 'ready' && this.#lastError !== undefined
  }

  /** The error from the last attempt to connect, such as a wrong password. */
  get lastError(): string | undefined {
    return this.#lastError
  }

  get isCluster(): boolean {
    return this.#redis.isCluster
  }

  /** Waits for a connection, and returns whether there is one. */
  async connected(withinMs: number = ANSWER_MS): Promise<boolean> {
    if (this.#redis.status === 'ready') return true
    return new Promise((resolve) => {
      const done = (isReady: boolean) => {
        clearTimeout(timer)
        this.#redis.off('ready', ready).off('close', closed)
        resolve(isReady)
      }
      const ready = () => done(true)
      const closed = () => done(false)
      const timer = setTimeout(closed, withinMs)
      this.#redis.on('ready', ready).on('close', closed)
    })
  }

  /**
   * Sends a command.
   *
   * @throws {ServiceError} `store_error` if the command failed; it may still have run
   * @throws {UnreachableError} if there is no connection
   */
  async ask<Answer>(command: (redis: Redis | Cluster) => Promise<Answer>): Promise<Answer> {
    if (this.#pending >= MAX_PENDING) throw failure('too many commands are in flight')
    this.#pending++
    try {
      return await inTime(command(this.#redis))
    } catch (error) {
      if (this.isUnreachable) throw new UnreachableError(this.address, this.#lastError!)
      throw failure(this.#redis.status === 'ready' ? messageOf(error) : 'not connected yet')
    } finally {
      this.#pending--
    }
  }

  /**
   * Sends a command to each server, and returns the results by `host:port`.
   *
   * In a Cluster, the servers are all known nodes, including replicas. The result of a failed command is undefined.
   */
  async askEach<Answer>(
    command: (server: Redis) => Promise<Answer>,
  ): Promise<ReadonlyMap<string, Answer | undefined>> {
    const redis = this.#redis
    const cluster = redis.isCluster ? (redis as Cluster) : undefined
    if (cluster) this.#lookForNodes(cluster)
    const servers = cluster ? cluster.nodes('all').slice(0, MAX_SERVERS) : [redis as Redis]
    const results = servers.map(async (server) => {
      const { host, port } = server.options
      const node = host?.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
      const answer = await inTime(command(server)).catch(() => undefined)
      return [node, answer] as const
    })
    return new Map(await Promise.all(results))
  }

  /** Discovers new and recovered replicas. Replaces the timer in ioredis, which may outlive the connection. */
  #lookForNodes(redis: Cluster): void {
    const nowMs = performance.now()
    if (nowMs - this.#nodesAtMs < NODES_MS) return
    this.#nodesAtMs = nowMs
    redis.refreshSlotsCache()
  }

  /** Publishes a message. Drops it if it can't be sent now. */
  publish(channel: string, text: string): void {
    if (this.#redis.status !== 'ready' || this.#pending >= MAX_PENDING) return
    this.#pending++
    this.#redis
      .publish(channel, text)
      .catch(() => {})
      .finally(() => this.#pending--)
  }

  /** Subscribes over a separate connection, until the link is closed. Call it once. */
  subscribe(channels: readonly string[], listener: Listener): void {
    const redis = this.#connect()
    this.#listener = redis
    let isRefused = false
    const begin = () =>
      redis.subscribe(...channels).then(
        () => {
          isRefused = false
          listener.subscribed()
        },
        (error) => {
          if (isRefused || redis.status !== 'ready') return
          isRefused = true
          listener.refused(messageOf(error))
        },
      )
    redis
      .on('error', () => {})
      .on('ready', begin)
      .on('message', (_channel: string, text: string) => listener.heard(text))
    redis.connect().catch(() => {})
  }

  close(): void {
    this.#redis.disconnect()
    this.#listener?.disconnect()
  }
}

/** Handles subscribed messages. */
interface Listener {
  heard(text: string): void
  /** Called when the subscription is active, and again after each reconnect. */
  subscribed(): void
  /** Called when Redis rejects the subscription. Consecutive rejections are reported once. */
  refused(reason: string): void
}

async function inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const timeOut = () => reject(new Error(`no response within ${ANSWER_MS} ms`))
    // Reads the socket once more, because the response may already be there if the event loop was blocked.
    timer = setTimeout(() => setImmediate(timeOut), ANSWER_MS)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the reason for a connection error. For a Cluster, `lastNodeError` contains it. */
function reasonOf(error: Error & { readonly lastNodeError?: Error }): string {
  const { lastNodeError } = error
  return lastNodeError?.message === CLOSED ? "can't connect to any node" : messageOf(lastNodeError ?? error)
}

function failure(why: string): ServiceError {
  return new ServiceError(503, 'store_error', `the Redis command failed: ${why}`)
}

/** Thrown if there is no connection to Redis. */
export class UnreachableError extends ServiceError {
  readonly address: string
  readonly reason: string

  constructor(address: string, reason: string) {
    super(503, 'store_error', `Redis is unreachable: ${reason}`)
    this.address = address
    this.reason = reason
  }
}

function urlsOf({ url }: RedisConfig): URL[] {
  return (Array.isArray(url) ? url : [url]).map((each) => new URL(each))
}

function redisOf(config: RedisConfig, folder: string): Redis | Cluster {
  // Loaded on demand, because a service without Redis starts faster without ioredis.
  const { Cluster, Redis } = require('ioredis') as typeof import('ioredis')
  const { cluster, tls } = config
  const urls = urlsOf(config)
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
    // Not needed, because `subscribe` subscribes again on each `ready` event.
    autoResubscribe: false,
    // After a failover, the old primary keeps the connection but rejects writes. Reconnecting may reach the new one.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
  }
  const backoffMs = (attempts: number) => Math.min(MAX_BACKOFF_MS, 50 * attempts)
  const nodes = urls.map((each) => ({ host: hostOf(each), port: Number(each.port || DEFAULT_PORT) }))
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

/** Strips the brackets that a URL has around an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}
