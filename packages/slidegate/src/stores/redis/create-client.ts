// Makes clients from URLs, with the package that is installed. No other file imports these packages.

import type { RedisClient } from './clients.ts'
import type { Address, Servers } from './url.ts'

/** How the store's own client connects. */
export interface OwnSettings extends Servers {
  /** Milliseconds until the next attempt to connect, after `attempts`. `undefined`: it ends. */
  backoffMs(attempts: number): number | undefined
  /** Why there is no connection. */
  onError(error: unknown): void
}

/** A client that was made here, and is on its way to its server. */
export interface OwnClient {
  readonly client: RedisClient
  /** Resolves when it is connected. Rejects when it is closed, or ends by `backoffMs`. */
  readonly connected: Promise<unknown>
  /** Keeps the process alive from now on. A client of one server doesn't before. */
  hold(): void
  close(): void
}

const CONNECT_TIMEOUT_MS = 1000

/** A quiet connection gets a ping after this time. */
const PING_INTERVAL_MS = 2000

/** Longer than it may be quiet. */
const SOCKET_TIMEOUT_MS = 5000

/** Without an answer for this long, ioredis closes a connection. */
const SILENT_TIMEOUT_MS = 2000

/** Far more than the store has in flight. */
const QUEUE_MAX = 4096

type MakeClient = (settings: OwnSettings) => OwnClient

/** Loads what is installed; `undefined` if nothing is. */
export async function loadClients(): Promise<MakeClient | undefined> {
  return (await loadNodeRedis()) ?? (await loadIoredis())
}

/** It sends nothing twice, and rejects what it cannot send now. */
export async function loadNodeRedis(): Promise<MakeClient | undefined> {
  const nodeRedis = await importNodeRedis()
  if (nodeRedis === undefined) return undefined
  return (settings) => {
    const { addresses, isCluster, backoffMs, onError } = settings
    const [{ host, port, isTls, database }] = addresses
    const common = {
      ...credentialsOf(addresses[0]),
      disableOfflineQueue: true,
      commandsQueueMaxLength: QUEUE_MAX,
      disableClientInfo: true,
      maintNotifications: 'disabled' as const,
    }
    const socket = {
      ...(isTls && { ...settings.tls, tls: true as const }),
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SOCKET_TIMEOUT_MS,
      // A strategy of its own would end the client for good at a socketTimeout.
      reconnectStrategy: (attempts: number) => backoffMs(attempts) ?? false,
    }
    if (!isCluster) {
      const client = nodeRedis.createClient({ ...common, database, socket: { ...socket, host, port } })
      let isHeld = false
      client.on('error', onError)
      client.on('connect', () => void (isHeld || client.unref()))
      const hold = () => {
        isHeld = true
        client.ref()
      }
      // Its own `pingInterval` would keep the process alive.
      const pinging = setInterval(() => {
        if (client.isReady) client.ping().catch(onError)
      }, PING_INTERVAL_MS).unref()
      const close = () => {
        clearInterval(pinging)
        client.destroy()
      }
      return { client, connected: client.connect(), hold, close }
    }
    const rootNodes = addresses.map(({ host, port }) => ({ socket: { host, port } }))
    const cluster = nodeRedis.createCluster({
      rootNodes,
      defaults: { ...common, pingInterval: PING_INTERVAL_MS, socket },
      // While a node can't be reached, it asks the others for its replacement. The default is every 5 seconds.
      topologyRefreshOnReconnectionAttemptStrategy: 250,
    })
    cluster.on('error', onError)
    cluster.on('node-error', onError)
    let isClosed = false
    // It tries each root node once.
    const connect = async (attempts: number): Promise<unknown> => {
      try {
        return await cluster.connect()
      } catch (error) {
        if (isClosed) throw error
        onError(error)
        const pauseMs = backoffMs(attempts)
        if (pauseMs === undefined) throw error
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
        if (isClosed) throw error
        return connect(Math.min(attempts + 1, 16))
      }
    }
    const close = () => {
      isClosed = true
      if (cluster.isOpen) cluster.destroy()
    }
    return { client: cluster, connected: connect(0), hold: () => {}, close }
  }
}

/** Set so that it sends nothing twice, and rejects what it cannot send now. */
export async function loadIoredis(): Promise<MakeClient | undefined> {
  const ioredis = await importIoredis()
  if (ioredis === undefined) return undefined
  return (settings) => {
    const { addresses, isCluster, backoffMs, onError } = settings
    const [{ host, port, isTls, database }] = addresses
    const common = {
      ...credentialsOf(addresses[0]),
      ...(isTls && { tls: settings.tls }),
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SILENT_TIMEOUT_MS,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      // With any more, what was lost with a connection would never be answered.
      maxRetriesPerRequest: 0,
      disableClientInfo: true,
    }
    const retryStrategy = (attempts: number) => backoffMs(attempts) ?? null
    const client = isCluster
      ? new ioredis.Cluster(
          addresses.map(({ host, port }) => ({ host, port })),
          {
            // With no queue, what comes before a node was first connected would be refused.
            redisOptions: { ...common, lazyConnect: false },
            clusterRetryStrategy: retryStrategy,
            enableOfflineQueue: false,
            // With any, it would send a command again whose connection has closed.
            retryDelayOnFailover: 0,
            slotsRefreshInterval: PING_INTERVAL_MS,
          },
        )
      : new ioredis.Redis({ ...common, host, port, db: database, retryStrategy })
    client.on('error', onError)
    const connected = new Promise((resolve, reject) => {
      client.once('ready', resolve)
      client.once('end', () => reject(new Error('the client has ended')))
    })
    let isHeld = false
    const stream = () => ('stream' in client ? client.stream : undefined)
    client.on('connect', () => void (isHeld || stream()?.unref()))
    const hold = () => {
      isHeld = true
      stream()?.ref()
    }
    return { client, connected, hold, close: () => client.disconnect() }
  }
}

/** Without undefined values, which clients treat differently. */
function credentialsOf({ username, password }: Address): { username?: string; password?: string } {
  return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) }
}

// Bundlers allow a missing module only if its import is within a try.

async function importNodeRedis() {
  try {
    return await import('redis')
  } catch (error) {
    return ifNotFound(error)
  }
}

async function importIoredis() {
  try {
    return await import('ioredis')
  } catch (error) {
    return ifNotFound(error)
  }
}

/** By Node's code, or by that which bundlers throw in its place. */
function ifNotFound(error: unknown): undefined {
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') return undefined
  throw error
}
