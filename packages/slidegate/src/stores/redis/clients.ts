// Redis clients: how each kind sends commands, and whether it resends them.

import { errorMonitor } from 'node:events'
import {
  asUnavailable,
  type Diagnosis,
  invalidOption,
  noConnection,
  plainError,
  type StoreUnavailableError,
  show,
} from '../../errors.ts'
import { Start } from '../start.ts'
import type { StoreConnection } from '../store.ts'

/** ioredis 5.11 or later, or iovalkey: a `Redis`, with or without Sentinel, or a `Cluster`. */
export interface IoredisClient {
  evalsha(sha1: string, numkeys: number, ...args: string[]): Promise<unknown>
  eval(script: string, numkeys: number, ...args: string[]): Promise<unknown>
}

/** node-redis 5 or later: a client, a pool or a Sentinel. A Cluster needs node-redis 6 or later. */
export interface NodeRedisClient {
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
}

/** Valkey GLIDE 2 or later: a `GlideClient` or a `GlideClusterClient`. */
export interface GlideClient {
  customCommand(words: string[]): Promise<unknown>
}

/** Any other client. `command` sends words such as `['EVALSHA', ...]`, and resolves to the reply. */
export interface CommandClient {
  command(words: readonly string[]): Promise<unknown>
  /** Whether the client routes commands to the servers of a Cluster. Default: false. */
  readonly isCluster?: boolean
  /** Whether the client resends commands whose reply was lost. Such a command is charged only once. Default: false. */
  readonly resends?: boolean
}

/** A client from any supported package, recognized by its methods. */
export type RedisClient = IoredisClient | NodeRedisClient | GlideClient | CommandClient

/** Sends `EVALSHA` with a SHA-1, or `EVAL` with the script. The first `keys` words are keys. */
export type Send = (
  name: 'EVALSHA' | 'EVAL',
  script: string,
  keys: number,
  words: readonly string[],
) => Promise<unknown>

/** A client that you pass, or the store's own client and its replacements. */
export interface Connection extends StoreConnection {
  /** Whether the client is connected to a Cluster. If so, all keys in a call must be in one slot. */
  readonly isCluster: boolean
  /** Whether the client resends a command whose reply was lost. */
  readonly resends: boolean
  /** Whether the client sends or rejects commands immediately. If not, it would queue them. */
  readonly isReady: boolean
  scriptLoads: number
  /** Returns a `Send` for one server, or for one bucket of a Cluster. */
  sender(): Send
  /** Ends the startup. Call this when a command succeeds or fails. */
  answered(): void
  /** The error for a failed command. If the client isn't connected, the error contains the reason. */
  failure(error: unknown): StoreUnavailableError
}

export function connectionOf(client: RedisClient): Connection {
  const dialect = dialectOf(client)
  if (dialect === undefined) {
    throw invalidOption(
      `the Redis client is ${show(client)}; pass a URL, an ioredis, iovalkey, node-redis or Valkey GLIDE client, or { command(words) }`,
      client,
    )
  }
  const { isCluster, resends, send, address } = dialect
  const server = address === undefined ? 'Redis' : `Redis at ${address}`
  const isStarting = () => dialect.isStarting?.() === true
  let start = isStarting() ? new Start(() => !isStarting() && !dialect.isReady()) : undefined
  const isConnected = () => dialect.isConnected?.() ?? true
  return {
    isCluster,
    resends,
    get isReady() {
      return dialect.isReady()
    },
    scriptLoads: 0,
    whenStarted: () => start?.whenOver,
    diagnose: () => diagnosisOf(server, isConnected(), dialect.lastError?.()),
    failure: (error) => failureOf(error, server, isConnected(), dialect.lastError?.()),
    sender: () => send,
    answered() {
      start?.end()
      start = undefined
    },
  }
}

export function diagnosisOf(server: string, isConnected: boolean, lastError: Error | undefined): Diagnosis {
  if (isConnected) return { message: `${server} did not answer` }
  return { message: `no connection to ${server}`, cause: lastError }
}

export function failureOf(
  error: unknown,
  server: string,
  isConnected: boolean,
  lastError: Error | undefined,
): StoreUnavailableError {
  if (isConnected && !saysOffline(error)) return asUnavailable(error, server)
  return noConnection(server, lastError ?? error)
}

export function saysOffline(error: unknown): boolean {
  const { message = '' } = error as Partial<Error>
  return /enableOfflineQueue|client is (offline|closed)|Connection is closed/i.test(message)
}

/** How a client sends commands, and the state of its connection if it exposes that. */
export interface Dialect {
  readonly isCluster: boolean
  readonly resends: boolean
  /** `host:port`, if the client has one server. */
  readonly address?: string | undefined
  /** False while the client would queue commands. */
  isReady(): boolean
  /** Whether the client is connecting for the first time. */
  isStarting?(): boolean
  isConnected?(): boolean
  /** Why the client isn't connected. */
  lastError?(): Error | undefined
  readonly send: Send
}

