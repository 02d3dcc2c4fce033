// A Redis connection of its own for operators, beside that of the store.

import { createRequire } from 'node:module'
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { messageOf } from '#replay/errors.js'
import type { StoreConfig } from '../config/schema.ts'
import { ServiceError } from '../service/service-error.ts'
import { tlsOf } from '../service/stores.ts'

type RedisConfig = NonNullable<StoreConfig['redis']>

const require = createRequire(import.meta.url)

const DEFAULT_PREFIX = 'slidegate'
const DEFAULT_PORT = 6379

/** What takes longer is given up. */
const ANSWER_MS = 1000

/** Commands under way at a time. */
const MAX_PENDING = 256

const MAX_BACKOFF_MS = 1000

/** What ioredis says of each server of a Cluster that it cannot connect to, whatever the reason. */
const CLOSED = 'Connection is closed.'

/** For so long it is believed which servers a Cluster has. */
const NODES_MS = 5000

/** Of a Cluster, those that are asked one by one. */
const MAX_SERVERS = 256

/**
 * A connection of the admin side's own, beside that of the store: nothing here is in the way of a request. It connects again
 * for as long as it is open; what cannot be sent now fails now, and nothing is sent twice.
 */
export class RedisLink {
  /** What all keys of the service begin with. */
  readonly prefix: string
  /** Where it connects to, without passwords: `host:port`, several of a Cluster. */
  readonly address: string
  readonly #redis: Redis | Cluster
  readonly #connect: () => Redis | Cluster
  /** One that listens can ask nothing. */
  #listener: Redis | Cluster | undefined
  #pending = 0
  #nodesAtMs = performance.now()
  /** Why there is no connection, where one was tried. */
  #lastError: string | undefined

  /** @param folder against which the names of files are */
  constructor(config: RedisConfig, folder: string) {
    this.prefix = config.prefix ?? DEFAULT_PREFIX
    this.address = urlsOf(config)
      .map(({ hostname, port }) => `${hostname}:${port || DEFAULT_PORT}`)
      .join(', ')
    this.#connect = () => redisOf(config, folder)
    this.#redis = this.#connect()
    // Only the text: what hangs on errors of ioredis are commands, AUTH with the password among them.
    this.#redis
      .on('error', (error) => {
        this.#lastError = reasonOf(error)
      })
      .on('ready', () => {
        this.#lastError = 'the connection was lost'
      })
    this.#redis.connect().catch(() => {})
  }

  /** Whether it could not connect, or has lost its connection. While it tries for the first time nobody knows. */
  get isUnreachable(): boolean {
    return this.#redis.status !== 'ready' && this.#lastError !== undefined
  }

  /** Whether it is connected, for which it waits a moment. */
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
   * @throws {ServiceError} `store_error` where there is no answer: whether it was done is then unknown
   * @throws {UnreachableError} where there is no connection
   */
  async ask<Answer>(command: (redis: Redis | Cluster) => Promise<Answer>): Promise<Answer> {
    if (this.#pending >= MAX_PENDING) throw noAnswer('too much waits for it')
    this.#pending++
    try {
      return await inTime(command(this.#redis))
    } catch (error) {
      if (this.isUnreachable) throw new UnreachableError(this.address, this.#lastError!)
      throw noAnswer(this.#redis.status === 'ready' ? messageOf(error) : 'not connected yet')
    } finally {
      this.#pending--
    }
  }

  /** What each server answers, by `host:port`; nothing where that is none. Of a Cluster all are asked that are known, replicas too. */
  async askEach<Answer>(
    command: (server: Redis) => Promise<Answer>,
  ): Promise<ReadonlyMap<string, Answer | undefined>> {
    const redis = this.#redis
    const cluster = redis.isCluster ? (redis as Cluster) : undefined
    if (cluster) this.#lookForNodes(cluster)
    const servers = cluster ? cluster.nodes('all').slice(0, MAX_SERVERS) : [redis as Redis]
    const asked = servers.map(async (server) => {
      const { host, port } = server.options
      const node = host?.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
      const answer = await inTime(command(server)).catch(() => undefined)
      return [node, answer] as const
    })
    return new Map(await Promise.all(asked))
  }

  /** A replica that was away, or is new, is not heard of otherwise. By no timer: one of ioredis may outlive the connection. */
  #lookForNodes(redis: Cluster): void {
    const nowMs = performance.now()
    if (nowMs - this.#nodesAtMs < NODES_MS) return
    this.#nodesAtMs = nowMs
    redis.refreshSlotsCache()
  }

  /** Says something to whoever listens. Where that cannot be done now it is not done. */
  publish(channel: string, text: string): void {
    if (this.#redis.status !== 'ready' || this.#pending >= MAX_PENDING) return
    this.#pending++
    this.#redis
      .publish(channel, text)
      .catch(() => {})
      .finally(() => this.#pending--)
  }

  /** Listens for as long as it is open, by a connection of its own. Once. */
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

/** One who listens. */
interface Listener {
  heard(text: string): void
  /** From now on it hears all; again after each time that the connection was lost. */
  subscribed(): void
  /** It may not listen. Once, until it may. */
  refused(reason: string): void
}

async function inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new Error(`nothing within ${ANSWER_MS} ms`))
    // One poll phase first: where the event loop was blocked, the answer may already be in the socket.
    timer = setTimeout(() => setImmediate(giveUp), ANSWER_MS)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Of a Cluster the error is that all have failed, and why one has is in it. */
function reasonOf(error: Error & { readonly lastNodeError?: Error }): string {
  const { lastNodeError } = error
  return lastNodeError?.message === CLOSED ? 'none can be connected to' : messageOf(lastNodeError ?? error)
}

function noAnswer(why: string): ServiceError {
  return new ServiceError(503, 'store_error', `Redis has not answered: ${why}`)
}

/** There is no connection to Redis. */
export class UnreachableError extends ServiceError {
  readonly address: string
  readonly reason: string

  constructor(address: string, reason: string) {
    super(503, 'store_error', `Redis has not answered: ${reason}`)
    this.address = address
    this.reason = reason
  }
}

function urlsOf({ url }: RedisConfig): URL[] {
  return (Array.isArray(url) ? url : [url]).map((each) => new URL(each))
}

function redisOf(config: RedisConfig, folder: string): Redis | Cluster {
  // A service without Redis starts faster if it isn't loaded.
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
    // Whoever listens begins anew by himself.
    autoResubscribe: false,
    // Behind a name that leads to another server since, this one keeps the connection, and refuses whatever is written.
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

/** Brackets are how a URL spells an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}
