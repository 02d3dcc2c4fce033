// Creates clients from URLs, with node-redis or ioredis, whichever is installed. No other file imports these packages.

import { dialectOf, type Send } from './clients.ts'
import type { Servers } from './url.ts'

export interface OwnSettings extends Servers {
  /** Returns the milliseconds until the next connection attempt, or `undefined` to stop trying. */
  backoffMs(attempts: number): number | undefined
  onError(error: unknown): void
}

export interface OwnClient {
  readonly send: Send
  /** Resolves when the client is connected. Rejects when it is closed or stops trying. */
  readonly connected: Promise<unknown>
  /** Keeps the process alive from now on. Before this, a client for one server doesn't. */
  hold(): void
  close(): void
}

const CONNECT_TIMEOUT_MS = 1000

/** How often a connection is pinged. */
const PING_INTERVAL_MS = 2000

/** Must be longer than the ping interval. */
const SOCKET_TIMEOUT_MS = 5000

/** If a command isn't answered for this long, ioredis closes the connection. */
const SILENT_TIMEOUT_MS = 2000

const QUEUE_MAX = 4096

export type MakeClient = (settings: OwnSettings) => OwnClient

// Bundlers allow a missing package only if its import is in a try block.

export async function loadClients(): Promise<MakeClient | undefined> {
  return (await loadNodeRedis()) ?? (await loadIoredis())
}

export async function loadNodeRedis(): Promise<MakeClient | undefined> {
  let nodeRedis: typeof import('redis')
  try {
    nodeRedis = await import('redis')
  } catch (error) {
    return ifNotFound(error)
  }
  return (settings) => {
    const { addresses, isCluster, backoffMs, onError } = settings
    const [{ host, port, isTls, database, ...credentials }] = addresses
    const common = {
      ...credentials,
      disableOfflineQueue: true,
      commandsQueueMaxLength: QUEUE_MAX,
      disableClientInfo: true,
      maintNotifications: 'disabled' as const,
    }
    const socket = {
      ...(isTls && { ...settings.tls, tls: true as const }),
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SOCKET_TIMEOUT_MS,
      // The default strategy would close the client permanently after a socketTimeout.
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
      // The client's `pingInterval` would keep the process alive.
      const pinging = setInterval(() => {
        if (client.isReady) client.ping().catch(onError)
      }, PING_INTERVAL_MS).unref()
      const close = () => {
        clearInterval(pinging)
        client.destroy()
      }
      return { send: dialectOf(client)!.send, connected: client.connect(), hold, close }
    }
    const rootNodes = addresses.map(({ host, port }) => ({ socket: { host, port } }))
    const cluster = nodeRedis.createCluster({
      rootNodes,
      defaults: { ...common, pingInterval: PING_INTERVAL_MS, socket },
      // How often to ask other nodes which node has replaced an unreachable one. The default is 5 s.
      topologyRefreshOnReconnectionAttemptStrategy: 250,
    })
    cluster.on('error', onError)
    cluster.on('node-error', onError)
    let isClosed = false
    // `connect` tries each root node once.
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
    return { send: dialectOf(cluster)!.send, connected: connect(0), hold: () => {}, close }
  }
}

export async function loadIoredis(): Promise<MakeClient | undefined> {
  let ioredis: Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>
  try {
    ioredis = await import('ioredis')
  } catch (error) {
    return ifNotFound(error)
  }
  return (settings) => {
    const { addresses, isCluster, backoffMs, onError } = settings
    const [{ host, port, isTls, database, ...credentials }] = addresses
    const common = {
      ...credentials,
      ...(isTls && { tls: settings.tls }),
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SILENT_TIMEOUT_MS,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      // With a higher value, a command whose connection is lost would never be answered.
      maxRetriesPerRequest: 0,
      disableClientInfo: true,
    }
    const retryStrategy = (attempts: number) => backoffMs(attempts) ?? null
    const client = isCluster
      ? new ioredis.Cluster(
          addresses.map(({ host, port }) => ({ host, port })),
          {
            // Connects to nodes in advance. Without a queue, a node's commands would be rejected until it is connected.
            redisOptions: { ...common, lazyConnect: false },
            clusterRetryStrategy: retryStrategy,
            enableOfflineQueue: false,
            // Otherwise, the client would resend commands whose connection has closed.
            retryDelayOnFailover: 0,
            slotsRefreshInterval: PING_INTERVAL_MS,
          },
        )
      : new ioredis.Redis({ ...common, host, port, db: database, retryStrategy })
    client.on('error', onError)
    const connected = new Promise((resolve, reject) => {
      client.once('ready', resolve)
      client.once('end', () => reject(new Error('the client was closed')))
    })
    let isHeld = false
    const stream = () => ('stream' in client ? client.stream : undefined)
    client.on('connect', () => void (isHeld || stream()?.unref()))
    const hold = () => {
      isHeld = true
      stream()?.ref()
    }
    return { send: dialectOf(client)!.send, connected, hold, close: () => client.disconnect() }
  }
}

function ifNotFound(error: unknown): undefined {
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') return undefined
  throw error
}