/** Recognizes a client by its methods, because there may be several copies of its class. */
export function dialectOf(client: unknown): Dialect | undefined {
  if (has(client, 'evalSha') && has(client, 'eval')) return nodeRedis(client as NodeRedisClient)
  if (has(client, 'evalsha') && has(client, 'eval')) return ioredis(client as IoredisClient)
  if (has(client, 'customCommand')) return glide(client as GlideClient)
  if (has(client, 'command')) return other(client as CommandClient)
  return undefined
}

interface Emitter {
  on?(event: string | symbol, listener: (error: unknown) => void): unknown
}

/** Each client's last error since it connected. */
const lastErrors = new WeakMap<object, Error | undefined>()

/** Records a client's errors. The client still throws errors that nothing else handles. */
function lastErrorOf(client: Emitter, first?: Error): () => Error | undefined {
  if (!lastErrors.has(client)) {
    lastErrors.set(client, first)
    for (const event of [errorMonitor, 'node error', 'node-error']) {
      client.on?.(event, (error) => lastErrors.set(client, plainError(error)))
    }
    client.on?.('connect', () => lastErrors.set(client, undefined))
  }
  return () => lastErrors.get(client)
}

interface Ioredis extends IoredisClient, Emitter {
  readonly isCluster?: boolean
  readonly status?: string
  readonly options?: {
    readonly autoResendUnfulfilledCommands?: boolean
    readonly enableOfflineQueue?: boolean
    readonly host?: string
    readonly port?: number
    readonly path?: string
    readonly sentinels?: unknown
  }
  readonly connector?: { readonly firstError?: Error }
}

/** The states in which a client queues commands. */
const IOREDIS_QUEUES = new Set(['connecting', 'connect', 'reconnecting', 'close', 'disconnecting'])

function ioredis(client: Ioredis): Dialect {
  const isCluster = client.isCluster === true
  const { host, port, path, sentinels } = client.options ?? {}
  const isOneServer = !isCluster && path === undefined && (sentinels ?? undefined) === undefined
  const lastError = lastErrorOf(client)
  return {
    isCluster,
    address: isOneServer ? addressText(host, port) : undefined,
    isStarting: () => client.status === 'connecting' || client.status === 'connect',
    isConnected: () => client.status === undefined || client.status === 'ready',
    lastError: () => {
      const error = client.connector?.firstError
      return error === undefined ? lastError() : plainError(error)
    },
    // If a connection closes, a Cluster client always resends its commands to another server.
    resends: isCluster || client.options?.autoResendUnfulfilledCommands !== false,
    isReady: () => !IOREDIS_QUEUES.has(client.status ?? '') || client.options?.enableOfflineQueue === false,
    send: (name, script, keys, words) =>
      name === 'EVALSHA' ? client.evalsha(script, keys, ...words) : client.eval(script, keys, ...words),
  }
}

interface NodeRedis extends NodeRedisClient, Emitter {
  readonly isOpen?: boolean
  readonly isReady?: boolean
  readonly options?: {
    readonly disableOfflineQueue?: boolean
    readonly socket?: { readonly host?: string; readonly port?: number }
  }
}

function nodeRedis(client: NodeRedis): Dialect {
  // If a connection closes, a Sentinel client resends its commands to the next master.
  const isSentinel = has(client, 'acquire') || has(client, 'release')
  const { socket } = client.options ?? {}
  const isNew = client.isOpen === false
  return {
    isCluster: has(client, 'nodeClient'),
    resends: isSentinel,
    address: addressText(socket?.host ?? 'localhost', socket?.port),
    isConnected: () => client.isOpen !== false && client.isReady !== false,
    lastError: lastErrorOf(
      client,
      isNew ? new Error('never connected: await client.connect() first') : undefined,
    ),
    // A closed client rejects commands. A pool doesn't expose its state. A Sentinel client looks up the master for each command.
    isReady: () =>
      isSentinel ||
      client.isOpen !== true ||
      client.isReady !== false ||
      client.options?.disableOfflineQueue === true,
    send: (name, script, keys, words) => {
      const args = { keys: words.slice(0, keys), arguments: words.slice(keys) }
      return name === 'EVALSHA' ? client.evalSha(script, args) : client.eval(script, args)
    },
  }
}

/** GLIDE never resends commands, and its queued commands fail after `requestTimeout`. */
function glide(client: GlideClient): Dialect {
  const command = (words: readonly string[]) => client.customCommand(words as string[])
  return other({ command, isCluster: has(client, 'invokeScriptWithRoute') })
}

/** A client that doesn't expose whether it is connected. */
function other(client: CommandClient): Dialect {
  return {
    isCluster: client.isCluster === true,
    resends: client.resends === true,
    isReady: () => true,
    send: (name, script, keys, words) => client.command([name, script, String(keys), ...words]),
  }
}

function addressText(host: string | undefined, port: number | undefined): string | undefined {
  return host === undefined || port === undefined ? undefined : hostPort(host, port)
}

export function hostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

export function has(client: unknown, method: string): boolean {
  return typeof (client as Record<string, unknown> | null | undefined)?.[method] === 'function'
}
