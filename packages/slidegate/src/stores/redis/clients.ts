// Redis clients: how each sends commands, and whether it resends them.

import { type Diagnosis, invalidOption, plainError, show } from '../../errors.ts'
import { Start } from '../start.ts'
import type { StoreConnection } from '../store.ts'

/** ioredis from 5.11, or iovalkey: a `Redis`, also with Sentinel, or a `Cluster`. */
export interface IoredisClient {
  evalsha(sha1: string, numkeys: number, ...args: string[]): Promise<unknown>
  eval(script: string, numkeys: number, ...args: string[]): Promise<unknown>
}

/** node-redis from 5: a client, a pool or a Sentinel. From 6, also a Cluster. */
export interface NodeRedisClient {
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
}

/** Valkey GLIDE from 2: a `GlideClient` or a `GlideClusterClient`. */
export interface GlideClient {
  customCommand(words: string[]): Promise<unknown>
}

/** Any other client. Sends one command, such as `['EVALSHA', ...]`, and resolves to its reply. */
export interface CommandClient {
  command(words: readonly string[]): Promise<unknown>
  /** Whether it routes commands to the servers of a Cluster. Default: false. */
  readonly isCluster?: boolean
  /** Whether it resends a command whose reply was lost. Such a command is still charged only once. Default: false. */
  readonly resends?: boolean
}

/** A client of any supported package, recognized by its methods. */
export type RedisClient = IoredisClient | NodeRedisClient | GlideClient | CommandClient

/**
 * Sends `EVALSHA` with a SHA-1, or `EVAL` with the script itself.
 *
 * @param keys how many of the words are keys
 */
export type Send = (
  name: 'EVALSHA' | 'EVAL',
  script: string,
  keys: number,
  words: readonly string[],
) => Promise<unknown>

/** A client, or a series of clients of which each replaces the previous one. */
export interface Connection extends StoreConnection {
  /** The name in messages: `Redis at 127.0.0.1:6379`, or `Redis` if the client doesn't expose its address. */
  readonly server: string
  /** Whether it connects to a Cluster. If so, the keys of a call must be in one slot. */
  readonly isCluster: boolean
  /** Whether it resends a command whose reply was lost. */
  readonly resends: boolean
  /** Whether it sends or rejects commands immediately. If not, it would queue them. */
  readonly isReady: boolean
  /** How often the script had to be loaded. */
  scriptLoads: number
  /** Returns the function for one server, or for one bucket of a Cluster. */
  sender(): Send
  /** Ends the startup. Call it when a command was answered or failed. */
  answered(): void
}

/** @throws {SlidegateError} `invalid_option` if it isn't a client */
export function connectionOf(client: RedisClient): Connection {
  const dialect = dialectOf(client)
  if (dialect === undefined) {
    throw invalidOption(
      `the Redis client is ${show(client)}; pass a client of ioredis, iovalkey, node-redis or Valkey GLIDE, { url }, or { command(words) }`,
      client,
    )
  }
  const { isCluster, resends, send } = dialect
  const server = serverAt(dialect.address)
  const isStarting = () => dialect.isStarting?.() === true
  const start = isStarting() ? new Start(() => !isStarting() && !dialect.isReady()) : undefined
  return {
    server,
    isCluster,
    resends,
    get isReady() {
      return dialect.isReady()
    },
    scriptLoads: 0,
    whenStarted: () => start?.whenOver,
    diagnose: () => diagnosisOf(server, dialect.isReady(), dialect.lastError?.()),
    sender: () => send,
    answered: () => start?.end(),
  }
}

/** @param address omitted if it isn't known */
export function serverAt(address: string | undefined): string {
  return address === undefined ? 'Redis' : `Redis at ${address}`
}

export function diagnosisOf(server: string, isConnected: boolean, cause: Error | undefined): Diagnosis {
  return isConnected
    ? { message: `${server} did not answer` }
    : { message: `no connection to ${server}`, cause }
}

/** How one kind of client sends commands. */
export interface Dialect {
  readonly isCluster: boolean
  readonly resends: boolean
  /** `host:port` of a client of one server, if it exposes that. */
  readonly address?: string | undefined
  /** Returns false while it would queue commands. */
  isReady(): boolean
  /** Whether it is connecting for the first time, if it exposes that. */
  isStarting?(): boolean
  /** Why it isn't connected, if it exposes that. */
  lastError?(): Error | undefined
  readonly send: Send
}

/** Recognizes a kind of client by its methods, never by its class. */
export function dialectOf(client: unknown): Dialect | undefined {
  if (has(client, 'evalSha') && has(client, 'eval')) return nodeRedis(client as NodeRedisClient)
  if (has(client, 'evalsha') && has(client, 'eval')) return ioredis(client as IoredisClient)
  if (has(client, 'customCommand')) return glide(client as GlideClient)
  if (has(client, 'command')) return other(client as CommandClient)
  return undefined
}

interface Ioredis extends IoredisClient {
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

/** States in which it queues commands, unless it is unused or has ended. */
const IOREDIS_QUEUES = new Set(['connecting', 'connect', 'reconnecting', 'close', 'disconnecting'])

function ioredis(client: Ioredis): Dialect {
  const isCluster = client.isCluster === true
  const { host, port, path, sentinels } = client.options ?? {}
  const isOneServer = !isCluster && path === undefined && (sentinels ?? undefined) === undefined
  return {
    isCluster,
    address: isOneServer ? addressText(host, port) : undefined,
    // A failed attempt ends in another status.
    isStarting: () => client.status === 'connecting' || client.status === 'connect',
    lastError: () => {
      const error = client.connector?.firstError
      return error && plainError(error)
    },
    // After a closed connection, a Cluster always resends to another server.
    resends: isCluster || client.options?.autoResendUnfulfilledCommands !== false,
    isReady: () => !IOREDIS_QUEUES.has(client.status ?? '') || client.options?.enableOfflineQueue === false,
    send: (name, script, keys, words) => {
      if (name === 'EVALSHA') return client.evalsha(script, keys, ...words)
      return client.eval(script, keys, ...words)
    },
  }
}

interface NodeRedis extends NodeRedisClient {
  readonly isOpen?: boolean
  readonly isReady?: boolean
  readonly options?: {
    readonly disableOfflineQueue?: boolean
    readonly socket?: { readonly host?: string; readonly port?: number }
  }
}

function nodeRedis(client: NodeRedis): Dialect {
  // After a closed connection, a Sentinel or a client of one resends to the next master.
  const isSentinel = has(client, 'acquire') || has(client, 'release')
  const { socket } = client.options ?? {}
  return {
    isCluster: has(client, 'nodeClient'),
    resends: isSentinel,
    address: addressText(socket?.host ?? 'localhost', socket?.port),
    // A closed client rejects. A pool doesn't expose its state, and a Sentinel looks for a master with each command.
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

function glide(client: GlideClient): Dialect {
  // GLIDE resends nothing, and its queued commands fail after `requestTimeout`.
  return byWords((words) => client.customCommand(words), has(client, 'invokeScriptWithRoute'), false)
}

function other(client: CommandClient): Dialect {
  return byWords((words) => client.command(words), client.isCluster === true, client.resends === true)
}

/** A client that sends any command, and doesn't expose whether it is connected. */
function byWords(
  command: (words: string[]) => Promise<unknown>,
  isCluster: boolean,
  resends: boolean,
): Dialect {
  return {
    isCluster,
    resends,
    isReady: () => true,
    send: (name, script, keys, words) => command([name, script, String(keys), ...words]),
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
